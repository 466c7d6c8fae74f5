#!/usr/bin/python3
"""Many devices and few workers: fair turns, several senders into one queue, other workers, and what users of veth report."""

import json
import os
import sys

import launch
import tap

SHORT = os.environ.get('SANITIZED') == '1'
FRAMES = 2000 if SHORT else 20000


def run(text, code=0):
    """The JSON report of a run that balances."""
    with launch.scratch() as folder, launch.nothing_left():
        (folder / 'case.yaml').write_text('version: 1\neal: {preset: lab, memory: 512MiB}\n'
                                          'pools: [{name: packets, size: 16384, cache: 64}]\n' + text)
        ended = launch.halfpage('--config', folder / 'case.yaml', '--json', folder / 'report.json', cwd=folder)
        launch.expect_good(ended, code)
        return json.loads((folder / 'report.json').read_text())


def by_name(things):
    return {thing['name']: thing for thing in things}


def pairs(names, ends='{{name: {0}0, program: judge}}, {{name: {0}1}}', ring=256):
    return 'veth:\n' + ''.join(f'  - {{name: {name}, ring: {ring}, ends: [{ends.format(name)}]}}\n' for name in names)


@tap.subtest('a worker gives each of its devices one turn of at most 64 frames a round: a flood into one starves no other')
def _():
    names = [f'd{i}' for i in range(6)]
    polled = [f'{name}{end}' for name in names for end in (0, 1)]
    trickles = ''.join(f'  - {{name: t{i}, into: d{i}1, burst: 1, count: {FRAMES // 10}}}\n' for i in range(1, 6))
    report = run(pairs(names) + f'''programs: [{{name: judge, kind: drop}}]
traffic:
  - {{name: flood, into: d01, burst: 64, count: {FRAMES * 10}}}
{trickles}lcores:
  workers:
    - {{poll: [{', '.join(polled)}], generate: [t1, t2, t3, t4, t5]}}
    - {{generate: [flood]}}
''')
    devices = by_name(report['devices'])
    polls = {devices[name]['polls'] for name in polled}
    tap.expect(len(polls) == 1, f'turns differ: {polls}')
    for name in polled:
        device = devices[name]
        tap.expect(device['received'] <= 64 * (device['polls'] - device['empty_polls']), f'{name}: more than its budget')
    for source in report['traffic'][1:]:
        tap.expect(source['sent'] == FRAMES // 10 and not any(source['refused'].values()), f'{source}')
    # One frame a round comes in and one turn a round takes it out: the bound on what ever waits.
    waited = [devices[f'd{i}0']['ring_high_water'][0] for i in range(1, 6)]
    tap.expect(max(waited) <= 1, f'frames waited: {waited}')


@tap.subtest('sources of one device start at different queues and go round them: they do not all meet in one')
def _():
    sizes = (60, 100, 200, 300, 400)
    report = run('programs: [{name: judge, kind: drop}]\nveth: [{name: front, queues: 3, ends: [{name: veth0, program: judge}, '
                 '{name: veth1}]}]\ntraffic:\n' +
                 ''.join(f'  - {{name: s{size}, into: veth1, burst: 1, count: 1, sizes: {size}}}\n' for size in sizes))
    counters = by_name(report['devices'])['veth0']['xstats']
    for queue, expected in enumerate((60 + 300, 100 + 400, 200)):
        got = counters[f'rx_queue_{queue}_xdp_bytes']
        tap.expect(got == expected, f'queue {queue}: {got} bytes, not {expected}')


@tap.subtest('three lcores send into one queue: each frame arrives once, whoever sent it')
def _():
    sources = ''.join(f'  - {{name: s{i}, into: a1, burst: 16, destination_port: {i}, count: 1300}}\n' for i in (1, 2, 3))
    rules = ', '.join(f'{{name: from{i}, destination_port: {i}, verdict: pass}}' for i in (1, 2, 3))
    # The ring holds all of them: what is not there at the end was lost between the senders.
    report = run(pairs(['a'], ring=4096) + f'''programs: [{{name: judge, kind: filter, default: aborted, rules: [{rules}]}}]
traffic:
{sources}lcores:
  workers: [{{poll: [a0, a1]}}, {{generate: [s1]}}, {{generate: [s2]}}, {{generate: [s3]}}]
''')
    a0 = by_name(report['devices'])['a0']
    for i, source in enumerate(report['traffic'], 1):
        tap.expect(a0['rules'][f'from{i}'] == source['sent'] == 1300, f'{source}', f'{a0["rules"]}')
    tap.expect(a0['verdicts']['aborted'] == 0, f'{a0["verdicts"]}')


@tap.subtest('two workers redirect into one device while a third one sends through it: the sums of all hands agree')
def _():
    report = run(pairs(['a', 'b']) + f'''  - {{name: c, ends: [{{name: c0}}, {{name: c1, gro: true}}]}}
programs: [{{name: judge, kind: redirect, target: c0}}]
traffic:
  - {{name: one, into: a1, count: {FRAMES}}}
  - {{name: two, into: b1, count: {FRAMES}}}
  - {{name: direct, into: c0, count: {FRAMES}}}
lcores:
  workers: [{{poll: [a0, a1], generate: [one]}}, {{poll: [b0, b1], generate: [two]}},
            {{poll: [c0, c1], generate: [direct]}}]
''')
    devices, direct = by_name(report['devices']), report['traffic'][2]
    redirected = devices['a0']['redirect']['sent'] + devices['b0']['redirect']['sent']
    tap.expect(devices['c1']['received'] == redirected + direct['sent'], f'{devices["c1"]["received"]}', f'{redirected}')
    tap.expect(redirected > 0, 'nothing was redirected')


@tap.subtest('32 devices on two workers: every one is polled and none starves')
def _():
    names = [f'd{i}' for i in range(16)]
    verdicts = ['{name: p0, kind: drop}', '{name: p1, kind: pass}', '{name: p2, kind: tx}',
                '{name: p3, kind: redirect, target: d00}']
    ends = 'veth:\n' + ''.join(f'  - {{name: {name}, ring: 64, ends: [{{name: {name}0, program: p{i % 4}}}, '
                               f'{{name: {name}1, gro: true}}]}}\n' for i, name in enumerate(names))
    sources = ''.join(f'  - {{name: s{i}, into: {name}1, count: {FRAMES // 10}}}\n' for i, name in enumerate(names))
    half = [f'{name}{end}' for name in names[:8] for end in (0, 1)], [f'{name}{end}' for name in names[8:] for end in (0, 1)]
    report = run(ends + f'''programs: [{', '.join(verdicts)}]
traffic:
{sources}lcores:
  workers:
    - {{poll: [{', '.join(half[0])}], generate: [{', '.join(f's{i}' for i in range(8))}]}}
    - {{poll: [{', '.join(half[1])}], generate: [{', '.join(f's{i}' for i in range(8, 16))}]}}
''')
    devices = by_name(report['devices'])
    for name, source in zip(names, report['traffic']):
        tap.expect(devices[f'{name}0']['received'] == source['sent'] == FRAMES // 10, f'{name}: {source}')
    for mine in half:
        polls = {devices[name]['polls'] for name in mine}
        tap.expect(len(polls) == 1 and polls.pop() > 0, f'turns differ: {polls}')


@tap.subtest('a cpumap spreads frames over workers: what their rings refuse is ring_full, all else is judged there')
def _():
    rules = ', '.join(f'{{destination_port: {i}, verdict: redirect, map: cpus, key: {i}}}' for i in range(1, 4))
    report = run(pairs(['a'], '{{name: {0}0, program: judge, sink: stack}}, {{name: {0}1}}') + f'''programs:
  - {{name: judge, kind: filter, default: drop, rules: [{rules}]}}
  - {{name: second, kind: drop}}
maps:
  - {{name: cpus, kind: cpumap, entries: [{{key: 1, worker: 0}}, {{key: 2, worker: 1, ring: 16, program: second}},
                                        {{key: 3, worker: 2}}]}}
sinks: [{{name: stack}}]
traffic:
  - {{name: s, into: a1, destination_port: 1, ports: 3, flows: 3, count: {3 * FRAMES}}}
lcores:
  workers: [{{poll: [a0, a1], generate: [s]}}, {{}}, {{}}]
''')
    a0, lanes = by_name(report['devices'])['a0'], by_name(report['lanes'])
    tap.expect(a0['redirect']['to_workers'] == sum(lane['received'] + lane['left_in_ring'] for lane in lanes.values()),
               f'{a0["redirect"]}', f'{lanes}')
    tap.expect(all(lane['received'] > 0 for lane in lanes.values()), f'{lanes}')
    tap.expect(lanes['cpus[2]']['verdicts']['drop'] == lanes['cpus[2]']['received'], f'{lanes["cpus[2]"]}')
    passed = lanes['cpus[1]']['verdicts']['pass'] + lanes['cpus[3]']['verdicts']['pass']
    tap.expect(by_name(report['sinks'])['stack']['frames'] == passed, f'{report["sinks"]}')
    lost = {reason: count for reason, count in a0['redirect']['errors'].items() if count and reason != 'ring_full'}
    tap.expect(not lost, f'{lost}')


@tap.subtest('mode kernel: 100 redirected to a peer without program are 100 peer_no_xdp; with pass, or gro, 100 arrive')
def _():
    for peer, arrive in (('', 0), (', program: through', 100), (', gro: true', 100)):
        report = run(f'''veth:
  - {{name: a, ends: [{{name: a0, program: away}}, {{name: a1}}]}}
  - {{name: b, mode: kernel, ends: [{{name: b0}}, {{name: b1{peer}}}]}}
programs: [{{name: away, kind: redirect, target: b0}}, {{name: through, kind: pass}}]
traffic: [{{name: s, into: a1, count: 100}}]
''')
        devices = by_name(report['devices'])
        tap.expect(devices['b1']['received'] == arrive, f'{peer}: {devices["b1"]["received"]} arrived')
        tap.expect(devices['a0']['redirect']['errors']['peer_no_xdp'] == 100 - arrive, f'{devices["a0"]["redirect"]}')
        tap.expect(devices['a0']['redirect']['sent'] == arrive, f'{devices["a0"]["redirect"]}')


@tap.subtest('what attaching a program costs shows: frames with 128 bytes in front are copied where 256 are asked for')
def _():
    for headroom, copies in (('auto', 0), ('128', 0), ('256', 500)):
        report = run(f'''veth:
  - {{name: a, ends: [{{name: a0, program: judge, copy: {{headroom: {headroom}}}}}, {{name: a1}}]}}
programs: [{{name: judge, kind: pass}}]
traffic: [{{name: s, into: a1, count: 500, sizes: 1514}}]
''')
        copied = by_name(report['devices'])['a0']['copies']
        tap.expect(copied['buffers_copied'].get('headroom', 0) == copies, f'{headroom}: {copied}')
        tap.expect(copied['bytes_copied'].get('headroom', 0) == copies * 1514, f'{headroom}: {copied}')


@tap.subtest('what a program says and what its device delivers can be told apart for each device, and add up')
def _():
    report = run(f'''veth:
  - {{name: a, ends: [{{name: a0, program: away}}, {{name: a1}}]}}
  - {{name: b, ring: 8, ends: [{{name: b0}}, {{name: b1, mtu: 1000, gro: true}}]}}
programs: [{{name: away, kind: redirect, target: b0}}]
traffic: [{{name: s, into: a1, count: {FRAMES}, sizes: [64, 1500]}}]
''')
    devices = by_name(report['devices'])
    a0, b0, b1 = devices['a0'], devices['b0'], devices['b1']
    errors = a0['redirect']['errors']
    tap.expect(a0['verdicts']['redirect'] == FRAMES, f'{a0["verdicts"]}')
    tap.expect(a0['redirect']['sent'] + sum(errors.values()) == FRAMES, f'{a0["redirect"]}')
    tap.expect(errors['mtu'] > 0 and errors['ring_full'] > 0, f'{errors}')
    tap.expect(b0['refused_through']['mtu'] == errors['mtu'], f'{b0["refused_through"]}')
    tap.expect(b0['refused_through']['ring_full'] == errors['ring_full'], f'{b0["refused_through"]}')
    tap.expect(b1['received'] == a0['redirect']['sent'] == b0['xstats']['tx_queue_0_xdp_xmit'], f'{b0["xstats"]}')
    tap.expect(b1['ring_high_water'][0] <= 8, f'{b1["ring_high_water"]}')


sys.exit(tap.main())
