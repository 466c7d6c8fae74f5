#!/usr/bin/python3
"""DPDK's own tests (dpdk-test) with page_frag as the handler of every packet pool come to the verdict that stock DPDK has."""

import itertools
import sys

import autotests
import stock
import tap


def register_autotests():
    for (where, memory), test in itertools.product(stock.MEMORIES.items(), autotests.AUTOTESTS):

        @tap.subtest(f"dpdk-test's {test} has the verdict of {autotests.STOCK} {where}")
        def _(memory=memory, test=test):
            stock.need(memory)
            (found, ended), (expected, stock_ended) = autotests.compare(test, memory, stock.OPS)
            tap.expect(expected[1], f'{test} on {autotests.STOCK} says nothing', stock_ended)
            tap.expect(found == expected, f'{autotests.STOCK}: {expected[1]}, exit code {expected[0]}; '
                       f'{stock.OPS}: {found[1]}', ended)
            if found[1] != 'OK':
                raise tap.Skip(f'{found[1]} on this machine with {autotests.STOCK} too')


register_autotests()

if __name__ == '__main__':
    sys.exit(tap.main())
