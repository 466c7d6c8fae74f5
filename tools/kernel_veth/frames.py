"""The frame that is sent, and a packet socket that makes skbs of it."""

import ctypes
import errno
import ipaddress
import os
import socket
import struct

import lab

SOL_PACKET, PACKET_QDISC_BYPASS = 263, 20
DISCARD = 9  # nobody listens there
BATCH = 64


def checksum(data):
    total = sum(struct.unpack(f'!{len(data) // 2}H', data))
    while total > 0xffff:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def udp_frame(size):
    """A UDP/IPv4 frame of `size` bytes without FCS from veth1 to veth0."""
    ethernet = b''.join(bytes.fromhex(lab.ADDRESSES[device].replace(':', '')) for device in ('veth0', 'veth1')) + b'\x08\x00'
    addresses = ipaddress.ip_address(lab.OUTER_ADDRESS).packed + ipaddress.ip_address(lab.INNER_ADDRESS).packed
    ip = struct.pack('!BBHHHBBH', 0x45, 0, size - 14, 1, 0, 64, socket.IPPROTO_UDP, 0) + addresses
    ip = ip[:10] + struct.pack('!H', checksum(ip)) + ip[12:]
    udp = struct.pack('!HHHH', 1024, DISCARD, size - 34, 0)
    return (ethernet + ip + udp).ljust(size, b'h')


class _Vector(ctypes.Structure):
    _fields_ = [('base', ctypes.c_void_p), ('length', ctypes.c_size_t)]


class _Header(ctypes.Structure):
    """struct msghdr."""
    _fields_ = [('name', ctypes.c_void_p), ('name_length', ctypes.c_uint), ('vectors', ctypes.POINTER(_Vector)),
                ('vector_count', ctypes.c_size_t), ('control', ctypes.c_void_p), ('control_length', ctypes.c_size_t),
                ('flags', ctypes.c_int)]


class _Message(ctypes.Structure):
    """struct mmsghdr."""
    _fields_ = [('header', _Header), ('sent', ctypes.c_uint)]


class PacketSocket:
    """Sends one frame over and over, BATCH frames per system call, past the queueing discipline."""

    def __init__(self, device, frame):
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self.socket.setsockopt(SOL_PACKET, PACKET_QDISC_BYPASS, 1)
        self.socket.bind((device, 0))
        self.frame = ctypes.create_string_buffer(frame, len(frame))
        self.vector = _Vector(ctypes.addressof(self.frame), len(frame))
        self.messages = (_Message * BATCH)()
        for message in self.messages:
            message.header.vectors = ctypes.pointer(self.vector)
            message.header.vector_count = 1
        self.sendmmsg = ctypes.CDLL(None, use_errno=True).sendmmsg

    def send(self):
        """Sends a batch. Returns how many frames the kernel took; 0 where its ring was full."""
        taken = self.sendmmsg(self.socket.fileno(), self.messages, BATCH, 0)
        if taken >= 0:
            return taken
        code = ctypes.get_errno()
        if code in (errno.ENOBUFS, errno.EAGAIN, errno.EINTR):
            return 0
        raise OSError(code, f'sendmmsg: {os.strerror(code)}')

    def close(self):
        self.socket.close()
