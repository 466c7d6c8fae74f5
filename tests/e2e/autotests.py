"""DPDK's own tests, which Debian packs as dpdk-test, with one mempool handler or another behind every packet pool."""

import re

import launch
import stock

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
# Some wait for real time (link_bonding's TLB) and now and then fail on any handler, stock included: where the two differ,
# both are asked again.
TRIES = 3


def verdict(test, memory, ops):
    """((exit code, the test's last word), how it ended) of one of AUTOTESTS."""
    load, environment = stock.handler(ops)
    with stock.file_prefix() as prefix:
        ended = launch.run([stock.program('dpdk-test'), *launch.lcores(2), '--no-pci', *memory, *prefix, *load],
                           seconds=AUTOTESTS[test], cwd='/', env={**environment, 'DPDK_TEST': test})
    words = re.findall(r'^Test (OK|Failed|Skipped)', ended.out, re.MULTILINE)
    return (ended.code, words[-1] if words else None), ended


def compare(test, memory, ops):
    """verdict() with `ops` and with STOCK."""
    for _ in range(TRIES):
        ours, expected = verdict(test, memory, ops), verdict(test, memory, STOCK)
        if ours[0] == expected[0]:
            break
    return ours, expected
