#!/usr/bin/python3
"""`kind: object`: unmodified XDP objects on devices, compiled and interpreted."""

import contextlib
import json
import pathlib
import re
import sys
import time

import captures
import tap
from launch import HALFPAGE, QUICKSTART, expect_good, finish, halfpage, nothing_left, scratch, start

OBJECTS = HALFPAGE.parents[1] / 'tests' / 'bpf'
FORWARD = OBJECTS / 'forward.bpf.o'
BEHIND = OBJECTS / 'behind.bpf.o'
DEBIAN = '/usr/lib/x86_64-linux-gnu/bpf/'

HEAD = '''version: 1
eal: {preset: lab, memory: 128MiB}
pools:
  - {name: packets, size: 2048, data_room: 2176, cache: 32}
'''
PAIRS = '''veth:
  - {name: a, ends: [{name: veth0, program: gate, sink: passed, mtu: MTU}, {name: veth1, sink: back, mtu: MTU, gro: true}]}
  - {name: b, ends: [{name: veth2, mtu: MTU}, {name: veth3, sink: over, gro: true, mtu: MTU}]}
sinks:
  - {name: passed, kind: pcap, file: passed.pcap}
  - {name: back, kind: pcap, file: back.pcap}
  - {name: over, kind: pcap, file: over.pcap}
traffic:
  - {name: frames, source: capture, file: in.pcap, into: veth1, pool: packets, burst: 8}
measure: {duration: 20s}
'''


def compiled():
    """Whether this build has the compiler."""
    return (HALFPAGE.parents[1] / 'xdp_emul/bpf/libhalfpage_bpf_llvm.so').exists()


def run_both(programs, frames, mtu=1500):
    """Runs the configuration compiled and interpreted. Both must agree; gives the report and the captures."""
    results = []
    for jit in ('auto', 'off'):
        with scratch() as folder, nothing_left():
            (folder / 'in.pcap').write_bytes(captures.written(frames))
            text = HEAD + 'programs:\n' + programs.replace('JIT', jit) + PAIRS.replace('MTU', str(mtu))
            (folder / 'run.yaml').write_text(text)
            ended = halfpage('--config', folder / 'run.yaml', '--json', folder / 'report.json', cwd=folder)
            expect_good(ended)
            report = json.loads((folder / 'report.json').read_text())
            wanted = 'LLVM' if jit == 'auto' and compiled() else 'interpreter'
            for each in report['objects']:
                tap.expect(each['run_by'] == wanted, each)
            files = {name: captures.read(folder / f'{name}.pcap') for name in ('passed', 'back', 'over')}
            results.append((report, files))
    tap.expect(results[0][1] == results[1][1], 'compiled and interpreted differ in what came out')
    tap.expect(results[0][0]['devices'][0]['verdicts'] == results[1][0]['devices'][0]['verdicts'], 'verdicts differ')
    return results[0]


def verdicts(report):
    return {name: count for name, count in report['devices'][0]['verdicts'].items() if count}


def sent_by(last):
    """A frame of 60 bytes whose sender's address ends in `last`."""
    return bytes.fromhex('020000000001' '0200000000') + bytes([last]) + bytes.fromhex('88b5') + bytes(46)


@tap.subtest("Debian's xdp-filter judges frames on a device, by entries that the configuration puts into its maps")
def _():
    frames = [captures.udp(b'x' * 30, 5000, port) for port in (9, 53, 9, 80)]
    report, files = run_both(
        f'  - {{name: gate, kind: object, object: {DEBIAN}xdpfilt_dny_udp.o, jit: JIT,\n'
        '     maps: [{map: filter_ports, key: "hex:00090000", value: 10}]}\n', frames)
    tap.expect(verdicts(report) == {'pass': 2, 'drop': 2}, verdicts(report))
    tap.expect(files['passed'] == [frames[0], frames[2]], files)
    view = report['objects'][0]
    tap.expect(view['runs'] == 4 and view['verdicts']['drop'] == 2 and view['instructions'] > 200, view)
    tap.expect('filter_ports (percpu_array)' in view['maps'], view)


@tap.subtest('a chain shows the next program what the last one passed, built-in or not')
def _():
    frames = [captures.udp(b'x' * 30, 5000, port) for port in (9, 53, 80)]
    report, files = run_both(
        f'  - {{name: udp, kind: object, object: {OBJECTS}/basic.bpf.o, function: udp_drop, jit: JIT}}\n'
        f'  - {{name: swap, kind: object, object: {OBJECTS}/basic.bpf.o, function: swap, jit: JIT}}\n'
        '  - {name: web, kind: filter, rules: [{destination_port: 80, verdict: aborted}]}\n'
        '  - {name: gate, kind: chain, programs: [udp, web, swap]}\n', frames)
    tap.expect(verdicts(report) == {'drop': 1, 'aborted': 1, 'tx': 1}, verdicts(report))
    tap.expect(files['back'] == [frames[1][6:12] + frames[1][:6] + frames[1][12:]], files)
    tap.expect([each['runs'] for each in report['objects']] == [3, 1], report['objects'])


@tap.subtest('metadata of one program is there for the next of the chain')
def _():
    report, _files = run_both(
        f'  - {{name: put, kind: object, object: {FORWARD}, function: put_meta, jit: JIT}}\n'
        f'  - {{name: get, kind: object, object: {FORWARD}, function: get_meta, jit: JIT}}\n'
        '  - {name: gate, kind: chain, programs: [put, get]}\n', [sent_by(1)])
    tap.expect(verdicts(report) == {'tx': 1}, verdicts(report))


@tap.subtest('a program puts a tag in front, in the headroom that is there')
def _():
    frames = captures.made_up([60, 1500])
    report, files = run_both(f'  - {{name: gate, kind: object, object: {OBJECTS}/basic.bpf.o, function: add_tag, jit: JIT}}\n',
                             frames)
    tap.expect(verdicts(report) == {'tx': 2}, verdicts(report))
    tap.expect(files['back'] == [frame[:12] + bytes([0x81, 0, 0, 42]) + frame[12:] for frame in frames], files)


@tap.subtest('frames in several buffers are read, written, moved and cut by a program of section xdp.frags')
def _():
    frames = captures.made_up([2100, 4000, 60])
    report, files = run_both(f'  - {{name: one, kind: object, object: {FORWARD}, function: mark, jit: JIT}}\n'
                             f'  - {{name: two, kind: object, object: {FORWARD}, function: front, jit: JIT}}\n'
                             '  - {name: gate, kind: chain, programs: [one, two]}\n', frames, mtu=4096)
    tap.expect(verdicts(report) == {'pass': 2, 'drop': 1}, verdicts(report))
    wanted = []
    for frame in frames[:2]:
        marked = (frame[:2000] + b'halfpage' + frame[2008:])[:len(frame) - 100]
        wanted.append(marked[:12] + bytes([0x81, 0, 0, 7]) + marked[12:])
    tap.expect(files['passed'] == wanted, [len(frame) for frame in files['passed']])


@tap.subtest('redirects leave through the device that a map or an interface number names, or count as bad targets')
def _():
    frames = [sent_by(last) for last in (0, 1, 255, 254, 7, 0)]
    report, files = run_both(
        f'  - {{name: gate, kind: object, object: {FORWARD}, function: steer, jit: JIT,\n'
        '     maps: [{map: outs, key: 0, device: veth2}, {map: outs, key: 1, value: 99}]}\n', frames)
    tap.expect(verdicts(report) == {'redirect': 5, 'drop': 1}, verdicts(report))
    tap.expect(files['over'] == [frames[0], frames[5]], files['over'])
    tap.expect(files['back'] == [frames[2]], files['back'])
    tap.expect(report['devices'][0]['redirect']['errors']['bad_target'] == 2, report['devices'][0])


@tap.subtest('a fault aborts the frame, is counted, and is told with instruction and packet')
def _():
    report, files = run_both(f'  - {{name: gate, kind: object, object: {FORWARD}, function: careless, jit: JIT}}\n',
                             [bytes(60), bytes(200), bytes(64)])
    tap.expect(verdicts(report) == {'aborted': 2, 'pass': 1}, verdicts(report))
    tap.expect(report['devices'][0]['faults']['program_fault'] == 2, report['devices'][0])
    view = report['objects'][0]
    tap.expect(view['faults'] == 2 and 'byte 100 of a packet of 60' in view['first_fault'], view)
    tap.expect(len(files['passed']) == 1, files)
    report, _files = run_both(f'  - {{name: gate, kind: object, object: {FORWARD}, function: seven, jit: JIT}}\n', [bytes(60)])
    tap.expect(verdicts(report) == {'aborted': 1} and report['objects'][0]['unknown'] == 1, report['objects'])


def typed(folder, lines, programs, *arguments):
    """Runs prompt commands; frames flow from veth1 to veth0 once they say `start`."""
    (folder / 'run.yaml').write_text(HEAD + 'programs:\n' + programs + '''veth:
  - {name: a, ring: 256, ends: [{name: veth0, program: gate, sink: stack}, {name: veth1}]}
sinks:
  - {name: stack, kind: count}
traffic:
''' + f'  - {{name: mix, into: veth1, pool: packets, sizes: [64], rate: 400000}}\n')
    return halfpage('--config', folder / 'run.yaml', '-i', *arguments, stdin=''.join(f'{line}\n' for line in lines), cwd=folder)


@tap.subtest('maps are listed, read by their fields, set and emptied from the prompt; what is wrong says what is there')
def _():
    maps = f'  - {{name: gate, kind: object, object: {OBJECTS / "maps.bpf.o"}, function: count}}\n'
    with scratch() as folder:
        ended = typed(folder, [
            'show bpf maps', 'show bpf programs', 'bpf map set flows 02:00:00:00:00:07 packets=5,bytes=0x700',
            'bpf map get flows 02:00:00:00:00:07', 'bpf map set percpu 3 1:8,2:8', 'bpf map dump percpu',
            'bpf map set outs 2 veth1', 'bpf map dump outs', 'bpf map get .bss 0', 'bpf map delete gate/flows 02:00:00:00:00:07',
            'bpf map dump flows', 'quit'], maps)
        expect_good(ended)
        for said in ('gate/flows: hash, key 6, value 16, at most 16 entries', 'gate/percpu: percpu_array',
                     'program gate: count of ', '{address: 020000000007}: {packets: 5, bytes: 1792}', '3: {packets: 1, bytes: 2}',
                     '2: 2\n', '{seen: 0}', '0 entries'):
            tap.expect(said in ended.out, f'not said: {said}', ended)
        wrong = {'bpf map dump flaws': ('gate/flows',),
                 'bpf map set flows hex:00 5': ('`hex:00`', '6 bytes', 'hex:0a0b', 'address'),
                 'bpf map set flows 1 packts=5': ('packts=5', '16 bytes', 'packets'),
                 'bpf map get flows 02:00:00:00:00:07': ('no entry',),
                 'bpf map delete array 1': ('array', 'set it to 0'),
                 'bpf map set outs 9 veth1': ('8 entries',)}
        ended = typed(folder, [*wrong, 'quit'], maps, '--keep-going')
        for command, words in wrong.items():
            for word in words:
                tap.expect(word in ended.err, f'{command}: stderr does not say: {word}', ended)


@tap.subtest('a map that one of the configuration stands for is edited there, and says so')
def _():
    program = (f'  - {{name: gate, kind: object, object: {OBJECTS / "maps.bpf.o"}, function: count, '
               'maps: [{map: outs, redirect_map: ways}]}\nmaps:\n  - {name: ways, kind: devmap, entries: [{key: 0, device: veth1}]}\n')
    edits = ['bpf map set outs 2 veth1', 'bpf map delete outs 0']
    with scratch() as folder:
        ended = typed(folder, [*edits, 'bpf map dump outs', 'quit'], program, '--keep-going')
    tap.expect(ended.err.count('stands for map outs') == len(edits) and 'redirect_map' in ended.err, ended)
    tap.expect('1 entry' in ended.out, ended)


TWO_WORKERS = '''veth:
  - {name: a, ring: 256, ends: [{name: veth0, program: gate, sink: stack}, {name: veth1}]}
  - {name: b, ring: 256, ends: [{name: veth2, program: gate, sink: other}, {name: veth3}]}
sinks:
  - {name: stack, kind: count}
  - {name: other, kind: count}
traffic:
  - {name: one, into: veth1, pool: packets, sizes: [64], rate: 300000}
  - {name: two, into: veth3, pool: packets, sizes: [64], rate: 300000}
lcores: {workers: [{poll: [veth0, veth1], generate: [one]}, {poll: [veth2, veth3], generate: [two]}]}
'''


@tap.subtest('two workers run an object and share its maps while it is replaced under both and maps are edited: no frame is lost')
def _():
    programs = (f'  - {{name: gate, kind: object, object: {OBJECTS / "maps.bpf.o"}, function: count}}\n'
                f'  - {{name: other, kind: object, object: {OBJECTS / "basic.bpf.o"}, function: pass}}\n')
    lines = ['start']
    for turn in range(150):
        lines += [f'xdp replace veth{turn % 2 * 2} {"other" if turn % 4 < 2 else "gate"}', f'bpf map set flows {turn % 20} {turn},1',
                  f'bpf map delete flows {(turn + 7) % 20}', 'bpf map dump array', f'bpf map set .data 0 hex:{turn:02x}{"00" * 15}']
    lines += ['set rate one 0', 'set rate two 0', 'stop', 'quit']
    with scratch() as folder:
        (folder / 'run.yaml').write_text(HEAD + 'programs:\n' + programs + TWO_WORKERS)
        ended = halfpage('--config', folder / 'run.yaml', '-i', '--json', folder / 'report.json', '--keep-going',
                         stdin=''.join(f'{line}\n' for line in lines), cwd=folder)
        report = json.loads((folder / 'report.json').read_text())
    sent = [source['sent'] for source in report['traffic']]
    gate, other = report['objects']
    tap.expect(min(sent) > 100 and gate['runs'] > 0 and other['runs'] > 0, sent, report['objects'], ended)
    tap.expect(gate['runs'] + other['runs'] == sum(sent) and gate['faults'] + other['faults'] == 0, report['objects'], sent)
    received = {device['name']: device['received'] for device in report['devices']}
    tap.expect([received['veth0'], received['veth2']] == sent, received, sent)
    tap.expect([sink['frames'] for sink in report['sinks'][:2]] == sent, report['sinks'], sent)


@tap.subtest('what is wrong with an object is told before the run, with the key that says it')
def _():
    cases = [
        ('object: nowhere.o', ('programs[0].object', 'nowhere.o')),
        (f'object: {FORWARD}', ('programs[0].function', 'choose one of', 'steer')),
        (f'object: {FORWARD}, function: stear', ('programs[0].function', 'stear', 'steer')),
        (f'object: {FORWARD}, function: steer, maps: [{{map: out, key: 0, value: 1}}]', ('programs[0].maps[0]', 'outs')),
        (f'object: {FORWARD}, function: steer, maps: [{{map: outs, key: 9, value: 1}}]', ('programs[0].maps[0]', '8 entries')),
        (f'object: {FORWARD}, function: steer, maps: [{{map: outs, key: 0, device: veth9}}]', ('maps[0]', 'veth9', 'veth0')),
        (f'object: {FORWARD}, function: steer, maps_of: gate', ('programs[0].maps_of', 'before')),
        (f'object: {FORWARD}, function: steer, frags: true', ('programs[0].frags', 'object')),
    ]
    for keys, words in cases:
        text = HEAD + f'programs:\n  - {{name: gate, kind: object, {keys}}}\n' + PAIRS.replace('MTU', '1500')
        with scratch() as folder:
            (folder / 'in.pcap').write_bytes(captures.written([bytes(60)]))
            (folder / 'run.yaml').write_text(text)
            ended = halfpage('--config', folder / 'run.yaml', '--check')
        tap.expect(ended.code == 2, keys, ended)
        for word in words:
            tap.expect(word in ended.err, f'stderr does not say: {word}', ended)


def second(function, of='steer', name='outs', kind='devmap', leads='device: veth2'):
    """Programs and a map, whose only slot has a second program."""
    return (f'  - {{name: gate, kind: object, object: {BEHIND}, function: {of}, maps: [{{map: {name}, redirect_map: ways}}]}}\n'
            f'  - {{name: second, kind: object, object: {BEHIND}, function: {function}}}\n'
            f'maps:\n  - {{name: ways, kind: {kind}, entries: [{{key: 0, {leads}, program: second}}]}}\n')


@tap.subtest('a program runs where its section says: others are refused, with section, place and the way out')
def _():
    place = 'maps[0].entries[0].program'
    def own(entry):
        return (f'  - {{name: gate, kind: object, object: {BEHIND}, function: steer, maps: [{entry}]}}\n'
                f'  - {{name: second, kind: object, object: {BEHIND}, function: leave}}\n')

    cases = [
        (f'  - {{name: gate, kind: object, object: {BEHIND}, function: leave}}\n',
         ('veth[0].ends[0].program', '`gate` is of section xdp/devmap', '`veth0` is one', 'entry of a devmap', 'into section xdp')),
        (f'  - {{name: gate, kind: object, object: {BEHIND}, function: arrive_frags}}\n',
         ('`gate` is of section xdp.frags/cpumap', 'entry of a cpumap', 'into section xdp.frags')),
        (f'  - {{name: one, kind: object, object: {BEHIND}, function: leave}}\n  - {{name: gate, kind: chain, programs: [one]}}\n',
         ('programs[1].programs[0]', '`one` is of section xdp/devmap', 'in no chain')),
        (second('arrive'), (place, '`second` is of section xdp/cpumap', 'a devmap is of section xdp/devmap', 'compile it')),
        (second('steer'), (place, '`second` is of section xdp,', 'a devmap is of section xdp/devmap')),
        (second('leave', 'steer_cpus', 'cpus', 'cpumap', 'worker: 0'),
         (place, '`second` is of section xdp/devmap', 'a cpumap is of section xdp/cpumap')),
        (second('leave_frags'), (place, '`second` is of section xdp.frags/devmap', '`gate` is of section xdp,',
                                 'compile the first into xdp/devmap or the other into xdp.frags')),
        (second('leave', 'steer_frags'), (place, 'compile the first into xdp.frags/devmap or the other into xdp')),
        (own('{map: outs, key: 0, device: veth2, program: gate}'), ('programs[0].maps[0]', '`gate` is of section xdp,')),
        (own('{map: outs, key: 0, program: second}'), ('programs[0].maps[0]', 'no `device` is named')),
        (own('{map: narrow, key: 0, device: veth2, program: second}'), ('programs[0].maps[0]', 'struct bpf_devmap_val')),
        (own('{map: outs, key: 0, device: veth2, program: secnd}'), ('programs[0].maps[0].program', 'no program named `secnd`')),
    ]
    for programs, words in cases:
        with scratch() as folder:
            (folder / 'in.pcap').write_bytes(captures.written([bytes(60)]))
            (folder / 'run.yaml').write_text(HEAD + 'programs:\n' + programs + PAIRS.replace('MTU', '1500'))
            ended = halfpage('--config', folder / 'run.yaml', '--check')
        tap.expect(ended.code == 2, programs, ended)
        for word in words:
            tap.expect(word in ended.err, f'stderr does not say: {word}', ended)
    with scratch() as folder:
        other = f'  - {{name: other, kind: object, object: {BEHIND}, function: leave}}\n'
        ended = typed(folder, ['xdp replace veth0 other', 'quit'], second('arrive', 'steer_cpus', 'cpus', 'cpumap', 'worker: 0').replace('maps:\n', other + 'maps:\n'), '--keep-going')
    tap.expect('`other` is of section xdp/devmap' in ended.err, ended)


def steered(last, verdict, length=60):
    """A frame whose slot is `last` and of which the program behind it says `verdict`."""
    return sent_by(last)[:14] + bytes([verdict]) + bytes(length - 15)


def left(frame, ingress, egress):
    """What the second program makes of a frame: where it came from, and where it goes."""
    return frame[:4] + bytes([ingress, egress]) + frame[6:]


def programs(*functions):
    return ''.join(f'  - {{name: {name}, kind: object, object: {BEHIND}, function: {function}, jit: JIT{more}}}\n'
                   for name, function, more in functions)


@tap.subtest("behind a devmap's entry a second program sees each frame before it leaves, and only its pass lets it go")
def _():
    frames = [steered(0, verdict) for verdict in (2, 1, 0, 3, 4, 7, 9, 2)] + [steered(1, 1), steered(5, 2)]
    for name, of in (('outs', 'steer'), ('outs_by_key', 'steer_by_key')):
        entries = f', maps: [{{map: {name}, key: 0, device: veth2, program: second}}, {{map: {name}, key: 1, device: veth2}}]'
        report, files = run_both(programs(('gate', of, entries), ('second', 'leave', '')), frames)
        tap.expect(verdicts(report) == {'redirect': 9, 'drop': 1}, verdicts(report))
        tap.expect(files['over'] == [left(frames[0], 1, 3), left(frames[7], 1, 3), frames[8]], files['over'])
        errors = {reason: count for reason, count in report['devices'][0]['redirect']['errors'].items() if count}
        tap.expect(errors == {'devmap_drop': 1, 'devmap_aborted': 4, 'program_fault': 1}, errors)
        tap.expect(report['devices'][0]['redirect']['sent'] == 3 and sum(report['devices'][0]['faults'].values()) == 0, report['devices'][0])
        said = {'pass': 2, 'drop': 1, 'aborted': 3, 'tx': 1, 'redirect': 1}
        tap.expect(report['egress'] == [{'name': 'second', 'verdicts': said, 'faults': 1, 'rules': {}}], report['egress'])
        view = report['objects'][1]
        tap.expect((view['runs'], view['unknown'], view['faults']) == (8, 1, 1), view)


@tap.subtest('behind each entry of a broadcast runs its own program, over its own copy')
def _():
    frames = [steered(0, verdict, length) for verdict, length in ((2, 60), (1, 60), (2, 3000))]
    report, files = run_both(
        programs(('gate', 'everywhere', ', maps: [{map: outs, redirect_map: ways}]'), ('second', 'leave_frags', '')) +
        'maps:\n  - name: ways\n    entries: [{key: 0, device: veth0, program: second}, {key: 1, device: veth2},\n'
        '              {key: 2, device: veth2, program: second}, {key: 5, device: veth2, program: second}]\n', frames, mtu=4096)
    changed = [left(frame, 1, 3) for frame in frames]
    tap.expect(sorted(files['over']) == sorted(frames + 2 * [changed[0], changed[2]]), [len(frame) for frame in files['over']])
    tap.expect(report['devices'][0]['redirect']['errors']['devmap_drop'] == 2, report['devices'][0])
    tap.expect(report['devices'][0]['redirect']['copies'] == 6 and report['egress'][0]['verdicts']['pass'] == 4, report)
    tap.expect(report['maps'][0]['slots'][2]['leads_to'] == 'veth2 behind second', report['maps'])


@tap.subtest('a second program may give frames other lengths, and a built-in one may be behind a map, too')
def _():
    frames = [captures.udp(b'x' * 30, 5000, port) for port in (9, 53, 80)]
    tagged = [frame[:12] + bytes([0x81, 0, 0, 3]) + frame[12:] for frame in frames]
    report, files = run_both(
        programs(('second', 'leave_tagged', '')) +
        '  - {name: gate, kind: filter, rules: [{destination_port: 9, verdict: redirect, map: ways, key: 1}], default: redirect,\n'
        '     default_map: ways}\n  - {name: web, kind: filter, rules: [{name: http, destination_port: 80, verdict: drop}]}\n'
        '  - {name: addressed, kind: forward, mode: mac}\n'
        'maps:\n  - {name: ways, entries: [{key: 0, device: veth2, program: web}, {key: 1, device: veth2, program: second}]}\n', frames)
    tap.expect(files['over'] == [tagged[0], frames[1]] or files['over'] == [frames[1], tagged[0]], files['over'])
    tap.expect(report['egress'][1]['rules'] == {'http': 1, 'default': 1}, report['egress'])
    tap.expect(report['devices'][0]['redirect']['errors']['devmap_drop'] == 1, report['devices'][0])


@tap.subtest('an entry gets and loses its second program from the prompt, by name; what cannot run there says so')
def _():
    own = f'  - {{name: gate, kind: object, object: {BEHIND}, function: steer}}\n' \
          f'  - {{name: second, kind: object, object: {BEHIND}, function: leave}}\n'
    good = ['bpf map set gate/outs 2 veth1,second', 'bpf map set gate/outs 3 veth1', 'bpf map dump gate/outs']
    wrong = {'bpf map set gate/outs 2 veth1,secnd': ('secnd', 'did you mean `second`'),
             'bpf map set gate/outs 2 veth1,gate': ('gate', 'xdp/devmap'),
             'bpf map set gate/outs 2 2,1': ('program 1', 'DEVICE,PROGRAM'),
             'bpf map set gate/narrow 2 veth1,second': ('narrow', 'struct bpf_devmap_val')}
    with scratch() as folder:
        ended = typed(folder, [*good, *wrong, 'quit'], own, '--keep-going')
    tap.expect('2: 2,second\n' in ended.out and '3: 2\n' in ended.out, ended)
    for command, words in wrong.items():
        for word in words:
            tap.expect(word in ended.err, f'{command}: stderr does not say: {word}', ended)


def mapped(text, *arguments):
    """Names of the files that halfpage had mapped at any time of a run of configuration `text`."""
    seen = set()
    with scratch() as folder, nothing_left():
        (folder / 'run.yaml').write_text(text)
        child = start([HALFPAGE, '--config', folder / 'run.yaml', '--duration', '0.3s', *arguments], cwd=folder)
        while child.poll() is None:
            with contextlib.suppress(OSError):
                seen |= set(re.findall(r'/([^/\n]+\.so[.\d]*)$', pathlib.Path(f'/proc/{child.pid}/maps').read_text(), re.MULTILINE))
            time.sleep(0.01)
        expect_good(finish(child, 20))
    return seen


@tap.subtest('neither LLVM nor its module is mapped without an object or with jit: off; with jit: llvm both are')
def _():
    def with_object(jit):
        text = HEAD + f'programs:\n  - {{name: gate, kind: object, object: {OBJECTS}/basic.bpf.o, function: swap, jit: {jit}}}\n'
        return text + """veth:
  - {name: a, ends: [{name: veth0, program: gate}, {name: veth1}]}
traffic:
  - {name: mix, into: veth1, pool: packets, sizes: [64], rate: 10000}
"""

    module = 'libhalfpage_bpf_llvm.so'
    bare = mapped(QUICKSTART.read_text())
    tap.expect('libstdc++.so.6' in {re.sub(r'(so\.\d+).*', r'\1', name) for name in bare}, 'the maps were not read', sorted(bare))
    for name, seen in (('conf/quickstart.yaml', bare), ('jit: off', mapped(with_object('off')))):
        found = sorted(file for file in seen if 'LLVM' in file or file == module)
        tap.expect(not found, f'{name} maps {found}')
        tap.expect(seen == bare, f'{name} maps other files than conf/quickstart.yaml: {sorted(seen ^ bare)}')
    if compiled():
        more = mapped(with_object('llvm')) - bare
        tap.expect(module in more and any(file.startswith('libLLVM') for file in more), f'jit: llvm maps {sorted(more)}')


@tap.subtest('a chain takes long frames if all its sections are xdp.frags; else it is refused, with the one that is not')
def _():
    def checked(programs):
        text = HEAD + 'programs:\n' + ''.join(
            f'  - {{name: {name}, kind: object, object: {file}, function: {function}}}\n' for name, file, function in programs)
        if len(programs) > 1:
            text += f'  - {{name: gate, kind: chain, programs: [{", ".join(name for name, *_ in programs)}]}}\n'
        with scratch() as folder:
            (folder / 'in.pcap').write_bytes(captures.written([bytes(60)]))
            (folder / 'run.yaml').write_text(text + PAIRS.replace('MTU', '9000'))
            return halfpage('--config', folder / 'run.yaml', '--check')

    plain = OBJECTS / 'basic.bpf.o'
    for programs in ([('gate', FORWARD, 'mark')], [('one', FORWARD, 'mark'), ('two', FORWARD, 'front')]):
        ended = checked(programs)
        tap.expect(ended.code == 0, programs, ended)
    for programs, culprit in (([('gate', plain, 'swap')], 'its program `gate` is of section xdp'),
                              ([('one', FORWARD, 'mark'), ('two', plain, 'swap')], '`two` of its chain `gate` is of section xdp'),
                              ([('one', plain, 'swap'), ('two', FORWARD, 'mark')], '`one` of its chain `gate` is of section xdp')):
        ended = checked(programs)
        tap.expect(ended.code == 2, programs, ended)
        for word in (culprit, 'mtu 9000 is past 2034', 'compile it into section xdp.frags'):
            tap.expect(word in ended.err, f'stderr does not say: {word}', ended)


if __name__ == '__main__':
    sys.exit(tap.main())
