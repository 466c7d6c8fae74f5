#!/usr/bin/python3
"""The captures of Debian's tcpdump source package, most of them made to break a parser, through every buffer policy.

Many captures play at once, each a source of its own in one configuration: what counts is that buffers survive them.
"""

import functools
import json
import re
import sys

import launch
import tap
from launch import halfpage, nothing_left, scratch

FOLDER = launch.ROOT / 'captures'
BATCH = 300  # captures in one configuration
SECONDS = 40  # for one run, plain

HEAD = '''\
version: 1
eal: {{preset: lab, memory: 384MiB}}
pools:
  - {{name: packets, size: 16384, cache: 128, {policy}}}
programs:
  - name: judge
    kind: filter
    frags: true
    rules:
      - {{name: udp, protocol: udp, verdict: tx}}
      - {{name: arp, ethertype: arp, verdict: drop}}
    default: pass
veth:
  - name: pair
    ring: 1024
    ends:
      - {{name: veth0, program: judge, sink: stack, mtu: 65535}}
      - {{name: veth1, sink: returned, mtu: 65535}}
sinks:
  - {{name: stack, kind: count}}
  - {{name: returned, kind: count}}
measure: {{duration: 20s}}
traffic:
'''
SOURCE = "  - {{name: s{number}, source: capture, file: '{capture}', loop: false, into: veth1, pool: packets}}\n"

POLICIES = [
    *(f'ops: page_frag, data_room: {room}, page_size: {size}KiB' for size, rooms in ((4, (256, 2176)), (32, (256, 2176)),
                                                                                    (64, (256, 2176))) for room in rooms),
    *(f'ops: page_frag, data_room: {room}, recycle: {mode}' for mode in ('ring', 'off') for room in (256, 2176)),
    *(f'ops: ring_mp_mc, data_room: {room}' for room in (256, 2176)),
]


def batches(captures):
    return [captures[at:at + BATCH] for at in range(0, len(captures), BATCH)]


def write_config(folder, policy, captures):
    file = folder / 'replay.yaml'
    sources = (SOURCE.format(number=number, capture=capture) for number, capture in enumerate(captures))
    file.write_text(HEAD.format(policy=policy) + ''.join(sources))
    return file


def refused(captures):
    """Those of `captures` that --check refuses, {capture: the line that says why}."""
    with scratch() as folder:
        ended = halfpage('--config', write_config(folder, POLICIES[0], captures), '--check', seconds=SECONDS, cwd=folder)
    tap.expect(ended.code in (0, 2), ended)
    reasons = {}
    for capture in captures:
        for line in ended.err.splitlines():
            if re.search(rf'(?<![\w-]){re.escape(capture.name)}(?![\w.-])', line):
                reasons[capture] = line
    tap.expect((ended.code == 2) == bool(reasons), 'refused, and no capture is named', ended)
    return reasons


def need_captures():
    if not FOLDER.is_dir():
        raise tap.Skip('captures/ is not there: tools/setup --captures could not fetch it (network?)')


@functools.cache
def sorted_out():
    """(captures that are taken, {capture that is refused: why}) of the whole package."""
    captures = sorted([*FOLDER.glob('*.pcap'), *FOLDER.glob('*.pcapng')])
    reasons = {}
    for batch in batches(captures):
        reasons.update(refused(batch))
    return [capture for capture in captures if capture not in reasons], reasons


@tap.subtest('each capture of the package is taken or refused by name with a reason, and 300 or more are taken')
def _():
    need_captures()
    usable, reasons = sorted_out()
    for batch in batches(usable):
        tap.expect(not refused(batch), 'refused only after others were taken out')
    for capture, line in reasons.items():
        tap.expect(len(line) > len(str(capture)) + 20, f'no reason: {line}')
    tap.expect(len(usable) >= 300, f'{len(usable)} captures taken, {len(reasons)} refused', *list(reasons.values())[:20])


def register_policies():
    for policy in POLICIES:

        @tap.subtest(f'every capture goes through balanced with {policy}')
        def _(policy=policy):
            need_captures()
            for batch in batches(sorted_out()[0]):
                with scratch() as folder, nothing_left():
                    report = folder / 'report.json'
                    ended = halfpage('--config', write_config(folder, policy, batch), '--json', report, seconds=SECONDS,
                                     cwd=folder)
                    launch.expect_good(ended)
                    counted = json.loads(report.read_text())
                device = next(device for device in counted['devices'] if device['name'] == 'veth0')
                sent = sum(source['sent'] for source in counted['traffic'])
                tap.expect(sent > len(batch), f'{sent} frames of {len(batch)} captures', ended)
                tap.expect(device['received'] == sent, f"{sent} sent, {device['received']} received", ended)


register_policies()

if __name__ == '__main__':
    sys.exit(tap.main())
