"""Unmodified testpmd, macswap, on our handler against stock: without hugepages and with them."""

import sys

import hugepages
import interleave
import testpmd

ABOUT = 'unmodified dpdk-testpmd macswap on page_frag against the stock handler, about three minutes'

NO_HUGE = ('--no-huge', '-m', '1024')  # testpmd's own 155456 buffers take 640 MB of stock without hugepages
HUGE = ('--in-memory',)
HUGE_PAGES = 256


def row(name, memory, mode, at_least):
    return interleave.Row(name, lambda: testpmd.forwarding_rate('page_frag', memory, mode),
                          lambda: testpmd.forwarding_rate('ring_mp_mc', memory, mode), at_least)


ROWS = (
    (row('testpmd macswap --no-huge', NO_HUGE, 'macswap', 2.0), False),
    (row('testpmd macswap, hugepages', HUGE, 'macswap', 0.95), True),
)


def run(options):
    outcomes = []
    try:
        with hugepages.held(HUGE_PAGES):
            for comparison, needs_hugepages in ROWS:
                if options.row and options.row not in comparison.name:
                    continue
                if needs_hugepages and hugepages.free() < HUGE_PAGES:
                    return testpmd.give_up(f'{comparison.name}: {HUGE_PAGES} free hugepages of 2 MiB are needed, there '
                                           f'are {hugepages.free()}; run as root, or write more into '
                                           '/proc/sys/vm/nr_hugepages')
                outcomes.append(interleave.measure(comparison, options.rounds))
    except testpmd.TestpmdError as error:
        return testpmd.give_up(error)
    if not outcomes:
        print(f'bench: no row holds {options.row!r}', file=sys.stderr)
        return 2
    return interleave.report(outcomes, 'Mpps')
