"""What the suites that measure with stock dpdk-testpmd share: where it runs, and how they end when it does not."""

import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


class TestpmdError(Exception):
    """testpmd did not start or did not forward; what it said is in the text."""


def lcores():
    cpus = sorted(os.sched_getaffinity(0))
    return ['--lcores', f'0@{cpus[0]},1@{cpus[-1]}']


def give_up(error):
    print(f'bench: {error}', file=sys.stderr)
    return 1
