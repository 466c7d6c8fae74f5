"""Network namespaces of a test's own, named by its process, gone with it whatever happens.

`Sides` makes three: two sides with an address each, and between them a middle that has the near end of a kernel veth into
each side. Nothing joins the two but what the test starts in the middle.
"""

import contextlib
import json
import os
import re
import shutil
import subprocess

import tap

ADDRESSES = ('10.77.0.1', '10.77.0.2')


def need(*programs):
    """Skips the subtest where namespaces cannot be made."""
    if os.getuid() != 0:
        raise tap.Skip('network namespaces need root')
    for program in ('ip', 'ethtool', 'ping', *programs):
        if not shutil.which(program):
            raise tap.Skip(f'{program} is not installed (tools/setup installs it)')


def sh(*command, check=True):
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if check and done.returncode:
        raise AssertionError(f'{" ".join(command)}: {done.stderr.strip()}')
    return done.stdout


class Sides:
    """Two sides and a middle; `near[i]` are the middle's interfaces, `far` the name of the side's own."""

    def __init__(self, mtu=1500, joined=True):
        self.mtu = mtu
        self.names = [f'hp{os.getpid()}{letter}' for letter in 'abm']
        self.near = ('near0', 'near1')
        self.joined = joined

    def __enter__(self):
        with contextlib.ExitStack() as undo:
            undo.callback(self.remove)
            for name in self.names:
                sh('ip', 'netns', 'add', name)
                self.in_(name, 'sysctl', '-qw', 'net.ipv6.conf.all.disable_ipv6=1', check=False)
                self.in_(name, 'ip', 'link', 'set', 'lo', 'up')
            for side in range(2) if self.joined else ():
                sh('ip', '-n', self.middle, 'link', 'add', self.near[side], 'type', 'veth', 'peer', 'name', 'far', 'netns',
                   self.names[side])
                self.address(side, 'far')
                self.in_(self.middle, 'ip', 'link', 'set', self.near[side], 'mtu', str(self.mtu), 'up')
                for namespace, interface in ((self.middle, self.near[side]), (self.names[side], 'far')):
                    # A packet socket sees what a NIC would be left to do: sums not written, frames not cut.
                    self.in_(namespace, 'ethtool', '-K', interface, 'tx', 'off', 'tso', 'off', 'gso', 'off', 'gro', 'off')
            undo.pop_all()
        return self

    def __exit__(self, *_):
        self.remove()

    @property
    def middle(self):
        return self.names[2]

    def address(self, side, interface):
        """Brings a side's interface up with its address."""
        self.in_(self.names[side], 'ip', 'addr', 'add', f'{ADDRESSES[side]}/24', 'dev', interface)
        self.in_(self.names[side], 'ip', 'link', 'set', interface, 'mtu', str(self.mtu), 'up')

    def remove(self):
        for name in self.names:
            sh('ip', 'netns', 'del', name, check=False)

    @staticmethod
    def command(namespace, *command):
        return ['ip', 'netns', 'exec', namespace, *map(str, command)]

    def in_(self, namespace, *command, check=True):
        return sh(*self.command(namespace, *command), check=check)

    def ping(self, count=1, size=56, wait=1):
        """How many of `count` pings from side 0 to side 1 came back."""
        out = self.in_(self.names[0], 'ping', '-n', '-M', 'do', '-s', str(size), '-c', str(count), '-i', '0.05', '-W', str(wait),
                       ADDRESSES[1], check=False)
        found = re.search(r'(\d+) received', out)
        return int(found.group(1)) if found else 0

    def iperf(self, *arguments, seconds=1):
        """One run of iperf3 from side 0 to side 1; gives its own account of the end.

        A server of its own for each run: between two runs a server closes its listening socket and makes it anew, and resets
        whoever has come meanwhile.
        """
        server = subprocess.Popen(self.command(self.names[1], 'iperf3', '--server', '--one-off', '--forceflush'),
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            said = ''
            while 'listening' not in said:
                line = server.stdout.readline()
                tap.expect(line, f'iperf3 --server does not start\n{said}')
                said += line
            client = self.command(self.names[0], 'iperf3', '--json', '--client', ADDRESSES[1], '--time', seconds, *arguments)
            done = subprocess.run(client, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60 + seconds)
        finally:
            server.terminate()
            said = server.communicate()[0]
        result = json.loads(done.stdout or '{}')
        tap.expect(done.returncode == 0 and 'error' not in result,
                   f'iperf3 {" ".join(arguments)}: {result.get("error")}\n{done.stderr}\nthe server: {said}')
        return result['end']
