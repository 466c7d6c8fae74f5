"""What a program without an object pays for the compiler: this build against one that has none (tools/build --without-llvm)."""

import os
import subprocess
import sys
import time

import ratios
import table
import testpmd

TARGET = 1.02
STARTS = 5  # of each build in a round, in turn; the quickest and the smallest count
TITLE = 'start-up without an object, against a build without LLVM'
TIME, MEMORY = 'start and end: seconds', 'start and end: peak memory'
COMMAND = ('--config', testpmd.ROOT / 'conf' / 'quickstart.yaml', '--count', '1')
WITH, WITHOUT = 'build', 'build-interpreted'


def one(build):
    """(seconds, peak KiB) of one run that makes one frame."""
    began = time.monotonic()
    child = subprocess.Popen([str(part) for part in (testpmd.ROOT / build / 'app' / 'halfpage', *COMMAND)],
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    said = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.monotonic() - began
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise testpmd.TestpmdError(f'{build}/app/halfpage ended with {child.returncode}:\n{said[-3000:]}')
    return seconds, usage.ru_maxrss


def run(rounds, only):
    """Lines of the rows whose names hold `only`. Compiles what is missing."""
    if not any((only or '') in row for row in (TIME, MEMORY)):
        return []
    done = subprocess.run([testpmd.ROOT / 'tools' / 'build', '--without-llvm', 'app/halfpage'],
                          stdout=sys.stderr)
    if done.returncode != 0:
        raise testpmd.TestpmdError('tools/build --without-llvm failed; what it said is above')
    seconds, memory, detail = [], [], {}
    for number in range(-1, rounds):
        least = {}
        for turn in range(STARTS):
            for build in (WITH, WITHOUT) if (number + turn) % 2 == 0 else (WITHOUT, WITH):
                least[build] = [min(pair) for pair in zip(one(build), least.get(build, (float('inf'),) * 2))]
        if number >= 0:
            seconds.append(least[WITH][0] / least[WITHOUT][0])
            memory.append(least[WITH][1] / least[WITHOUT][1])
            detail = least
    lines = []
    for row, values, index, unit in ((TIME, seconds, 0, 's'), (MEMORY, memory, 1, 'KiB')):
        if (only or '') in row:
            both = ' against '.join(f'{detail[build][index]:.4g} {unit}' if index == 0 else f'{detail[build][index]} {unit}'
                                    for build in (WITH, WITHOUT))
            lines.append(table.of_ratios(row, values, f'{TARGET:.2f}', ratios.at_most(values, TARGET), both))
    return lines
