#!/usr/bin/python3
"""tests/packets: each case is a configuration, a capture that goes in, captures that must come out, and counts."""

import json
import re
import sys

import captures
import launch
import tap

CASES = sorted((launch.ROOT / 'tests' / 'packets').glob('*/case.yaml'))


def counts(report):
    """Everything that a line `# expect: NAME WHAT N` can name, as {'NAME WHAT': N}."""
    found = {}
    for device in report['devices']:
        found[f'{device["name"]} received'] = device['received']
        for kind in ('verdicts', 'errors', 'rules'):
            for what, count in device[kind].items():
                found[f'{device["name"]} {what}'] = count
    for source in report['traffic']:
        found[f'{source["name"]} sent'] = source['sent']
        for reason, count in source['refused'].items():
            found[f'{source["name"]} refused {reason}'] = count
    for sink in report['sinks']:
        for what in ('frames', 'bytes', 'written'):
            found[f'{sink["name"]} {what}'] = sink[what]
        reader = sink.get('reader', {'dropped': {}, 'counters': {}})
        for what, count in {**reader, **reader['dropped'], **reader['counters'], 'sent': sink['sent']}.items():
            found[f'{sink["name"]} {what}'] = count
    return found


def expect_counts(case, report):
    expected = re.findall(r'^# expect: (.+) (\d+)$', case.read_text(), re.MULTILINE)
    tap.expect(expected, f'{case} has no line `# expect: NAME WHAT N`')
    found = counts(report)
    wrong = [f'{name}: expected {count}, got {found.get(name, "no such count")}'
             for name, count in expected if found.get(name) != int(count)]
    tap.expect(not wrong, *wrong)


def expect_captures(case, folder):
    expected = sorted((case.parent / 'expect').glob('*.pcap'))
    tap.expect(expected, f'{case.parent}/expect holds no capture')
    for path in expected:
        want, got = captures.read(path), captures.read(folder / path.name)
        tap.expect(len(want) == len(got), f'{path.name}: expected {len(want)} frames, got {len(got)}')
        for number, (one, other) in enumerate(zip(want, got)):
            tap.expect(one == other, f'{path.name}: frame {number} differs', f'expected {one[:96].hex()}',
                       f'got      {other[:96].hex()}')


def register(case):
    claim = case.read_text().splitlines()[0].lstrip('# ')

    @tap.subtest(f'{case.parent.name}: {claim}')
    def _():
        with launch.scratch() as folder, launch.nothing_left():
            ended = launch.halfpage('--config', case, '--json', folder / 'report.json', cwd=folder)
            launch.expect_good(ended)
            expect_counts(case, json.loads((folder / 'report.json').read_text()))
            expect_captures(case, folder)


for found_case in CASES:
    register(found_case)

sys.exit(tap.main())
