"""tools/bench: comparisons that can be believed on a machine that is shared and noisy."""

import argparse
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[1:1] = [str(ROOT / 'tests' / 'support'), str(ROOT / 'tests' / 'e2e')]

import bpf  # noqa: E402
import mempool  # noqa: E402  (after the paths to hugepages.py and stock.py)
import path  # noqa: E402
import ports  # noqa: E402
import quick  # noqa: E402
import threads  # noqa: E402

SUITES = {'quick': quick, 'bpf': bpf, 'mempool': mempool, 'path': path, 'ports': ports, 'threads': threads}


def main():
    parser = argparse.ArgumentParser(
        prog='tools/bench',
        description='Runs a suite of comparisons. Within a row the variants run in turn, A B B A A B ..., and only the '
        'ratios of neighbours count. Exit code: 0 when every row reaches its target, 4 when one misses it, 1 when '
        'something does not run, 2 for wrong usage.')
    parser.add_argument('suite', choices=SUITES, help='; '.join(f'{name}: {suite.ABOUT}' for name, suite in SUITES.items()))
    parser.add_argument('--rounds', type=int, default=7, metavar='N', help='pairs of runs per row (default 7, at least 3)')
    parser.add_argument('--row', metavar='TEXT', help='only rows whose name holds TEXT')
    options = parser.parse_args()
    if options.rounds < 3:
        parser.error('--rounds: a median with a spread needs at least 3')
    return SUITES[options.suite].run(options)


if __name__ == '__main__':
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
