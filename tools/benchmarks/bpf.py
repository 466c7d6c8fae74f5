"""XDP objects: one program alone, interpreted, compiled and in the kernel; then the whole path with an object on the device.

The first table is tests/bench/bpf_bench: all in one process, one packet of 64 bytes, turn about. The second runs halfpage
with a built-in program and with an object, and the kernel's veth with the same object, in the same rounds, with hugepages.
Before them, start_up.py: what a run without an object pays.
"""

import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import hugepages
import start_up
import table
import testpmd

ABOUT = 'XDP objects: against BPF_PROG_TEST_RUN, and whole paths against built-in programs and the kernel\'s veth, two minutes'
BUILD = testpmd.ROOT / 'build'
OBJECTS = BUILD / 'tests' / 'bpf'
PROGRAM = BUILD / 'tests' / 'bench' / 'bpf_bench'
KERNEL = testpmd.ROOT / 'tools' / 'kernel'
KERNEL_REFUSED = 77
HUGE_PAGES = 256
SECONDS = 0.3
KERNEL_SECONDS = 0.2

RAW = 1.0  # compiled, of the kernel's time
NET = 1.5  # the same, both less what a constant program takes
NOISE_NS = 0.5  # net times below are nothing that can be told from nothing
WHOLE = 5.0  # halfpage with an object, of the kernel's rate with it, frames in driver memory

PATHS = {  # path: (built-in program, function of bench.bpf.o)
    'drop': ('kind: drop', 'udp_drop'),
    'tx': ('kind: tx', 'swap'),
    'redirect': ('kind: redirect, target: veth2', 'redirect'),
}
TARGETS = {'drop': WHOLE, 'tx': WHOLE, 'redirect': None}


def checked(command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    if done.returncode not in (0, KERNEL_REFUSED):
        raise testpmd.TestpmdError(f'{" ".join(map(str, command))}\nended with {done.returncode}:\n{done.stderr[-3000:]}')
    return done


def alone(rounds, only):
    """{row: {who: [ns]}}, the constant program's first."""
    done = checked([PROGRAM, OBJECTS, rounds, *([only] if only else [])])
    rows = {}
    for line in map(json.loads, done.stdout.splitlines()):
        rows.setdefault(line['row'], {}).setdefault(line['who'], []).append(line['ns'])
    return rows


def show_alone(rows):
    lines = []
    constant = rows['constant']
    print(f'{"ns per packet":36}{"interpreter":>13}{"LLVM":>9}{"kernel":>9}   net: {"interpreter":>11}{"LLVM":>9}{"kernel":>9}')
    for name, row in rows.items():
        medians = {who: statistics.median(values) for who, values in row.items()}
        net = {who: statistics.median(a - b for a, b in zip(values, constant[who])) for who, values in row.items()}

        def cells(values, width):
            return ''.join(f'{values[who]:{size}.1f}' if who in values else f'{"-":>{size}}'
                           for who, size in (('interpreter', width), ('llvm', 9), ('kernel', 9)))

        print(f'{name:36}{cells(medians, 13)}        {cells(net, 11)}')
        if 'llvm' not in row or 'kernel' not in row:
            continue
        ratio = medians['llvm'] / medians['kernel']
        lines.append(table.Line(f'{name}: LLVM / kernel', f'{ratio:.2f}', f'{RAW:.2f}', ratio <= RAW))
        if name == 'constant':
            continue
        # A difference that the clock cannot tell from nothing is within any bound.
        # No program costs less than none: where the kernel's constant one took longer, there is nothing to compare with.
        small = None if net['kernel'] < -NOISE_NS else net['llvm'] <= NET * max(net['kernel'], NOISE_NS)
        detail = 'the kernel took longer for the constant program' if small is None else ''
        lines.append(table.Line(f'{name}: the same, net', f'{net["llvm"]:.1f} / {net["kernel"]:.1f} ns', f'{NET:.2f}', small, detail))
    print()
    return lines


def configuration(program):
    # What comes back is dropped there as well, by the end of the path.
    return f'''version: 1
eal: {{preset: hugepages, memory: 512MiB}}
pools: [{{name: packets, size: 4095, data_room: 2176, cache: 512}}]
programs:
  - {{name: gate, {program}}}
  - {{name: end, kind: drop}}
veth:
  - {{name: a, ends: [{{name: veth0, program: gate}}, {{name: veth1, program: end}}]}}
  - {{name: b, ends: [{{name: veth2}}, {{name: veth3, program: end}}]}}
traffic: [{{name: udp, into: veth1, pool: packets, sizes: 64, burst: 64, flows: 1}}]
measure: {{duration: {SECONDS}s, bulk: 32}}
'''


def halfpage(path, program):
    """Mpps of one short run."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / f'{path}.yaml'
        file.write_text(configuration(program))
        done = checked([BUILD / 'app' / 'halfpage', '--config', file, '--json', '-'])
        return json.loads(done.stdout)['rate_pps'] / 1e6


def kernel(only=PATHS):
    """{path: Mpps} of one round, {} where it is not measured, and why."""
    file = OBJECTS / 'bench.bpf.o'
    chosen = [word for path in only for word in ('--object', f'{path}={PATHS[path][1]}@{file}')]
    done = checked([KERNEL, '--rounds', 1, '--seconds', KERNEL_SECONDS, '--paths', ','.join(only), '--sources', 'frames',
                    '--sizes', 64, '--json', '-', *chosen])
    if done.returncode == KERNEL_REFUSED:
        return {}, done.stderr.strip()
    return {row['path']: row['mpps'] for row in json.loads(done.stdout)['rows']}, None


def whole(rounds):
    """Lines of the whole paths, and why the kernel is missing."""
    rates = {}
    refused = None
    for number in range(rounds):
        for path, (built_in, function) in PATHS.items():
            maps = ', maps: [{map: outs, key: 0, device: veth2}]' if path == 'redirect' else ''
            of_object = f'kind: object, object: {OBJECTS}/bench.bpf.o, function: {function}{maps}'
            order = (('built-in', built_in), ('object', of_object))
            for who, program in order if number % 2 == 0 else order[::-1]:
                rates.setdefault((path, who), []).append(halfpage(path, program))
        measured, refused = kernel()
        for path, rate in measured.items():
            rates.setdefault((path, 'kernel'), []).append(rate)
        print(f'bench: round {number + 1} of {rounds} done', file=sys.stderr, flush=True)
    lines = []
    for path in PATHS:
        ours, built_in, theirs = (rates.get((path, who)) for who in ('object', 'built-in', 'kernel'))
        detail = f'{statistics.median(ours):.1f} Mpps'
        ratios = [a / b for a, b in zip(ours, built_in)]
        lines.append(table.of_ratios(f'{path}: object / built-in', ratios, '-', True,
                                     f'{detail} against {statistics.median(built_in):.1f}'))
        if theirs is None:
            continue
        target = TARGETS[path]
        ratios = [each / max(theirs) for each in ours]
        lines.append(table.of_ratios(f'{path}: object / kernel with it', ratios, '-' if target is None else f'{target:.2f}',
                                     target is None or statistics.median(ratios) >= target,
                                     f'{detail} against the kernel\'s best {max(theirs):.2f}'))
    return lines, refused


def run(options):
    try:
        starts = start_up.run(options.rounds, options.row)
        if starts:
            table.show(starts, start_up.TITLE)
        if starts and options.row:
            return table.close(starts)
        lines = show_alone(alone(options.rounds, options.row))
        table.show(lines, 'one program alone')
        if options.row:
            return table.close(lines)
        with hugepages.held(HUGE_PAGES):
            if hugepages.free() < HUGE_PAGES:
                return testpmd.give_up(f'{HUGE_PAGES} free hugepages of 2 MiB are needed, there are {hugepages.free()}')
            paths, refused = whole(options.rounds)
    except testpmd.TestpmdError as error:
        return testpmd.give_up(error)
    table.show(paths, 'whole path, 64 B, hugepages')
    if refused:
        print(refused)
    return table.close(starts + lines + paths)
