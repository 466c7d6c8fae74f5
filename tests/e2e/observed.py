"""A run that others look at while it goes on: by its prompt, telemetry and metrics."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import time
import urllib.request

import launch
import tap

TELEMETRY = shutil.which('dpdk-telemetry.py')


class Running:
    """halfpage with a prompt and metrics; commands are typed into it."""

    def __init__(self, folder, configuration, *arguments):
        self.prefix = f'observed{os.getpid()}'
        self.report = folder / 'report.json'
        self.errors = open(folder / 'errors', 'w+')
        self.out = open(folder / 'out', 'w+')  # a file takes more than a pipe that nobody reads meanwhile
        self.child = launch.start([launch.HALFPAGE, '--config', configuration, '-i', '--auto-start', '--metrics', '0',
                                   '--set', f'eal.file_prefix={self.prefix}', '--json', self.report, *arguments],
                                  stdin=subprocess.PIPE, stdout=self.out, stderr=self.errors)
        deadline = time.monotonic() + 20 * launch.SLOWER
        found = None
        while found is None and time.monotonic() < deadline:
            time.sleep(0.05)
            found = re.search(r'metrics at port (\d+)', (folder / 'errors').read_text())
        tap.expect(found is not None, (folder / 'errors').read_text())
        self.port = int(found[1])

    def type(self, line):
        self.child.stdin.write(line + '\n')
        self.child.stdin.flush()

    def json(self):
        """What `show json` says."""
        before = self.out.seek(0, os.SEEK_END)
        self.type('show json')
        deadline = time.monotonic() + 10 * launch.SLOWER
        while time.monotonic() < deadline:
            self.out.seek(before)
            said = self.out.read()
            with contextlib.suppress(ValueError):
                return json.JSONDecoder().raw_decode(said[said.index('{'):])[0]
            time.sleep(0.02)
        raise AssertionError(f'show json: {said}')

    def stop(self):
        """Stops forwarding and gives the JSON of what stands still from then on."""
        self.type('stop')
        while (told := self.json())['forwarding']:
            time.sleep(0.05)
        return told

    def scrape(self):
        with urllib.request.urlopen(f'http://127.0.0.1:{self.port}/metrics', timeout=10) as reply:
            return reply.read().decode()

    def ask(self, *commands):
        """What dpdk-telemetry.py says to each command."""
        told = launch.run([TELEMETRY, '-f', self.prefix], stdin=''.join(f'{each}\n' for each in commands))
        tap.expect(told.code == 0, told)
        decoder, replies, rest = json.JSONDecoder(), [], told.out[told.out.index('{'):]
        while rest.strip():
            reply, end = decoder.raw_decode(rest.strip())
            replies.append(reply)
            rest = rest.strip()[end:]
        return [list(reply.values())[0] for reply in replies[-len(commands):]]

    def end(self):
        ended = launch.finish(self.child, 30, stdin='quit\n')
        self.out.seek(0)
        ended.out = self.out.read()
        return ended, json.loads(self.report.read_text())


@contextlib.contextmanager
def running(folder, configuration, *arguments):
    run = Running(folder, configuration, *arguments)
    try:
        yield run
    finally:
        if run.child.poll() is None:
            run.child.kill()
        run.errors.close()
        run.out.close()
