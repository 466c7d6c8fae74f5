#!/usr/bin/python3
"""tools/kernel: measures the kernel's veth where it may, says why where it may not, leaves nothing behind."""

import contextlib
import json
import os
import pathlib
import signal
import sys
import time

import launch
import tap
from launch import ROOT

KERNEL = ROOT / 'tools' / 'kernel'
QUICK = ('--rounds', '1', '--seconds', '0.02')
REFUSED = 77


def measured(*arguments):
    """The JSON of a measurement; the subtest is skipped where the machine refuses."""
    ended = launch.run([KERNEL, *QUICK, '--json', '-', *arguments], seconds=60)
    if ended.code == REFUSED:
        raise tap.Skip(ended.err.strip())
    tap.expect(ended.code == 0, 'expected exit code 0', ended)
    return json.loads(ended.out)


def network():
    """Devices and named namespaces of this network namespace."""
    return launch.run(['ip', '-o', 'link']).out.count('\n'), launch.run(['ip', 'netns']).out


def session(leader):
    """Process ids of the session that `leader` began."""
    found = []
    for stat in pathlib.Path('/proc').glob('[0-9]*/stat'):
        with contextlib.suppress(OSError):
            if int(stat.read_text().rpartition(')')[2].split()[3]) == leader:
                found.append(stat.parent.name)
    return found


@tap.subtest('every path has a rate from both sources, and a row that cannot be says why')
def _():
    before = network()
    rows = measured('--sizes', '64,8000')['rows']
    tap.expect(len(rows) == 20, f'5 paths, 2 sources, 2 sizes are 20 rows, there are {len(rows)}')
    for row in rows:
        there = row.get('mpps', 0) > 0
        possible = row['size'] == 64 or (row['source'] == 'skbs' and row['path'] != 'afxdp')
        if row['path'] == 'afxdp' and len(os.sched_getaffinity(0)) < 2:
            possible = False
        tap.expect(there == possible, f'rate and possibility do not agree: {row}')
        tap.expect(there or row['impossible'], f'no reason: {row}')
    tap.expect(network() == before, 'devices or namespaces were left behind')


@tap.subtest('a measurement that is killed leaves no device, namespace or process')
def _():
    measured('--paths', 'drop', '--sources', 'skbs', '--sizes', '64')
    before = network()
    child = launch.start([KERNEL, '--seconds', '30', '--paths', 'afxdp', '--sizes', '64'])
    time.sleep(1.0)
    os.kill(child.pid, signal.SIGKILL)
    child.communicate()
    deadline = time.monotonic() + 5
    while (left := session(child.pid)) and time.monotonic() < deadline:
        time.sleep(0.05)
    tap.expect(not left, f'processes were left behind: {left}')
    tap.expect(network() == before, 'devices or namespaces were left behind')


@tap.subtest('without the rights it says so, with an exit code of its own')
def _():
    if os.geteuid() != 0:
        ended = launch.run([KERNEL, *QUICK])
    else:
        ended = launch.run(['setpriv', '--bounding-set', '-all', '--inh-caps', '-all', KERNEL, *QUICK])
    tap.expect(ended.code == REFUSED, f'expected exit code {REFUSED}', ended)
    tap.expect(ended.err.startswith('kernel: not measured: ') and ended.out == '', 'no reason, or more than that', ended)


@tap.subtest('a path or size that there is none of is refused with those that there are')
def _():
    for arguments, said in ((['--paths', 'drop,tex'], '`tex` is none of drop, pass, tx, redirect, afxdp'),
                            (['--sizes', '20'], 'a frame has 60 to 8000 bytes')):
        ended = launch.run([KERNEL, *arguments])
        tap.expect(ended.code == 2 and said in ended.err, f'expected exit code 2 and: {said}', ended)


if __name__ == '__main__':
    sys.exit(tap.main())
