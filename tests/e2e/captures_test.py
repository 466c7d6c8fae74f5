#!/usr/bin/python3
"""Every capture that Debian's gopacket and sip-tester packages hold, the damaged ones too, through halfpage."""

import json
import pathlib
import shutil
import sys

import captures
import launch
import tap
from launch import halfpage, nothing_left, scratch

FOLDERS = [pathlib.Path('/usr/share/gocode/src/github.com/google/gopacket'), pathlib.Path('/usr/share/sip-tester')]
SECONDS = 30

CONFIG = '''\
version: 1
eal: {{preset: lab, memory: 256MiB}}
pools:
  - {{name: packets, ops: page_frag, size: 8192, data_room: 2176, cache: 256}}
programs:
  - name: judge
    kind: filter
    frags: true
    rules:
      - {{name: udp, protocol: udp, verdict: tx}}
      - {{name: arp, ethertype: arp, verdict: drop}}
    default: {default}
veth:
  - name: pair
    ends:
      - {{name: veth0, program: {program}, sink: stack, mtu: 65535}}
      - {{name: veth1, sink: returned, mtu: 65535}}
sinks:
  - {stack}
  - {{name: returned, kind: count}}
traffic:
  - {{name: replay, source: capture, file: '{capture}', loop: false, into: veth1, pool: packets}}
measure: {{duration: 20s}}
'''


def write_config(folder, capture, default='pass', program='judge', stack='{name: stack, kind: count}'):
    file = folder / 'replay.yaml'
    file.write_text(CONFIG.format(capture=capture, default=default, program=program, stack=stack))
    return file


def replay(folder, config):
    """Runs `config` to its capture's end. Returns (how it ended, the JSON report or None)."""
    report = folder / 'report.json'
    ended = halfpage('--config', config, '--json', report, seconds=SECONDS, cwd=folder)
    return ended, json.loads(report.read_text()) if report.exists() else None


def expect_through_or_refused(capture):
    with scratch() as folder, nothing_left():
        config = write_config(folder, capture)
        ended, report = replay(folder, config)
    tap.expect(ended.code in (0, 2), 'a capture goes through (0) or is refused with a reason (2)', ended)
    if ended.code == 2:
        tap.expect(capture.name in ended.err, 'the refusal does not name the capture', ended)
        return None
    launch.expect_good(ended)
    source, = report['traffic']
    device = next(device for device in report['devices'] if device['name'] == 'veth0')
    tap.expect(source['generated'] > 0, 'a capture without one usable frame is refused, not played', ended)
    tap.expect(device['received'] == source['sent'], f"{source['sent']} sent, {device['received']} received", ended)
    return report


def register_every_capture():
    for folder in FOLDERS:
        for capture in sorted([*folder.rglob('*.pcap'), *folder.rglob('*.pcapng')]):

            @tap.subtest(f'{capture.relative_to(folder.parent)} goes through balanced or is refused with a reason')
            def _(capture=capture):
                expect_through_or_refused(capture)


@tap.subtest('the packages hold at least 50 captures')
def _():
    count = sum(1 for folder in FOLDERS for file in folder.rglob('*.pcap*') if file.is_file())
    tap.expect(count >= 50, f'{count} captures below {", ".join(map(str, FOLDERS))}; run tools/setup')


register_every_capture()


@tap.subtest('as many frames are generated as the capture has records')
def _():
    for capture in (FOLDERS[0] / 'pcap' / 'test_ethernet.pcap', FOLDERS[1] / 'g711a.pcap'):
        report = expect_through_or_refused(capture)
        tap.expect(report, f'{capture} was refused')
        records = len(captures.read(capture))
        tap.expect(report['traffic'][0]['generated'] == records, f'{capture.name}: {records} records', report['traffic'])


@tap.subtest('a capture of another link type is refused by its name')
def _():
    with scratch() as folder:
        ended, _ = replay(folder, write_config(folder, FOLDERS[0] / 'pcap' / 'test_loopback.pcap'))
    tap.expect(ended.code == 2, ended)
    tap.expect('link type' in ended.err.lower() or 'ethernet' in ended.err.lower(), ended)


@tap.subtest('every way to cut a capture short is played to the cut or refused')
def _():
    whole = (FOLDERS[0] / 'pcap' / 'test_dns.pcap').read_bytes()
    records = len(captures.read_bytes(whole))
    for length in (0, 1, 23, 24, 30, 39, 40, 60, len(whole) // 2, len(whole) - 1):
        with scratch() as folder:
            capture = folder / 'cut.pcap'
            capture.write_bytes(whole[:length])
            ended, report = replay(folder, write_config(folder, capture))
        tap.expect(ended.code in (0, 2), f'cut to {length} bytes', ended)
        if ended.code == 0:
            tap.expect(0 < report['traffic'][0]['generated'] < records, f'cut to {length} bytes', report['traffic'])


@tap.subtest('what passes is written as it came, frames longer than a room included, and tcpdump reads it')
def _():
    frames = [*captures.read(FOLDERS[0] / 'pcap' / 'test_ethernet.pcap'), *captures.made_up((14, 60, 1514, 2049, 9014, 65535))]
    with scratch() as folder:
        sent, passed = folder / 'in.pcap', folder / 'out.pcap'
        sent.write_bytes(captures.written(frames))
        sink = f"{{name: stack, kind: pcap, file: '{passed}'}}"
        ended, _ = replay(folder, write_config(folder, sent, program="''", stack=sink))
        launch.expect_good(ended)
        if not shutil.which('tcpdump'):
            raise tap.Skip('tcpdump is not installed; run tools/setup')
        read = launch.run(['tcpdump', '-n', '-r', passed, '--count'])
        tap.expect(read.code == 0 and f'{len(frames)} packets' in read.out + read.err, read)
        out = captures.read(passed)
    tap.expect(len(out) == len(frames), f'{len(frames)} frames went in, {len(out)} came out')
    for number, (before, after) in enumerate(zip(frames, out)):
        tap.expect(before == after, f'frame {number} of {len(before)} bytes was changed ({len(after)} bytes now)')


@tap.subtest("timing: capture keeps the file's own times, in every lap; a rate keeps its own")
def _():
    gaps = [0, 1, 1, 60, 5, 0, 0, 90, 2, 40, 1]  # ms: neither one rate nor as fast as it goes
    times = [sum(gaps[:n + 1]) / 1000 for n in range(len(gaps))]
    lap = times[-1] * len(times) / (len(times) - 1)
    for settings, due in ((('timing=capture', 'loop=true', 'count=33'), [lap * turn + at for turn in range(3) for at in times]),
                          (('rate=100', ), [number / 100 for number in range(11)])):
        with scratch() as folder:
            sent, passed = folder / 'in.pcap', folder / 'out.pcap'
            sent.write_bytes(captures.written(captures.made_up([60] * len(gaps)), times))
            config = write_config(folder, sent, program="''", stack=f"{{name: stack, kind: pcap, file: '{passed}'}}")
            options = [part for each in settings for part in ('--set', f'traffic[0].{each}')]
            ended = halfpage('--config', config, *options, seconds=SECONDS, cwd=folder)
            launch.expect_good(ended)
            out = [at for at, _ in captures.records(passed.read_bytes())]
        tap.expect(len(out) == len(due), settings, out)
        # A busy machine makes frames late, never early; the least late one tells when the clock began.
        late = sorted(at - wanted for at, wanted in zip(out, due))
        tap.expect(late[len(late) // 2] - late[0] < 0.003 * launch.SLOWER, settings, out, due)
        tap.expect(late[-1] - late[0] < 0.05 * launch.SLOWER, settings, out, due)


if __name__ == '__main__':
    sys.exit(tap.main())
