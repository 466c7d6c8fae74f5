"""What it costs to be looked at: the same run with nobody there, and with prompt, telemetry socket and metrics in use.

As a laboratory would have it, the worker has a core of its own; the main lcore, the prompt's, the socket's and the
metrics' threads and all who ask them share the other. The asking is done by this process over a connection that stays
open, as collectors do: where two CPUs share a core, each start of dpdk-telemetry.py takes from the worker, whether or not
there is anybody to answer it, and that would be measured in place of the answering.
"""

import contextlib
import json
import os
import pathlib
import socket
import subprocess
import time

import launch
import observed
import testpmd

ABOUT = 'quickstart, watched by prompt, telemetry and metrics'
TARGET = 0.97
PAIRS = 3  # times the rounds: a launch's memory lies as it lies, so a pair of runs is worth little
SECONDS = 1.2
EVERY = 0.4  # each observer asks this often, where a scraper's default is 15 s
TELEMETRY = ('/halfpage/info', '/halfpage/ledger', '/halfpage/pools/stats,packets', '/halfpage/veth/stats,veth0')
PROGRAM = testpmd.ROOT / 'build' / 'app' / 'halfpage'
SETTINGS = ('eal.lcores=0@0,1@1', 'measure.stats_period=0s')
OBSERVERS_CPU = 0


def rate(report):
    """Mpps that arrived at the device with the program."""
    return next(device['received'] for device in report['devices'] if device['name'] == 'veth0') / report['seconds'] / 1e6


def settings(*more):
    return [word for setting in (*SETTINGS, *more) for word in ('--set', setting)]


def alone():
    """The rate of a run without prompt, telemetry and metrics."""
    command = [str(PROGRAM), '--config', str(launch.QUICKSTART), '--json', '-',
               *settings(f'measure.duration={SECONDS}s', 'eal.args=[--no-telemetry]')]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise testpmd.TestpmdError(f'{" ".join(command)}\nended with {done.returncode}:\n{done.stderr[-3000:]}')
    return rate(json.loads(done.stdout))


@contextlib.contextmanager
def telemetry(prefix):
    """A function that asks DPDK's telemetry socket one command, which must be answered."""
    runtime = pathlib.Path('/var/run' if os.geteuid() == 0 else os.environ.get('XDG_RUNTIME_DIR', '/tmp'))
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.connect(str(runtime / 'dpdk' / prefix / 'dpdk_telemetry.v2'))
        longest = json.loads(connection.recv(1024))['max_output_len']

        def ask(command):
            connection.send(command.encode())
            reply = json.loads(connection.recv(longest))
            if not reply.get(command.split(',')[0]):
                raise testpmd.TestpmdError(f'telemetry: {command}: {reply}')

        yield ask


def watched():
    """The rate of a run that is asked all the time, and how often it was."""
    asked = 0
    before = os.sched_getaffinity(0)
    with launch.scratch() as folder, observed.running(folder, launch.QUICKSTART, *settings('measure.duration=0s')) as run, \
            telemetry(run.prefix) as ask:
        try:
            os.sched_setaffinity(0, {OBSERVERS_CPU})
            end = time.monotonic() + SECONDS
            while time.monotonic() < end:
                began = time.monotonic()
                run.scrape()
                for command in TELEMETRY:
                    ask(command)
                run.type('show fwd stats all')
                asked += 1
                time.sleep(max(0, began + EVERY - time.monotonic()))
        finally:
            os.sched_setaffinity(0, before)
        ended, report = run.end()
    if ended.code:
        raise testpmd.TestpmdError(f'a watched run ended with {ended.code}:\n{ended}')
    return rate(report), asked


def measure(rounds):
    """Rates of each pair of runs: ([watched], [alone], [how often each observer asked])."""
    ours, theirs, asked = [], [], []
    for number in range(PAIRS * rounds):
        for looked_at in ((True, False) if number % 2 else (False, True)):
            if looked_at:
                mpps, times = watched()
                ours.append(mpps)
                asked.append(times)
            else:
                theirs.append(alone())
    return ours, theirs, asked
