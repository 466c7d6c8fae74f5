"""tools/kernel: how fast the kernel's own veth is on this machine."""

import argparse
import contextlib
import ctypes
import json
import os
import platform
import resource
import shutil
import signal
import statistics
import sys

import bpf
import meter

REFUSED = 77  # as test harnesses have it for "cannot be done here"
SIZES = (64, 1500, 8000)
CLONE_NEWNET = 0x40000000


def arguments():
    def among(known):
        def parse(text):
            chosen = text.split(',')
            if unknown := [name for name in chosen if name not in known]:
                raise argparse.ArgumentTypeError(f'`{unknown[0]}` is none of {", ".join(known)}')
            return chosen

        return parse

    def sizes(text):
        try:
            chosen = [int(size) for size in text.split(',')]
        except ValueError:
            raise argparse.ArgumentTypeError(f'`{text}` is not a list of numbers like 64,1500') from None
        if not all(60 <= size <= meter.JUMBO_MTU for size in chosen):
            raise argparse.ArgumentTypeError(f'a frame has 60 to {meter.JUMBO_MTU} bytes')
        return chosen

    def chosen(text):
        path, _, program = text.partition('=')
        function, _, file = program.partition('@')
        if path not in ('drop', 'pass', 'tx', 'redirect') or not function or not file:
            raise argparse.ArgumentTypeError(f'`{text}` is not like drop=FUNCTION@FILE')
        return path, (file, function)

    parser = argparse.ArgumentParser(
        prog='tools/kernel',
        description="Measures the kernel's veth with native XDP programs, all of its work on one CPU, in network namespaces "
        'without a name that vanish with this process. Median of the rounds, each of which runs every row once.',
        epilog=f'Exit code: 0 measured, 1 something failed, 2 wrong usage, {REFUSED} this machine does not let it be '
        'measured (no root, no bpf(2), no network namespaces), with the reason.')
    parser.add_argument('--rounds', type=int, default=3, metavar='N', help='runs per row (default 3)')
    parser.add_argument('--seconds', type=float, default=0.5, metavar='S', help='length of a run (default 0.5)')
    parser.add_argument('--paths', type=among(list(meter.PATHS)), default=list(meter.PATHS), metavar='LIST',
                        help='; '.join(f'{name}: {path.about}' for name, path in meter.PATHS.items()))
    parser.add_argument('--sources', type=among(list(meter.SOURCES)), default=list(meter.SOURCES), metavar='LIST',
                        help='; '.join(f'{name}: {about}' for name, about in meter.SOURCES.items()))
    parser.add_argument('--sizes', type=sizes, default=list(SIZES), metavar='LIST', help='frame bytes without FCS')
    parser.add_argument('--object', type=chosen, action='append', default=[], metavar='PATH=FUNCTION@FILE',
                        help="an XDP object's program on veth0 in place of the path's own, as in drop=udp_drop@bench.bpf.o; one "
                        'for redirect has a devmap called outs (repeatable)')
    parser.add_argument('--json', metavar='FILE', help='also write JSON; - puts it on standard output in place of the text')
    options = parser.parse_args()
    if options.rounds < 1 or not 0.01 <= options.seconds <= 60:
        parser.error('--rounds is at least 1, --seconds 0.01 to 60')
    return options


def reason_not_to():
    """Why the kernel cannot be measured here, in words; None where it can."""
    if os.geteuid() != 0:
        return 'only root may make network devices and attach programs: run it as root'
    if shutil.which('ip') is None:
        return 'the program ip is missing (Debian: iproute2)'
    try:
        os.close(bpf.load(bpf.returning(bpf.DROP)))
    except OSError as error:
        return f'the kernel loads no XDP program here: {error.strerror or error}'
    child = os.fork()  # so that this process keeps its namespace
    if child == 0:
        os._exit(0 if ctypes.CDLL(None).unshare(CLONE_NEWNET) == 0 else 1)
    if os.waitpid(child, 0)[1] != 0:
        return 'the kernel makes no network namespace here (CONFIG_NET_NS, or a container that forbids it)'
    return None


def measure(options):
    """[{path, source, size, mpps, runs} or {path, source, size, impossible}]"""
    rows = []
    for path in options.paths:
        for source in options.sources:
            for size in options.sizes:
                why = meter.impossible(path, source, size)
                rows.append({'path': path, 'source': source, 'size': size, **({'impossible': why} if why else {'runs': []})})
    instrument = meter.Meter(options.seconds, dict(options.object))
    try:
        for number in range(options.rounds):
            for row in rows:
                if 'runs' in row:
                    row['runs'].append(round(instrument.rate(row['path'], row['source'], row['size']), 4))
            print(f'kernel: round {number + 1} of {options.rounds} done', file=sys.stderr, flush=True)
    finally:
        instrument.close()
    for row in rows:
        if 'runs' in row:
            row['mpps'] = statistics.median(row['runs'])
    return rows


def text(rows):
    lines = [f'kernel {platform.release()}, veth with native XDP, one CPU, Mpps: median [least to most]',
             f'{"path":10}{"source":10}{"bytes":>6}']
    for row in rows:
        if 'runs' in row:
            said = f'{row["mpps"]:8.2f} [{min(row["runs"]):.2f} to {max(row["runs"]):.2f}]'
        else:
            said = f'       - {row["impossible"]}'
        lines.append(f'{row["path"]:10}{row["source"]:10}{row["size"]:6}{said}')
    return '\n'.join(lines)


def main():
    options = arguments()
    if why := reason_not_to():
        print(f'kernel: not measured: {why}', file=sys.stderr)
        return REFUSED
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with contextlib.suppress(ValueError, OSError):  # before 5.11 programs and maps counted as locked memory
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    try:
        rows = measure(options)
    except OSError as error:
        print(f'kernel: {error.strerror or error}', file=sys.stderr)
        return 1
    if options.json != '-':
        print(text(rows))
    if options.json:
        document = json.dumps({'kernel': platform.release(), 'seconds_per_run': options.seconds, 'unit': 'Mpps', 'rows': rows},
                              indent=1) + '\n'
        if options.json == '-':
            sys.stdout.write(document)
        else:
            with open(options.json, 'w', encoding='utf-8') as file:
                file.write(document)
    return 0


if __name__ == '__main__':
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
