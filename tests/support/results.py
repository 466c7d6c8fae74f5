"""Reads what `meson test` left in meson-logs/ as single cases: GoogleTest cases and TAP subtests, not programs.

Meson alone would lose some: a GoogleTest program that crashes writes no report (meson then counts the program as one), and
one that fails after its last case, as under a leak checker, has a report without a failure.
"""

import json
import re
import xml.etree.ElementTree
from dataclasses import dataclass

PASSED, FAILED, SKIPPED = 'passed', 'failed', 'skipped'
TAIL_LINES = 30  # of a failed case's output


@dataclass
class Case:
    name: str  # "unit / config: Config.UnknownKeyNamesTheNearestOne"
    outcome: str
    detail: str = ''  # why it was skipped; the end of a failed one's output


def tail(text, lines=TAIL_LINES):
    kept = text.rstrip().splitlines()
    return '\n'.join(kept[-lines:])


def _gtest_case(program, suite, node):
    name = f"{program}: {suite}.{node.get('name')}"
    failures = [failure.text or failure.get('message', '') for failure in node.findall('failure')]
    skipped = node.find('skipped')
    if failures:
        return Case(name, FAILED, tail('\n'.join(failures)))
    if skipped is not None:
        return Case(name, SKIPPED, ' '.join((skipped.get('message') or 'no reason given').split()))
    if node.get('status') == 'notrun':
        return Case(name, SKIPPED, 'switched off in the source')
    return Case(name, PASSED)


def _gtest_cases_before_a_crash(program, stdout):
    """Cases of a program that died, by what it printed: those that ended, and the one it was in."""
    cases, running = [], None
    for line in stdout.splitlines():
        mark = re.match(r'\[ *(RUN|OK|FAILED|SKIPPED) *\] (\S+?)(?: \(\d+ ms\))?$', line)
        if not mark:
            continue
        state, name = mark.groups()
        if state == 'RUN':
            running = name
        elif name.rstrip(',') == running:
            outcome = {'OK': PASSED, 'FAILED': FAILED, 'SKIPPED': SKIPPED}[state]
            cases.append(Case(f'{program}: {running}', outcome, '' if outcome == PASSED else 'see the output of the crash'))
            running = None
    return cases, running


def _tap_cases(program, stdout):
    """TAP subtests as tests/e2e/tap.py prints them; the lines with '#' that follow one belong to it."""
    cases = []
    for line in stdout.splitlines():
        mark = re.match(r'(not )?ok\b *\d* *-? *(.*?)(?: # SKIP\b *(.*))?$', line, re.IGNORECASE)
        if mark:
            bad, claim, reason = mark.groups()
            if reason is not None:
                cases.append(Case(f'{program}: {claim}', SKIPPED, reason or 'no reason given'))
            else:
                cases.append(Case(f'{program}: {claim}', FAILED if bad else PASSED))
        elif line.startswith('#') and cases and cases[-1].outcome == FAILED:
            cases[-1].detail += line.lstrip('# ') + '\n'
    for case in cases:
        case.detail = tail(case.detail)
    return cases


def _how_it_ended(run):
    if run['result'] == 'TIMEOUT':
        return f"took longer than its time limit, stopped after {run['duration']:.0f} s"
    code = run['returncode']
    return f'killed by signal {-code}' if code < 0 else f'exit code {code}'


def _cases_of(run, suites):
    """All cases of one program: `run` is its line in testlog.json, `suites` its GoogleTest report's suites, if any."""
    program = run['name'].split(':', 1)[-1]
    stdout = run.get('stdout') or ''
    output = tail(stdout + '\n' + (run.get('stderr') or ''))
    running = None
    if suites:
        cases = [_gtest_case(program, name, node) for name, suite in suites for node in suite.findall('testcase')]
    elif '[==========]' in stdout:
        cases, running = _gtest_cases_before_a_crash(program, stdout)
    else:
        cases = _tap_cases(program, stdout)
    if run['result'] in ('OK', 'EXPECTEDFAIL'):
        return cases or [Case(program, PASSED)]
    if run['result'] == 'SKIP':
        return cases or [Case(program, SKIPPED, 'the whole program')]
    if running:
        cases.append(Case(f'{program}: {running}', FAILED, f'{_how_it_ended(run)}\n{output}'))
    elif not any(case.outcome == FAILED for case in cases):
        cases.append(Case(f'{program}: all of it', FAILED, f'{_how_it_ended(run)}\n{output}'))
    return cases


def read(logs):
    """The cases of the last `meson test` whose folder of logs is `logs` (a pathlib.Path). Empty when it ran nothing."""
    try:
        runs = [json.loads(line) for line in (logs / 'testlog.json').read_text().splitlines()]
        report = xml.etree.ElementTree.parse(logs / 'testlog.junit.xml').getroot()
    except (OSError, xml.etree.ElementTree.ParseError):
        return []
    by_program = {}
    for suite in report.findall('testsuite'):
        if any(case.get('status') for case in suite.findall('testcase')):  # only GoogleTest gives its cases a status
            for run in runs:
                _, found, name = suite.get('name').partition(f".{run['name']}.")
                if found:
                    by_program.setdefault(run['name'], []).append((name, suite))
    return [case for run in runs for case in _cases_of(run, by_program.get(run['name']))]


def summary(cases):
    """The closing line's text."""
    count = {outcome: sum(case.outcome == outcome for case in cases) for outcome in (PASSED, FAILED, SKIPPED)}
    return f'{count[PASSED]} passed, {count[FAILED]} failed, {count[SKIPPED]} skipped'
