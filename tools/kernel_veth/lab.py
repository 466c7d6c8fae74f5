"""Two network namespaces with two veth pairs between them, which vanish with the process that made them.

    inner namespace: veth0, veth2        outer namespace: veth1, veth3        veth0 <-> veth1, veth2 <-> veth3

Traffic starts at veth1; the program that is measured is on veth0. The namespaces have no name: when the two processes
that live in them end, however they end, the kernel removes namespaces, devices and programs.
"""

import array
import contextlib
import ctypes
import fcntl
import os
import pathlib
import signal
import socket
import struct
import subprocess

CLONE_NEWNET = 0x40000000
PR_SET_PDEATHSIG = 1
SIOCETHTOOL = 0x8946
ETHTOOL_GSTRINGS, ETHTOOL_GSTATS, ETHTOOL_GSSET_INFO = 0x1b, 0x1d, 0x37
STATISTICS = 1  # ETH_SS_STATS
NAME_BYTES = 32
INNER_ADDRESS, OUTER_ADDRESS = '10.77.0.1', '10.77.0.2'
ADDRESSES = {f'veth{n}': f'02:00:00:00:00:0{n}' for n in range(4)}
OUTER = ('veth1', 'veth3')

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result, what):
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f'{what}: {os.strerror(code)}')


def new_namespace():
    _checked(_libc.unshare(CLONE_NEWNET), 'unshare(CLONE_NEWNET)')


def enter(namespace):
    _checked(_libc.setns(namespace, CLONE_NEWNET), 'setns')


def ip(*words):
    done = subprocess.run(['ip', *map(str, words)], capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(0, f'ip {" ".join(map(str, words))}: {done.stderr.strip()}')


def keep_quiet():
    """No IPv6 in this namespace: its router solicitations would be counted as traffic."""
    with contextlib.suppress(OSError):
        for scope in ('all', 'default'):
            pathlib.Path(f'/proc/sys/net/ipv6/conf/{scope}/disable_ipv6').write_text('1')


class Lab:
    """The devices, up and addressed. Several labs can be there at once; the caller stays in the namespace it is in."""

    def __init__(self, mtu):
        home = os.open('/proc/self/ns/net', os.O_RDONLY)
        new_namespace()
        try:
            self.outer = os.open('/proc/self/ns/net', os.O_RDONLY)
            keep_quiet()
            self.keeper = self._start_keeper()
            self.inner = os.open(f'/proc/{self.keeper}/ns/net', os.O_RDONLY)
            for here, there in (('veth1', 'veth0'), ('veth3', 'veth2')):
                ip('link', 'add', here, 'address', ADDRESSES[here], 'mtu', mtu, 'type', 'veth', 'peer', 'name', there,
                   'address', ADDRESSES[there], 'mtu', mtu, 'netns', self.keeper)
            self._bring_up(OUTER, OUTER_ADDRESS, 'veth1', INNER_ADDRESS, 'veth0')
        finally:
            enter(home)
            os.close(home)
        with self.at('veth0'):
            self._bring_up(('veth0', 'veth2'), INNER_ADDRESS, 'veth0', OUTER_ADDRESS, 'veth1')

    @staticmethod
    def _start_keeper():
        """A process that does nothing but live in the inner namespace."""
        ready, told = os.pipe()
        child = os.fork()
        if child == 0:
            _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            code = 1
            with contextlib.suppress(OSError):
                new_namespace()
                keep_quiet()
                os.write(told, b'y')
                code = 0
            os.close(told)
            if code == 0:
                signal.pause()
            os._exit(code)
        os.close(told)
        answer = os.read(ready, 1)
        os.close(ready)
        if answer != b'y':
            os.waitpid(child, 0)
            raise OSError(0, 'a second network namespace cannot be made')
        return child

    @staticmethod
    def _bring_up(devices, address, device, neighbour, neighbour_device):
        ip('link', 'set', 'lo', 'up')
        for name in devices:
            ip('link', 'set', name, 'up')
        ip('address', 'add', f'{address}/24', 'dev', device)
        ip('neighbour', 'add', neighbour, 'lladdr', ADDRESSES[neighbour_device], 'dev', device, 'nud', 'permanent')

    @contextlib.contextmanager
    def at(self, device):
        """The body runs in the namespace of `device`. May be nested."""
        before = os.open('/proc/self/ns/net', os.O_RDONLY)
        enter(self.outer if device in OUTER else self.inner)
        try:
            yield
        finally:
            enter(before)
            os.close(before)

    def statistics(self, device):
        """{name: number} as `ethtool -S` shows them."""
        with self.at(device), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:

            def ask(block):
                request = struct.pack('16sP', device.encode(), block.buffer_info()[0])
                fcntl.ioctl(asker, SIOCETHTOOL, request)

            sets = array.array('I', [ETHTOOL_GSSET_INFO, 0, 1 << STATISTICS, 0, 0])
            ask(sets)
            count = sets[4]
            names = array.array('B', struct.pack('III', ETHTOOL_GSTRINGS, STATISTICS, count) + bytes(count * NAME_BYTES))
            ask(names)
            values = array.array('B', struct.pack('II', ETHTOOL_GSTATS, count) + bytes(count * 8))
            ask(values)
        text = names.tobytes()[12:]
        numbers = struct.unpack(f'{count}Q', values.tobytes()[8:])
        return {text[i * NAME_BYTES:(i + 1) * NAME_BYTES].rstrip(b'\0').decode(): n for i, n in enumerate(numbers)}

    def close(self):
        """Ends the keeper; the namespaces go with their last user."""
        os.kill(self.keeper, signal.SIGKILL)
        os.waitpid(self.keeper, 0)
        for namespace in (self.inner, self.outer):
            os.close(namespace)
