"""What a handler owes besides speed: DPDK's own tests come to stock's verdict, and hand-over at the limit loses nothing."""

import dataclasses
import pathlib
import subprocess
import sys

import autotests
import stock
import table

TITLE = 'contracts'
STRESS = pathlib.Path(__file__).resolve().parents[2] / 'build' / 'tests' / 'unit' / 'pool_stress_test'


@dataclasses.dataclass
class Autotest:
    test: str
    where: str
    memory: tuple

    @property
    def name(self):
        return f'{self.test} {self.where}'

    def line(self):
        if self.memory == stock.HUGE and stock.launch.hugepages_free() < stock.PAGES:
            return table.Line(self.name, '', 'OK', None, 'too few hugepages are free')
        try:
            (ours, _), (theirs, _) = autotests.compare(self.test, self.memory, 'page_frag')
        except AssertionError as error:  # one that did not end in time
            return table.Line(self.name, '', 'OK', False, str(error).splitlines()[0])
        return table.Line(self.name, str(ours[1]), str(theirs[1]), ours == theirs and theirs[1] is not None,
                          f'exit code {ours[0]} against {theirs[0]}')


@dataclasses.dataclass
class Stress:
    name: str = 'stress: 2 lcores, 3 pools, hand-over at the limit of memory'

    def line(self):
        done = subprocess.run([str(STRESS)], capture_output=True, text=True)
        end = [words for words in done.stdout.splitlines() if words.startswith(('[  PASSED  ]', '[  FAILED  ]'))]
        return table.Line(self.name, 'clean' if done.returncode == 0 else 'faults', 'clean', done.returncode == 0,
                          f'{end[0] if end else f"ended with {done.returncode}"}; tools/test --sanitize runs it under ASan '
                          'and TSan')


def rows():
    yield Stress()
    for where, memory in stock.MEMORIES.items():
        for test in autotests.AUTOTESTS:
            yield Autotest(test, where, memory)


def run(chosen):
    lines = []
    for row in chosen:
        print(f'\r{TITLE}: {row.name:70}', end='', file=sys.stderr, flush=True)
        lines.append(row.line())
    print(file=sys.stderr)
    return lines
