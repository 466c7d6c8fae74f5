"""An AF_XDP socket in copy mode and a process that reads it without ever waiting."""

import ctypes
import errno
import mmap
import os
import signal
import socket
import struct
import time

AF_XDP, SOL_XDP = 44, 283
MMAP_OFFSETS, RX_RING, UMEM_REG, FILL_RING, COMPLETION_RING = 1, 2, 4, 5, 6
FILL_PAGE_OFFSET = 0x100000000
COPY_MODE = 1 << 1
SLOTS = 4096
CHUNK = 4096
PR_SET_PDEATHSIG = 1
BIND_SECONDS = 3


def view(memory, offset, size, letter):
    """`size` bytes of a mapping as an array. Nothing else refers to the mapping once it is released."""
    with memoryview(memory) as whole, whole[offset:offset + size] as part:
        return part.cast(letter)


class Reader:
    """Owns the socket, its memory and the process on `cpu`. `count()` frames have been taken off it so far."""

    def __init__(self, interface_index, cpu):
        libc = ctypes.CDLL(None, use_errno=True)
        self.socket = socket.socket(AF_XDP, socket.SOCK_RAW, 0)
        self.frames = mmap.mmap(-1, SLOTS * CHUNK)
        address = ctypes.addressof(ctypes.c_char.from_buffer(self.frames))
        self.socket.setsockopt(SOL_XDP, UMEM_REG, struct.pack('QQII', address, len(self.frames), CHUNK, 0))
        for ring in (FILL_RING, COMPLETION_RING, RX_RING):
            self.socket.setsockopt(SOL_XDP, ring, SLOTS)
        offsets = struct.unpack('16Q', self.socket.getsockopt(SOL_XDP, MMAP_OFFSETS, 128))
        receive, fill = offsets[0:4], offsets[8:12]
        self.rx = mmap.mmap(self.socket.fileno(), receive[2] + SLOTS * 16, flags=mmap.MAP_SHARED)
        self.fill = mmap.mmap(self.socket.fileno(), fill[2] + SLOTS * 8, flags=mmap.MAP_SHARED, offset=FILL_PAGE_OFFSET)
        self.rx_produced = view(self.rx, receive[0], 4, 'I')
        self.rx_consumed = view(self.rx, receive[1], 4, 'I')
        self.descriptors = view(self.rx, receive[2], SLOTS * 16, 'Q')  # address, then length and options
        self.fill_produced = view(self.fill, fill[0], 4, 'I')
        self.free = view(self.fill, fill[2], SLOTS * 8, 'Q')
        for slot in range(SLOTS):
            self.free[slot] = slot * CHUNK
        self.fill_produced[0] = SLOTS
        self._bind(libc, struct.pack('HHIII', AF_XDP, COPY_MODE, interface_index, 0, 0))
        self.taken = mmap.mmap(-1, mmap.PAGESIZE)
        self.counter = memoryview(self.taken).cast('Q')
        self.child = os.fork()
        if self.child == 0:
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            os.sched_setaffinity(0, {cpu})
            self._read_for_ever()

    def _bind(self, libc, address):
        """The kernel takes its time to let go of the queue that a closed socket was bound to."""
        deadline = time.monotonic() + BIND_SECONDS
        while libc.bind(self.socket.fileno(), address, len(address)) != 0:
            code = ctypes.get_errno()
            if code != errno.EBUSY or time.monotonic() > deadline:
                raise OSError(code, f'bind of an AF_XDP socket: {os.strerror(code)}')
            time.sleep(0.01)

    def _read_for_ever(self):
        """Gives each frame's chunk back at once. Fill and receive ring go in step, for they have as many slots."""
        taken = 0
        while True:
            waiting = (self.rx_produced[0] - taken) & 0xffffffff
            if waiting == 0:
                continue
            first = taken % SLOTS
            n = min(waiting, SLOTS - first)
            self.free[first:first + n] = self.descriptors[2 * first:2 * (first + n):2]
            taken += n
            self.rx_consumed[0] = taken & 0xffffffff
            self.fill_produced[0] = (taken + SLOTS) & 0xffffffff
            self.counter[0] = taken

    def descriptor(self):
        return self.socket.fileno()

    def count(self):
        return self.counter[0]

    def close(self):
        os.kill(self.child, signal.SIGKILL)
        os.waitpid(self.child, 0)
        self.socket.close()
        for view in (self.rx_produced, self.rx_consumed, self.descriptors, self.fill_produced, self.free):
            view.release()
        self.rx.close()
        self.fill.close()
