"""Times of buffers by handler, all handlers in one process, in rounds: ratios of page_frag's and exact_frag's to stock's.

Ratios are times: below 1 is faster than stock. What passes between two lcores depends on where the machine has them just
then, which a virtual machine's host may change at any time: a cache line is bounced between them before and after each
measurement. Rounds in which that differs belong to two machines and are dropped.
"""

import dataclasses
import json
import os
import pathlib
import statistics
import subprocess
import sys

import hugepages
import ratios
import table
import testpmd

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / 'build' / 'tests' / 'bench' / 'mempool_bench'
TITLE = 'time per buffer, ours / theirs'
HUGE_PAGES = 384
BURST = 32
SECONDS = 0.02  # of one measurement
NEAR = 250  # ns of a round trip: below, the two lcores share a cache
STEADY = 1.5  # between the largest and the smallest round trip of a round
FEWEST = 7  # rounds in one state, without which a row says nothing
LAUNCHES = 7  # where a program's memory comes to lie moves what passes between lcores by a third, for all its rounds alike


@dataclasses.dataclass
class Row:
    """Two of mempool_bench's names and one more to be shown; the ratio of the first two is to be at most `at_most`."""

    name: str
    ours: str
    theirs: str
    beside: str
    at_most: float
    two_lcores: bool = False
    or_cycles: float = 0  # of the TSC that are as good as `at_most`; 0: that does not count

    def names(self):
        return [self.ours, self.theirs, self.beside]


def same_lcore(name, variant, cache, touch, at_most):
    where = f'cache:{cache}/touch:{touch}/window:1'
    return Row(name, f'same_lcore/{variant}/{where}', f'same_lcore/ring_mp_mc/{where}', f'same_lcore/stack/{where}', at_most)


def other_lcore(name, variant, theirs, touch, at_most):
    where = f'cache:0/touch:{touch}/real_time'
    return Row(name, f'other_lcore/{variant}/{where}', f'other_lcore/{theirs}/{where}', f'other_lcore/rotation/{where}', at_most,
               two_lcores=True)


def rows():
    for cache, targets in ((256, (1.00, 1.00, 1.00)), (0, (0.65, 0.65, 0.35))):
        for touch, target in zip((0, 64, 1500), targets):
            yield same_lcore(f'same lcore, cache {cache}, {touch} B', 'page_frag', cache, touch, target)
    for theirs, what, targets in (('ring_mp_mc', 'fresh ring', (0.95, 0.90, 1.20)),
                                  ('ring_mp_mc_shuffled', 'shuffled ring', (0.60, 0.80, 0.60))):
        for touch, target in zip((0, 64, 1500), targets):
            yield other_lcore(f'other lcore against {what}, {touch} B', 'page_frag_128k', theirs, touch, target)
    yield dataclasses.replace(same_lcore('exact size, same lcore, cache 0', 'exact', 0, 0, 0.70), or_cycles=13)
    for touch, target in zip((0, 64, 1500), (0.75, 0.70, 1.25)):
        yield other_lcore(f'exact size, other lcore, {touch} B', 'exact_64k', 'ring_mp_mc', touch, target)
        # What the yardstick leaves: fixed buffers handed round by nobody's allocator are hardly faster than the ring.
        yield other_lcore(f'exact size, other lcore against no allocator, {touch} B', 'exact_64k', 'rotation', touch, 0.95)


def in_order(chosen):
    """The names that `chosen` need, those of the same work next to each other, for neighbours have the same machine."""
    names = list(dict.fromkeys(name for row in chosen for name in row.names()))
    return sorted(names, key=lambda name: (name.split('/')[0], *name.split('/')[2:]))


def launch(names, rounds):
    """What one run of mempool_bench says, line by line."""
    command = [str(PROGRAM), f'--benchmark_min_time={SECONDS}', f'--rounds={rounds}', *names]
    program = subprocess.run(command, env={**os.environ, 'HALFPAGE_BENCH_EAL': '--in-memory'}, text=True, capture_output=True)
    if program.returncode:
        raise testpmd.TestpmdError(f'{" ".join(command)}\nended with {program.returncode}:\n{program.stderr[-3000:]}')
    return [json.loads(line) for line in program.stdout.splitlines()]


def measure(names, rounds):
    """{name: [run of each round]}, a run being what mempool_bench says of it."""
    runs = {name: [] for name in names}
    for number in range(LAUNCHES):
        share = rounds * (number + 1) // LAUNCHES - rounds * number // LAUNCHES
        # A launch of one round would not turn the order round.
        order = names if number % 2 == 0 else list(reversed(names))
        for run in launch(order, share) if share else []:
            runs[run['name']].append(run)
        print(f'\r{TITLE}: {len(runs[names[0]])} of {rounds} rounds', end='', file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return runs


def trips(*runs):
    return [run[when] for run in runs for when in ('trip_before', 'trip_after')]


def state_of(trip):
    return 'share a cache' if trip < NEAR else 'share no cache'


def kept(row, runs, state):
    """Rounds of `row` that all of its runs spent on one machine, the one that is `state`."""
    for ours, theirs, beside in zip(*(runs[name] for name in row.names())):
        if row.two_lcores:
            round_trips = trips(ours, theirs)
            if max(round_trips) > STEADY * min(round_trips) or any(state_of(trip) != state for trip in round_trips):
                continue
        yield ours['ns'] / BURST, theirs['ns'] / BURST, beside['ns'] / BURST


def policy(run):
    """How the handler ran, in words."""
    words = [f'{int(run["page_size"]) // 1024} KiB pages']
    if run.get('rotation'):
        words.append(f'rotation {int(run["rotation"])}')
    return ', '.join(words)


def line_of(row, runs, state):
    values = list(kept(row, runs, state))
    dropped = len(runs[row.ours]) - len(values)
    target = f'{row.at_most:.2f}'
    if len(values) < FEWEST:
        return table.Line(row.name, '', target, None, f'only {len(values)} of {len(runs[row.ours])} rounds in one state')
    ours, theirs, beside = (statistics.median(column) for column in zip(*values))
    rounds = [a / b for a, b, _ in values]
    third = 'the same buffers handed round without an allocator' if row.two_lcores else 'stack'
    detail = f'{ours:.2f} against {theirs:.2f} ns ({third} {beside:.2f}), {policy(runs[row.ours][0])}'
    if dropped:
        detail += f', {dropped} rounds dropped'
    met = ratios.at_most(rounds, row.at_most)
    if row.or_cycles:
        cycles = ours * runs[row.ours][0]['tsc_hz'] / 1e9
        met = met or cycles <= row.or_cycles
        detail += f', {cycles:.1f} cycles ({row.or_cycles:.0f} are enough)'
    if row.two_lcores and state != state_of(NEAR):
        met, detail = None, detail + '; the target is for lcores that share no cache'
    return table.of_ratios(row.name, rounds, target, met, detail)


def run(chosen, rounds):
    """Measures `chosen`; gives their lines."""
    if hugepages.free() < HUGE_PAGES:
        raise testpmd.TestpmdError(f'{HUGE_PAGES} free hugepages of 2 MiB are needed, there are {hugepages.free()}')
    runs = measure(in_order(chosen), rounds)
    round_trips = trips(*(run for row in chosen if row.two_lcores for name in row.names() for run in runs[name]))
    state = None
    if round_trips:
        # The state in which most of them were, but any that is enough in the one that the targets are for.
        far = sum(trip >= NEAR for trip in round_trips)
        state = state_of(NEAR if 2 * far >= len(round_trips) else 0)
        print(f'lcores: {state} in {far if state == state_of(NEAR) else len(round_trips) - far} of {len(round_trips)} round '
              f'trips of a cache line, {statistics.median(round_trips):.0f} ns at the median, '
              f'{min(round_trips):.0f} to {max(round_trips):.0f}')
    return [line_of(row, runs, state) for row in chosen]
