"""Classic pcap files, read and written without libpcap: a second opinion on what halfpage and testpmd do with frames."""

import pathlib
import random
import struct

HEADER = struct.Struct('<IHHiIII')
RECORD = struct.Struct('<IIII')
ETHERNET = 1


def records(data):
    """(seconds since 1970, frame) of a classic little-endian pcap file, in order. Raises ValueError for anything else."""
    magic, *_ = HEADER.unpack_from(data)
    if magic not in (0xa1b2c3d4, 0xa1b23c4d):
        raise ValueError('not a little-endian pcap file')
    found, at, fraction = [], HEADER.size, 1e-9 if magic == 0xa1b23c4d else 1e-6
    while at < len(data):
        seconds, parts, captured, _ = RECORD.unpack_from(data, at)
        at += RECORD.size
        found.append((seconds + parts * fraction, data[at:at + captured]))
        if len(found[-1][1]) != captured:
            raise ValueError(f'record {len(found)} is cut short')
        at += captured
    return found


def read_bytes(data):
    """The frames of records()."""
    return [frame for _, frame in records(data)]


def read(path):
    return read_bytes(pathlib.Path(path).read_bytes())


def written(frames, times=None):
    """The bytes of a pcap file of Ethernet frames, at `times` (seconds) or a millisecond apart."""
    data = [HEADER.pack(0xa1b2c3d4, 2, 4, 0, 0, 262144, ETHERNET)]
    for number, frame in enumerate(frames):
        at = number * 1000 if times is None else round(times[number] * 1e6)
        data += [RECORD.pack(at // 1000000, at % 1000000, len(frame), len(frame)), frame]
    return b''.join(data)


def made_up(lengths, seed=1):
    """Frames of these lengths (14 and up): a MAC header of an EtherType for experiments, then noise."""
    noise = random.Random(seed)
    head = bytes.fromhex('020000000001' '020000000002' '88b5')
    return [head + noise.randbytes(length - len(head)) for length in lengths]


def checksum(data):
    """The Internet checksum of `data`."""
    if len(data) % 2:
        data += b'\0'
    total = sum(struct.unpack(f'>{len(data) // 2}H', data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def udp(payload, source, destination):
    """An Ethernet frame of IPv4 and UDP: the IPv4 checksum is right, the UDP checksum 0, which says there is none."""
    head = struct.pack('>BBHHHBBH4s4s', 0x45, 0, 28 + len(payload), 0, 0, 64, 17, 0, bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2]))
    head = head[:10] + struct.pack('>H', checksum(head)) + head[12:]
    return (bytes.fromhex('020000000001' '020000000002' '0800') + head +
            struct.pack('>HHHH', source, destination, 8 + len(payload), 0) + payload)


def udp_checksum(frame):
    """The two bytes that belong into the checksum field of a frame of udp()."""
    datagram = frame[34:40] + b'\0\0' + frame[42:]
    return struct.pack('>H', checksum(frame[26:34] + struct.pack('>BBH', 0, 17, len(datagram)) + datagram) or 0xffff)
