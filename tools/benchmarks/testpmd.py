"""Stock dpdk-testpmd as a meter: forwards between two net_null ports and reads its own packet rates."""

import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
HANDLER = ROOT / 'build' / 'mempool' / 'librte_mempool_page_frag.so'
WINDOWS = 6
WINDOW_SECONDS = 0.25


class TestpmdError(Exception):
    """testpmd did not start or did not forward; what it said is in the text."""


def world_writable_above(path):
    """EAL refuses libraries under folders that anybody may write to."""
    return any(folder.stat().st_mode & 0o002 for folder in pathlib.Path(path).resolve().parents)


def load(ops):
    """(EAL arguments, environment) for the mempool handler `ops`; our library is loaded for our own only."""
    if ops != 'page_frag':
        return [f'--mbuf-pool-ops-name={ops}'], dict(os.environ)
    if not world_writable_above(HANDLER):
        return ['-d', str(HANDLER), '--mbuf-pool-ops-name=page_frag'], dict(os.environ)
    path = ':'.join(filter(None, [str(HANDLER.parent), os.environ.get('LD_LIBRARY_PATH')]))
    return ['-d', HANDLER.name, '--mbuf-pool-ops-name=page_frag'], {**os.environ, 'LD_LIBRARY_PATH': path}


def lcores():
    cpus = sorted(os.sched_getaffinity(0))
    return ['--lcores', f'0@{cpus[0]},1@{cpus[-1]}']


def forwarding_rate(ops, memory, mode, options=()):
    """Mpps that one forwarding lcore sends over both ports: the median of WINDOWS windows in one process."""
    arguments, environment = load(ops)
    prefix = f'halfpage_bench_{os.getpid()}_{time.monotonic_ns()}'
    command = ['dpdk-testpmd', *lcores(), '--no-pci', *memory, '--no-telemetry', f'--file-prefix={prefix}', *arguments,
               '--vdev', 'net_null0', '--vdev', 'net_null1', '--', '--interactive', f'--forward-mode={mode}', *options]
    # Its errors go where its words go: to be shown if it fails, and never to fill a pipe that nobody reads.
    testpmd = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, env=environment, cwd='/')
    try:
        say(testpmd, 'start')
        time.sleep(0.5)
        say(testpmd, 'show port stats all')
        for _ in range(WINDOWS):
            time.sleep(WINDOW_SECONDS)
            say(testpmd, 'show port stats all')
        out, _ = testpmd.communicate('stop\nquit\n', timeout=60)
    except (BrokenPipeError, subprocess.TimeoutExpired):
        testpmd.kill()
        out, _ = testpmd.communicate()
    finally:
        remove_runtime_folder(prefix)
    rates = [int(rate) for rate in re.findall(r'Tx-pps:\s+(\d+)', out)]
    # The first reading of each port covers the start as well.
    windows = [a + b for a, b in zip(rates[2::2], rates[3::2])]
    if testpmd.returncode != 0 or not windows or statistics.median(windows) == 0:
        raise TestpmdError(f'{" ".join(command)}\nended with {testpmd.returncode}:\n{out[-3000:]}')
    return statistics.median(windows) / 1e6


def say(testpmd, line):
    testpmd.stdin.write(line + '\n')
    testpmd.stdin.flush()


def remove_runtime_folder(prefix):
    base = '/var/run' if os.geteuid() == 0 else os.environ.get('XDG_RUNTIME_DIR', '/tmp')
    shutil.rmtree(pathlib.Path(base) / 'dpdk' / prefix, ignore_errors=True)


def give_up(error):
    print(f'bench: {error}', file=sys.stderr)
    return 1
