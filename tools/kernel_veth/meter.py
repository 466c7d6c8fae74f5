"""Rows of the measurement: a path through the devices, a source of frames, a size; and how fast that goes."""

import contextlib
import dataclasses
import os
import socket
import time

import bpf
import frames
import lab
import objects
import xsk

WARM_UP = 0.05  # seconds
LIVE_REPEAT = 262144  # frames per system call of the kernel's generator, which sets up a page pool each time
LONGEST_PLAIN = 3506  # MTU up to which a program without frags may be attached: 4096 - 256 - 320 - 14
JUMBO_MTU = 8000
LONGEST_LIVE = 4096 - 256 - 320  # a live frame lies in one page, with headroom and the kernel's shared info


@dataclasses.dataclass(frozen=True)
class Path:
    """A way through the devices, and the counter that tells what arrived at its end."""

    about: str
    device: str = ''
    counter: str = ''


PATHS = {
    'drop': Path('dropped by the program on veth0', 'veth0', 'rx_queue_0_xdp_drops'),
    'pass': Path('passed on to the stack, where nobody listens', 'veth0', 'rx_queue_0_xdp_packets'),
    'tx': Path('sent back by the program on veth0, dropped at veth1', 'veth1', 'rx_queue_0_xdp_drops'),
    'redirect': Path('redirected through veth2, dropped at veth3', 'veth3', 'rx_queue_0_xdp_drops'),
    'afxdp': Path('taken off an AF_XDP socket by a process on the other CPU that never waits'),
}
SOURCES = {
    'frames': 'frames in driver memory (BPF_PROG_RUN, batches of 64)',
    'skbs': 'skbs of a packet socket (sendmmsg of 64, no queueing discipline)',
}


def impossible(path, source, size):
    """Why there is no such row, in words; None where there is."""
    if source == 'frames' and size > LONGEST_LIVE:
        return f'the kernel makes live frames of at most {LONGEST_LIVE} bytes'
    if path == 'afxdp' and size > LONGEST_LIVE:
        return 'frames of several buffers need another reader'
    if path == 'afxdp' and len(os.sched_getaffinity(0)) < 2:
        return 'the reader needs a CPU of its own'
    return None


class Meter:
    """Measures rows, one at a time. Holds a lab for each MTU until it is closed."""

    def __init__(self, seconds, chosen=None):
        self.seconds = seconds
        self.chosen = chosen or {}  # {path: (object file, function)} in place of the program that veth0 has otherwise
        self.labs = {}
        self.cpus = sorted(os.sched_getaffinity(0))

    def close(self):
        for made in self.labs.values():
            made.close()

    def rate(self, path, source, size):
        """Millions of frames a second that reached the end of `path`, all of the kernel's work done on the first CPU."""
        mtu = JUMBO_MTU if size > 1514 else 1500
        if mtu not in self.labs:
            self.labs[mtu] = lab.Lab(mtu)
        os.sched_setaffinity(0, {self.cpus[0]})
        try:
            with contextlib.ExitStack() as stack:
                run = Run(self.labs[mtu], mtu > LONGEST_PLAIN, stack, self.chosen.get(path))
                count = run.end_of(path, self.cpus[-1])
                send = run.source(source, frames.udp_frame(size))
                send_for(send, WARM_UP)
                before, began = count(), time.monotonic()
                send_for(send, self.seconds)
                ended, after = time.monotonic(), count()
                return (after - before) / (ended - began) / 1e6
        finally:
            os.sched_setaffinity(0, self.cpus)


def send_for(send, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        send()


class Run:
    """Programs, maps and sockets of one row; they go when `stack` does."""

    def __init__(self, veth, frags, stack, chosen=None):
        self.veth, self.frags, self.stack, self.chosen = veth, frags, stack, chosen

    def own(self, descriptor):
        self.stack.callback(os.close, descriptor)
        return descriptor

    def attach(self, device, code):
        program = self.own(bpf.load(code, self.frags))
        with self.veth.at(device):
            self.own(bpf.attach(program, socket.if_nametoindex(device)))

    def attach_object(self, path):
        """The chosen object's program on veth0. One that redirects has a devmap called outs."""
        loaded = objects.Object(*self.chosen)
        self.stack.callback(loaded.close)
        with self.veth.at('veth0'):
            if path == 'redirect':
                loaded.set_entry('outs', socket.if_nametoindex('veth2'))
            self.own(bpf.attach(loaded.program, socket.if_nametoindex('veth0')))

    def redirecting(self, target):
        """Code that redirects to `target`, by a devmap, which is the fast way."""
        with self.veth.at(target):
            return bpf.redirecting(self.own(bpf.one_entry_map(bpf.DEVMAP, socket.if_nametoindex(target))))

    def end_of(self, path, reader_cpu):
        """Attaches what the path needs. Returns a function that counts the frames at its end."""
        for device in ('veth1', 'veth3'):  # only a device with a program takes frames that are no skbs
            self.attach(device, bpf.returning(bpf.DROP))
        if path == 'afxdp':
            with self.veth.at('veth0'):
                reader = xsk.Reader(socket.if_nametoindex('veth0'), reader_cpu)
            self.stack.callback(reader.close)
            self.attach('veth0', bpf.redirecting(self.own(bpf.one_entry_map(bpf.XSKMAP, reader.descriptor()))))
            return reader.count
        if self.chosen:
            self.attach_object(path)
        elif path == 'redirect':
            self.attach('veth0', self.redirecting('veth2'))
        else:
            self.attach('veth0', bpf.returning({'drop': bpf.DROP, 'pass': bpf.PASS, 'tx': bpf.TX}[path]))
        return lambda: self.veth.statistics(PATHS[path].device)[PATHS[path].counter]

    def source(self, source, frame):
        """Returns a function that sends a batch through veth1. The caller lives in its namespace from now on."""
        self.stack.enter_context(self.veth.at('veth1'))
        if source == 'skbs':
            sender = frames.PacketSocket('veth1', frame)
            self.stack.callback(sender.close)
            return sender.send
        return bpf.LiveFrames(self.own(bpf.load(self.redirecting('veth1'), self.frags)), frame, LIVE_REPEAT).send
