"""Costs of buffers by handler: page_frag and exact_frag against ring_mp_mc, in one process, interleaved.

The repetitions of tests/bench/mempool_bench run in random order (Google Benchmark's interleaving); the i-th repetition of
one variant is paired with the i-th of the other. Ratios are times: below 1 is faster than stock. The targets are those of
the design; a row that says 1.00 counts as met when its median is within 2 % and its interval does not exclude 1.00.
"""

import dataclasses
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys

import hugepages
import testpmd

ABOUT = 'alloc and free by handler, same and other lcore, exact size: time ratios to stock'
ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / 'build' / 'tests' / 'bench' / 'mempool_bench'
HUGE_PAGES = 384


@dataclasses.dataclass
class Row:
    """One comparison of two of mempool_bench's names; the ratio of their times is to be at most `at_most`."""

    name: str
    ours: str
    theirs: str
    at_most: float

    def met(self, median, low):
        return median <= self.at_most or (self.at_most == 1.0 and median <= 1.02 and low <= 1.0)


def rows():
    for cache, targets in ((256, (1.00, 1.00, 1.00)), (0, (0.65, 0.65, 0.35))):
        for touch, target in zip((0, 64, 1500), targets):
            where = f'cache:{cache}/touch:{touch}/window:1'
            yield Row(f'same lcore, cache {cache}, {touch} B', f'same_lcore/page_frag/{where}',
                      f'same_lcore/ring_mp_mc/{where}', target)
    for theirs, what, targets in (('ring_mp_mc', 'fresh ring', (0.95, 0.90, 1.20)),
                                  ('ring_mp_mc_shuffled', 'shuffled ring', (0.60, 0.80, 0.60))):
        for touch, target in zip((0, 64, 1500), targets):
            where = f'cache:0/touch:{touch}/real_time'
            yield Row(f'other lcore against {what}, {touch} B', f'other_lcore/page_frag_64k/{where}',
                      f'other_lcore/{theirs}/{where}', target)
    where = 'cache:0/touch:0/window:1'
    yield Row('exact size, same lcore, cache 0', f'same_lcore/exact/{where}', f'same_lcore/ring_mp_mc/{where}', 0.70)
    for touch, target in zip((0, 64, 1500), (0.75, 0.70, 1.25)):
        where = f'cache:0/touch:{touch}/real_time'
        yield Row(f'exact size, other lcore, {touch} B', f'other_lcore/exact_64k/{where}',
                  f'other_lcore/ring_mp_mc/{where}', target)


def times(names, repetitions):
    """{name: [time of each repetition]} of one interleaved run of mempool_bench."""
    wanted = '^(' + '|'.join(sorted(names)) + ')$'
    command = [str(PROGRAM), f'--benchmark_filter={wanted}', f'--benchmark_repetitions={repetitions}',
               '--benchmark_enable_random_interleaving=true', '--benchmark_min_time=0.02', '--benchmark_format=json']
    done = subprocess.run(command, env={**os.environ, 'HALFPAGE_BENCH_EAL': '--in-memory'}, capture_output=True, text=True)
    if done.returncode:
        raise testpmd.TestpmdError(f'{" ".join(command)}\nended with {done.returncode}:\n{done.stderr[-3000:]}')
    found = {}
    for run in json.loads(done.stdout)['benchmarks']:
        if run.get('run_type') != 'iteration':
            continue
        if run.get('error_occurred'):
            raise testpmd.TestpmdError(f'{run["name"]}: {run["error_message"]}')
        clock = 'real_time' if run['name'].endswith('real_time') else 'cpu_time'
        found.setdefault(run['name'], {})[run['repetition_index']] = run[clock]
    return {name: [value for _, value in sorted(runs.items())] for name, runs in found.items()}


def interval(ratios):
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(2000))
    return medians[100], medians[1899]


def run(options):
    chosen = [row for row in rows() if not options.row or options.row in row.name]
    if not chosen:
        print(f'bench: no row holds {options.row!r}', file=sys.stderr)
        return 2
    repetitions = max(options.rounds, 21)
    try:
        with hugepages.held(HUGE_PAGES):
            if hugepages.free() < HUGE_PAGES:
                return testpmd.give_up(f'{HUGE_PAGES} free hugepages of 2 MiB are needed, there are {hugepages.free()}')
            measured = times({name for row in chosen for name in (row.ours, row.theirs)}, repetitions)
    except testpmd.TestpmdError as error:
        return testpmd.give_up(error)
    width = max(len(row.name) for row in chosen)
    print(f'{"":{width}}  ratio  90 % interval   spread          target  median ns per buffer')
    missed = 0
    for row in chosen:
        ours, theirs = measured[row.ours], measured[row.theirs]
        ratios = [a / b for a, b in zip(ours, theirs)]
        median, (low, high) = statistics.median(ratios), interval(ratios)
        met = row.met(median, low)
        missed += not met
        print(f'{row.name:{width}}  {median:5.2f}  {low:5.2f} to {high:5.2f}  {min(ratios):5.2f} to {max(ratios):5.2f}  '
              f'{row.at_most:6.2f}  {statistics.median(ours) / 32:.2f} against {statistics.median(theirs) / 32:.2f}  '
              f'{"met" if met else "MISSED"}')
    print(f'bench: {len(chosen)} rows, {missed} missed')
    return 4 if missed else 0
