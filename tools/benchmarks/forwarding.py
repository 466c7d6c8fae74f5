"""Rates of unmodified dpdk-testpmd on page_frag against stock, with hugepages and without, all four in every round."""

import dataclasses
import statistics
import sys

import forwarder
import ratios
import table

TITLE = 'testpmd, net_null, 64 B: Mpps, ours / theirs'
LAUNCHES = 7  # where a program's memory comes to lie is another matter of luck
MEMORIES = {'hugepages': forwarder.HUGE, 'no-huge': forwarder.NO_HUGE}
PROGRAMS = {(ops, name): (ops, memory) for ops in ('page_frag', 'ring_mp_mc') for name, memory in MEMORIES.items()}
OURS, THEIRS = 'page_frag', 'ring_mp_mc'


@dataclasses.dataclass
class Row:
    """page_frag against ring_mp_mc in one forwarding mode, on one kind of memory."""

    mode: str
    memory: str
    at_least: float
    of_hugepages: float = 0  # or this much of what stock reaches with hugepages; 0: that does not count

    @property
    def name(self):
        return f'testpmd {self.mode}, {self.memory}'


def rows():
    for mode in ('io', 'mac', 'macswap', 'csum'):
        yield Row(mode, 'hugepages', 1.00)
        yield Row(mode, 'no-huge', 3.0) if mode == 'macswap' else Row(mode, 'no-huge', 1.5, of_hugepages=0.9)


def measure(modes, memories, rounds):
    """{(mode, ops, memory): [Mpps of each round]}, the order turned round in every second round."""
    wanted = {key: what for key, what in PROGRAMS.items() if key[1] in memories}
    rates = {(mode, *key): [] for mode in modes for key in wanted}
    done = 0
    for launch in range(LAUNCHES):
        with forwarder.several(wanted) as running:
            share = (rounds * (launch + 1)) // LAUNCHES - (rounds * launch) // LAUNCHES
            for number in range(share):
                order = list(running) if (done + number) % 2 == 0 else list(reversed(running))
                for mode in modes:
                    for key in order:
                        running[key].set_mode(mode)
                        rates[mode, *key].append(running[key].rate())
                print(f'\r{TITLE}: round {done + number + 1} of {rounds}', end='', file=sys.stderr, flush=True)
            done += share
    print(file=sys.stderr)
    return rates


def line_of(row, rates):
    ours, theirs = rates[row.mode, OURS, row.memory], rates[row.mode, THEIRS, row.memory]
    values = [a / b for a, b in zip(ours, theirs)]
    met = ratios.at_least(values, row.at_least)
    target, detail = f'{row.at_least:.2f}', f'{statistics.median(ours):.1f} against {statistics.median(theirs):.1f} Mpps'
    if row.of_hugepages:
        of_hugepages = statistics.median(a / b for a, b in zip(ours, rates[row.mode, THEIRS, 'hugepages']))
        met = met or of_hugepages >= row.of_hugepages
        detail += f', {of_hugepages:.2f} of stock with hugepages ({row.of_hugepages:.2f} is enough)'
    return table.of_ratios(row.name, values, target, met, detail + ', page size chosen by the handler')


def run(chosen, rounds):
    modes = list(dict.fromkeys(row.mode for row in chosen))
    memories = {row.memory for row in chosen} | {'hugepages' for row in chosen if row.of_hugepages}
    rates = measure(modes, memories, rounds)
    return [line_of(row, rates) for row in chosen]
