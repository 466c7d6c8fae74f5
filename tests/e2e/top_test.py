#!/usr/bin/python3
"""--top in a real terminal (tmux), and where there is none."""

import contextlib
import itertools
import os
import re
import shutil
import subprocess
import sys
import time

import launch
import tap
from launch import HALFPAGE, QUICKSTART, halfpage


class Terminal:
    """A tmux server of our own with one window of 80x24."""

    numbers = itertools.count()

    def __init__(self, columns=80, rows=24):
        if not shutil.which('tmux'):
            raise tap.Skip('tmux is not here')
        self.socket = f'halfpage-{os.getpid()}-{next(self.numbers)}'  # the last one's server may be ending still
        self.tmux('-f', '/dev/null', 'new-session', '-d', '-x', str(columns), '-y', str(rows), 'sh')

    def tmux(self, *arguments):
        return subprocess.run(['tmux', '-L', self.socket, *arguments], capture_output=True, text=True, check=True,
                              stdin=subprocess.DEVNULL).stdout

    def type(self, *keys):
        self.tmux('send-keys', *keys)

    def screen(self):
        return self.tmux('capture-pane', '-p')

    def wait_for(self, pattern, seconds=10):
        end = time.monotonic() + seconds * launch.SLOWER
        while time.monotonic() < end:
            if re.search(pattern, self.screen(), re.MULTILINE):
                return self.screen()
            time.sleep(0.1)
        raise AssertionError(f'no {pattern!r} on the screen:\n{self.screen()}')


@contextlib.contextmanager
def terminal():
    window = Terminal()
    try:
        yield window
    finally:
        window.tmux('kill-server')


@tap.subtest('--top shows devices, losses, pages and lcores on 80x24, is drawn in place, and Ctrl-C leaves the terminal as it was')
def _():
    with terminal() as window:
        window.type(f'stty -a >/tmp/{window.socket}.before; {HALFPAGE} --config {QUICKSTART} --duration 60s --top 2>/dev/null; '
                    f'echo exit-$?; stty -a | cmp - /tmp/{window.socket}.before && echo terminal-same', 'Enter')
        first = window.wait_for(r'^lcore 1 +[1-9]')
        for pattern in (r'^halfpage .*quickstart.yaml: \d+ s, [\d.]+[kM] frames a second', r'^veth0 +[\d.]+[kM]', r'^veth3 ',
                        r'^packets +\d+ +16384 +\d+ +\d+'):
            tap.expect(re.search(pattern, first, re.MULTILINE), f'no {pattern!r}\n{first}')
        tap.expect(first.startswith('halfpage '), f'the title is not on the first line\n{first}')
        seconds = re.search(r': (\d+) s,', first).group(1)
        later = window.wait_for(rf'^halfpage .*: (?!{seconds} s)\d+ s,')
        tap.expect(later.count('frames a second') == 1 and later.startswith('halfpage '), f'not drawn in place\n{later}')
        window.type('C-c')
        last = window.wait_for(r'^terminal-same')
        tap.expect('exit-0' in last and 'ledger: balanced' in last, last)
        os.unlink(f'/tmp/{window.socket}.before')


@tap.subtest('warnings stand on the screen, whole, and once more on the terminal behind it; elsewhere at once')
def _():
    told = 'warning: pool packets: buffers in use have only grown'
    with terminal() as window, launch.scratch() as folder:
        run = f'{HALFPAGE} --config {launch.ROOT}/conf/leak.yaml --duration 60s --top'
        window.type(f'{run} 2>{folder}/errors', 'Enter')
        window.wait_for('^warnings, the latest first')
        tap.expect(told in (folder / 'errors').read_text(), 'not on standard error')
        window.type('C-c')
        window.wait_for(r'leaked|never came back|ledger')
        window.type(f'clear; {run}', 'Enter')
        shown = window.wait_for('^warnings, the latest first')
        tap.expect(shown.startswith('halfpage ') and re.search(r'^ *\d+ s: pool packets: buffers in use have only', shown, re.M),
                   shown)
        tap.expect('halfpage: warning' not in shown and re.search(r'^lcore 1 ', shown, re.M), f'not in the view\n{shown}')
        window.type('C-c')
        window.wait_for('never came back')
        past = window.tmux('capture-pane', '-p', '-J', '-S', '-100')
        tap.expect(past.count(told) == 1, past)


@tap.subtest('--top without a terminal says so and what to use instead, before EAL starts')
def _():
    ended = halfpage('--config', QUICKSTART, '--top')
    tap.expect(ended.code == 2 and 'needs a terminal' in ended.err and '--stats-period' in ended.err, ended)
    tap.expect('EAL:' not in ended.err and not ended.out, ended)


@tap.subtest('--top on a terminal that cannot be drawn on says so, too')
def _():
    with terminal() as window:
        window.type(f'TERM=dumb {HALFPAGE} --config {QUICKSTART} --top; echo exit-$?', 'Enter')
        window.wait_for('needs a terminal')
        window.wait_for('^exit-2')


if __name__ == '__main__':
    sys.exit(tap.main())
