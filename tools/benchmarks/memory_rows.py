"""What buffers take of memory: the rows that tests/unit/memory_figures_test records, each with its target. No rounds are
needed: they are counts, the same on every run."""

import json
import pathlib
import subprocess
import tempfile

import table
import testpmd

TITLE = 'memory'
PROGRAM = pathlib.Path(__file__).resolve().parents[2] / 'build' / 'tests' / 'unit' / 'memory_figures_test'
# With hugepages a stock pool is made and measured; the rows that are about life without them come from the other run.
RUNS = (['--hugepages'], ['--gtest_filter=WithoutHugepages.*'])


def lines_of(case, suite):
    """The rows that one test recorded; where it recorded none, a line that says why."""
    rows = sorted((int(key[3:]), value) for key, value in case.items() if key.startswith('row'))
    for _, row in rows:
        name, measured, target, met, detail = row.split(';', 4)
        yield table.Line(name, measured, target, met == '1', detail)
    if not rows:
        failures = ' '.join(failure['failure'] for failure in case.get('failures', []))
        yield table.Line(f"{suite}.{case['name']}", '', '', False if failures else None,
                         failures.replace('\n', ' ') or 'skipped: too few hugepages are free')


def recorded(arguments):
    """The rows of one run of the program, in the order of its tests."""
    with tempfile.TemporaryDirectory(prefix='halfpage-') as folder:
        report = pathlib.Path(folder) / 'report.json'
        command = [str(PROGRAM), *arguments, f'--gtest_output=json:{report}']
        done = subprocess.run(command, capture_output=True, text=True)
        try:
            suites = json.loads(report.read_text())['testsuites']
        except (OSError, ValueError):
            raise testpmd.TestpmdError(f'{" ".join(command)}\nended with {done.returncode}:\n'
                                        f'{(done.stdout + done.stderr)[-3000:]}') from None
    return [line for suite in suites for case in suite['testsuite'] for line in lines_of(case, suite['name'])]


def run(wanted):
    """Lines whose name holds `wanted`."""
    return [line for arguments in RUNS for line in recorded(arguments) if wanted in line.name]
