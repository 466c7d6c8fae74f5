"""halfpage's packet path beside a bare loop over the same rings, the stock handler and the kernel's veth, in the same rounds.

A round is one run of tests/bench/path_bench with hugepages, one without, and one of tools/kernel. Ratios to the bare loop
are of slices that follow each other; ratios to the kernel are to the best of all its rounds, for the kernel's rate
depends more on the minute than ours.
"""

import json
import os
import statistics
import subprocess
import sys

import hugepages
import testpmd
import watched
from interleave import interval

ABOUT = 'packet path: against a bare ring loop, on the stock handler, and against the kernel\'s veth, and watched; about three minutes'
PROGRAM = testpmd.ROOT / 'build' / 'tests' / 'bench' / 'path_bench'
KERNEL = testpmd.ROOT / 'tools' / 'kernel'
KERNEL_REFUSED = 77
HUGE_PAGES = 256
MEMORY = {'hugepages': '--in-memory', 'no-huge': '--no-huge -m 1024'}
SLICE_MS = 30
KERNEL_SECONDS = 0.15

BARE_TARGETS = {'drop': 0.85, 'tx': 0.85, 'redirect': 0.85, 'pass': 0.80, 'filter': 0.70, 'mix': 0.50}  # 64 B, hugepages
FRAMES_TARGETS = {'drop': 6, 'tx': 6, 'redirect': 7}  # 64 B, hugepages
FRAMES_TARGET_NO_HUGE = 3
SKBS_TARGET = 40  # 64 B, hugepages
ROW_OF = {'afxdp': 'user'}  # by the kernel's path, where it is called otherwise; its reader has a CPU of its own


def run_bench(memory, only):
    """The lines of one round of path_bench."""
    command = [str(PROGRAM), '--rounds', '1', '--slice-ms', str(SLICE_MS), *(['--only', only] if only else [])]
    done = subprocess.run(command, env={**os.environ, 'HALFPAGE_BENCH_EAL': MEMORY[memory]}, capture_output=True, text=True)
    if done.returncode:
        raise testpmd.TestpmdError(f'{" ".join(command)}\nended with {done.returncode}:\n{done.stderr[-3000:]}')
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{')]


def run_kernel():
    """({(path, source, size): Mpps}, None) of one round of tools/kernel, or ({}, why it is not measured)."""
    done = subprocess.run([str(KERNEL), '--rounds', '1', '--seconds', str(KERNEL_SECONDS), '--paths', 'drop,pass,tx,redirect,afxdp',
                           '--json', '-'], capture_output=True, text=True)
    if done.returncode == KERNEL_REFUSED:
        return {}, done.stderr.strip()
    if done.returncode:
        raise testpmd.TestpmdError(f'tools/kernel ended with {done.returncode}:\n{done.stderr[-3000:]}')
    rows = json.loads(done.stdout)['rows']
    return {(row['path'], row['source'], row['size']): row['mpps'] for row in rows if 'mpps' in row}, None


class Measured:
    """What all rounds gave: lists of one value a round."""

    def __init__(self):
        self.slices = {}  # (memory, row, size, lcores, who, ops): [line of path_bench]
        self.kernel = {}  # (path, source, size): [Mpps]
        self.ping_pong = []
        self.kernel_refused = None

    def add_round(self, only):
        for memory in MEMORY:
            for line in run_bench(memory, only):
                if line['row'] == 'ping_pong':
                    self.ping_pong.append(line['ns_one_way'])
                    continue
                key = (memory, line['row'], line['size'], line['lcores'], line['who'], line['ops'])
                self.slices.setdefault(key, []).append(line)
        rates, self.kernel_refused = run_kernel()
        for key, rate in rates.items():
            self.kernel.setdefault(key, []).append(rate)

    def rates(self, *key):
        return [line['mpps'] for line in self.slices[key]]

    def median(self, field, *key):
        return statistics.median(line[field] for line in self.slices[key])


class Table:
    """Lines of ratios with their targets; counts the misses."""

    def __init__(self):
        self.rows = self.missed = 0
        print(f'{"":46}  ratio  90 % interval   spread          target  Mpps')

    def line(self, name, ratios, target, rates):
        low, high = interval(ratios)
        median = statistics.median(ratios)
        verdict = ''
        if target is not None:
            self.rows += 1
            self.missed += median < target
            verdict = 'met' if median >= target else 'MISSED'
        print(f'{name:46}  {median:5.2f}  {low:5.2f} to {high:5.2f}  {min(ratios):5.2f} to {max(ratios):5.2f}  '
              f'{"-" if target is None else format(target, ".2f"):>6}  {rates}  {verdict}'.rstrip())


def report(measured, table):
    for memory, row, size, lcores, who, ops in measured.slices:
        if who != 'halfpage':
            continue
        ours, bare = (measured.rates(memory, row, size, lcores, each, ops) for each in ('halfpage', 'bare'))
        target = BARE_TARGETS.get(row) if (memory, size, lcores, ops) == ('hugepages', 64, 1, 'page_frag') else None
        key = (memory, row, size, lcores, 'halfpage', ops)
        table.line(f'{row} {size} B, {memory}, {lcores} lcore(s), {ops}', [a / b for a, b in zip(ours, bare)], target,
                   f'{statistics.median(ours):.1f} against a bare {statistics.median(bare):.1f}, '
                   f'{measured.median("cycles", *key):.0f} cycles, {measured.median("burst", *key):.0f} a burst')
    for (path, source, size), rates in measured.kernel.items():
        for memory in MEMORY:
            key = (memory, ROW_OF.get(path, path), size, 1, 'halfpage', 'page_frag')
            if key not in measured.slices:
                continue
            target = None
            if size == 64 and path in FRAMES_TARGETS:
                if memory == 'hugepages':
                    target = FRAMES_TARGETS[path] if source == 'frames' else SKBS_TARGET
                elif source == 'frames':
                    target = FRAMES_TARGET_NO_HUGE
            ours = measured.rates(*key)
            table.line(f'{path} {size} B, {memory}, kernel, {source}', [each / max(rates) for each in ours], target,
                       f'{statistics.median(ours):.1f} against the kernel\'s best {max(rates):.2f} '
                       f'(median {statistics.median(rates):.2f})')
    if measured.kernel_refused:
        print(measured.kernel_refused)
    if measured.ping_pong:
        print(f'a cache line from one lcore to the other: median {statistics.median(measured.ping_pong):.0f} ns '
              f'({min(measured.ping_pong):.0f} to {max(measured.ping_pong):.0f}); figures of two lcores go with it')


def report_watched(rounds, table):
    ours, theirs, asked = watched.measure(rounds)
    table.line(watched.ABOUT, [a / b for a, b in zip(ours, theirs)], watched.TARGET,
               f'{statistics.median(ours):.1f} against {statistics.median(theirs):.1f} of a run that nobody looks at; each asked '
               f'{statistics.median(asked):.0f} times in {watched.SECONDS} s')


def run(options):
    measured = Measured()
    watching = (options.row or '') in watched.ABOUT
    try:
        with hugepages.held(HUGE_PAGES):
            if hugepages.free() < HUGE_PAGES:
                return testpmd.give_up(f'{HUGE_PAGES} free hugepages of 2 MiB are needed, there are {hugepages.free()}')
            for number in range(options.rounds):
                measured.add_round(options.row)
                print(f'bench: round {number + 1} of {options.rounds} done', file=sys.stderr, flush=True)
        if not measured.slices and not watching:
            print(f'bench: no row holds {options.row!r}', file=sys.stderr)
            return 2
        table = Table()
        report(measured, table)
        if watching:
            report_watched(options.rounds, table)
    except testpmd.TestpmdError as error:
        return testpmd.give_up(error)
    print(f'bench: {table.rows} rows with a target, {table.missed} missed')
    return 4 if table.missed else 0
