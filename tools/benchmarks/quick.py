"""Unmodified testpmd, macswap, on our handler against stock: without hugepages and with them. A few rows of `mempool`."""

import sys

import forwarder
import forwarding
import hugepages
import table
import testpmd

ABOUT = 'unmodified dpdk-testpmd macswap on page_frag against the stock handler, side by side in each round, a minute'
ROUNDS = 9  # at least: three in each of three launches


def rows():
    yield forwarding.Row('macswap', 'no-huge', 2.0)
    yield forwarding.Row('macswap', 'hugepages', 0.95)


def run(options):
    chosen = [row for row in rows() if (options.row or '') in row.name]
    if not chosen:
        print(f'bench: no row holds {options.row!r}', file=sys.stderr)
        return 2
    held = 2 * forwarder.HUGE_PAGES if any(row.memory == 'hugepages' for row in chosen) else 0
    try:
        with hugepages.held(held):
            lines = forwarding.run(chosen, max(options.rounds, ROUNDS))
    except testpmd.TestpmdError as error:
        return testpmd.give_up(error)
    table.show(lines, forwarding.TITLE)
    return table.close(lines)
