"""Unmodified dpdk-testpmd between two net_null ports, kept at hand: forwards only while it is asked for a rate.

Several of them live beside each other, so that each round of a comparison asks all; those at rest take no time.
"""

import contextlib
import itertools
import os
import pathlib
import re
import select
import shutil
import subprocess
import time

import hugepages
import launch
import stock
import testpmd

STARTUP_SECONDS = 60
ANSWER_SECONDS = 20
WARM_SECONDS = 0.06
WINDOW_SECONDS = 0.18
PROMPT = 'testpmd> '
NO_HUGE = ('--no-huge', '-m', '1024')  # testpmd's own 155456 buffers take 640 MB of stock without hugepages
HUGE = ('--in-memory',)
HUGE_PAGES = 256
numbers = itertools.count()


class Forwarder:
    """One dpdk-testpmd on the mempool handler `ops`. Its output is a terminal, so that each line comes when it is written."""

    def __init__(self, ops, memory):
        if memory == HUGE and hugepages.free() < HUGE_PAGES:
            raise testpmd.TestpmdError(f'{HUGE_PAGES} free hugepages of 2 MiB are needed, there are {hugepages.free()}; run '
                                        'as root, or write more into /proc/sys/vm/nr_hugepages')
        arguments, environment = stock.handler(ops)
        self.prefix = f'halfpage_bench_{os.getpid()}_{next(numbers)}'
        self.command = [stock.program('dpdk-testpmd'), *launch.lcores(2), '--no-pci', *memory, '--no-telemetry',
                        f'--file-prefix={self.prefix}', *arguments, '--vdev', 'net_null0', '--vdev', 'net_null1', '--',
                        '--interactive']
        self.said = ''
        self.terminal, inside = os.openpty()
        try:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=inside, stderr=inside, cwd='/',
                                            env=environment, start_new_session=True)
        finally:
            os.close(inside)
        self.answer(STARTUP_SECONDS)

    def answer(self, seconds=ANSWER_SECONDS):
        """What it says up to its next prompt."""
        text = ''
        end = time.monotonic() + seconds
        while PROMPT not in text:
            if not select.select([self.terminal], [], [], max(0, end - time.monotonic()))[0]:
                self.give_up(f'has not answered for {seconds} s')
            try:
                text += os.read(self.terminal, 65536).decode(errors='replace')
            except OSError:  # a terminal whose other end is closed
                self.said += text
                self.give_up(f'ended with {self.process.wait()}')
        self.said += text
        return text

    def give_up(self, why):
        raise testpmd.TestpmdError(f'{" ".join(self.command)}\n{why}:\n{self.said[-3000:]}')

    def ask(self, line):
        self.process.stdin.write(line.encode() + b'\n')
        self.process.stdin.flush()
        return self.answer()

    def set_mode(self, mode):
        if f'Set {mode} packet forwarding mode' not in self.ask(f'set fwd {mode}'):
            self.give_up(f'does not know the mode {mode}')

    def rate(self):
        """Mpps that its one forwarding lcore sends over both ports, by its own count and clock."""
        self.ask('start')
        time.sleep(WARM_SECONDS)
        self.ask('show port stats all')
        time.sleep(WINDOW_SECONDS)
        rates = [int(pps) for pps in re.findall(r'Tx-pps:\s+(\d+)', self.ask('show port stats all'))]
        self.ask('stop')
        if len(rates) != 2 or not sum(rates):
            self.give_up('does not forward')
        return sum(rates) / 1e6

    def end(self):
        with contextlib.suppress(BrokenPipeError, OSError):
            self.process.stdin.write(b'quit\n')
            self.process.stdin.close()
        try:
            while select.select([self.terminal], [], [], ANSWER_SECONDS)[0] and os.read(self.terminal, 65536):
                pass
        except OSError:
            pass
        try:
            self.process.wait(ANSWER_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.terminal)
        shutil.rmtree(pathlib.Path(launch.runtime_folder()) / self.prefix, ignore_errors=True)


@contextlib.contextmanager
def several(wanted):
    """{key: Forwarder} for `wanted`, {key: (ops, memory)}."""
    with contextlib.ExitStack() as stack:
        running = {}
        for key, (ops, memory) in wanted.items():
            running[key] = Forwarder(ops, memory)
            stack.callback(running[key].end)
        yield running
