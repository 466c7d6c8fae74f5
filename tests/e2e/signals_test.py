#!/usr/bin/python3
"""What SIGINT and SIGTERM do to a run: stop, drain, report, balance."""

import selectors
import signal
import sys
import time

import launch
import tap
from launch import HALFPAGE, QUICKSTART, expect_good, nothing_left

LONG = ('--duration', '60s', '--stats-period', '1s')
WITHIN = 5  # seconds from the signal to the end, by the product's promise


def started():
    """A run that is in the middle of its work: its first statistics are out."""
    child = launch.start([HALFPAGE, '--config', QUICKSTART, *LONG])
    with selectors.DefaultSelector() as outputs:
        outputs.register(child.stdout, selectors.EVENT_READ)
        if not outputs.select(timeout=10 * launch.SLOWER) or child.poll() is not None:
            child.kill()
            raise AssertionError(f'no statistics within 10 s\n{launch.finish(child, 5)}')
    time.sleep(0.2)
    return child


def register(number):
    @tap.subtest(f'{number.name} in the middle of a run drains, reports, balances and exits 0 within {WITHIN} s')
    def _():
        with nothing_left():
            child = started()
            child.send_signal(number)
            ended = launch.finish(child, WITHIN)
        tap.expect(ended.seconds <= WITHIN * launch.SLOWER, f'took {ended.seconds:.1f} s', ended)
        expect_good(ended)


register(signal.SIGINT)
register(signal.SIGTERM)


@tap.subtest('a second SIGINT ends the run at once')
def _():
    with nothing_left(even_so=True):  # at once is at once: EAL's folder may stay
        child = started()
        child.send_signal(signal.SIGINT)
        time.sleep(0.02)
        child.send_signal(signal.SIGINT)
        ended = launch.finish(child, 2)
    # The first may have been enough: then the run ended well. Else it dies of the signal, or says so by 130.
    tap.expect(ended.code in (0, 130, -signal.SIGINT), ended)


@tap.subtest('a signal before the run has begun is no crash')
def _():
    for delay in (0.0, 0.02, 0.1, 0.3):
        with nothing_left():
            child = launch.start([HALFPAGE, '--config', QUICKSTART, *LONG])
            time.sleep(delay)
            child.send_signal(signal.SIGTERM)
            ended = launch.finish(child, WITHIN)
        tap.expect(ended.code in (0, 1, 143, -signal.SIGTERM), f'SIGTERM after {delay} s', ended)


if __name__ == '__main__':
    sys.exit(tap.main())
