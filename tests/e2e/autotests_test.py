#!/usr/bin/python3
"""DPDK's own tests (dpdk-test) with page_frag as the handler of every packet pool come to the verdict that stock DPDK has."""

import itertools
import re
import sys

import launch
import stock
import tap

# How long each may take, in seconds: all of them take a few where nothing else is at work.
AUTOTESTS = {
    'mbuf_autotest': 90,
    'mempool_autotest': 240,
    'ipfrag_autotest': 60,
    'pdump_autotest': 60,
    'ring_pmd_autotest': 60,
    'link_bonding_autotest': 120,
}
STOCK = 'ring_mp_mc'
TRIES = 3


def verdict(test, memory, ops):
    """(exit code, the test's last word, how it ended) of one of dpdk-test's tests."""
    load, environment = stock.handler(ops)
    with stock.file_prefix() as prefix:
        ended = launch.run([stock.program('dpdk-test'), *launch.lcores(2), '--no-pci', *memory, *prefix, *load],
                           seconds=AUTOTESTS[test], cwd='/', env={**environment, 'DPDK_TEST': test})
    words = re.findall(r'^Test (OK|Failed|Skipped)', ended.out, re.MULTILINE)
    return ended.code, words[-1] if words else None, ended


def register_autotests():
    for (where, memory), test in itertools.product(stock.MEMORIES.items(), AUTOTESTS):

        @tap.subtest(f"dpdk-test's {test} has the verdict of {STOCK} {where}")
        def _(memory=memory, test=test):
            stock.need(memory)
            # Some of dpdk-test's tests wait for real time (link_bonding's TLB) and now and then fail on any handler, stock
            # included: where the two differ, both are asked again.
            for _ in range(TRIES):
                code, word, ended = verdict(test, memory, stock.OPS)
                expected_code, expected_word, expected = verdict(test, memory, STOCK)
                if (code, word) == (expected_code, expected_word):
                    break
            tap.expect(expected_word, f'{test} on {STOCK} says nothing', expected)
            tap.expect((code, word) == (expected_code, expected_word), f'{STOCK}: {expected_word}, exit code {expected_code}; '
                       f'{stock.OPS}: {word}', ended)
            if word != 'OK':
                raise tap.Skip(f'{word} on this machine with {STOCK} too')


register_autotests()

if __name__ == '__main__':
    sys.exit(tap.main())
