#!/usr/bin/python3
"""Forwarding modes of testpmd: frames of every shape against a model of ours, and against dpdk-testpmd itself."""

import struct
import sys

import captures
import launch
import stock
import tap

OWN = [bytes.fromhex(f'0270636170{port:02x}') for port in range(2)]  # what net_pcap says of itself
PEER = [bytes.fromhex(f'0200000000{port:02x}') for port in range(2)]
SENDER, TARGET = bytes.fromhex('020000000001'), bytes.fromhex('020000000002')
V4, V6 = bytes([10, 0, 0, 1, 10, 0, 0, 2]), bytes([0x20, 1, 13, 184, *range(12), 0x20, 1, 13, 184, *range(20, 32)])


def ethernet(payload, ethertype, tags=()):
    head = TARGET + SENDER + b''.join(struct.pack('>HH', kind, vlan) for kind, vlan in tags) + struct.pack('>H', ethertype)
    return (head + payload).ljust(60, b'\xee')


def ipv4(protocol, payload, tags=(), options=b'', fragment=0, addresses=V4, checksum=None):
    head = struct.pack('>BBHHHBBH', 0x45 + len(options) // 4, 0, 20 + len(options) + len(payload), 7, fragment, 64, protocol, 0)
    head += addresses + options
    sum_of_it = captures.checksum(head) if checksum is None else checksum
    return ethernet(head[:10] + struct.pack('>H', sum_of_it) + head[12:] + payload, 0x0800, tags)


def ipv6(protocol, payload, tags=(), extensions=b'', first=None):
    head = struct.pack('>IHBB', 6 << 28, len(extensions) + len(payload), protocol if first is None else first, 64) + V6
    return ethernet(head + extensions + payload, 0x86dd, tags)


def udp(length, checksum=0x1234):
    return struct.pack('>HHHH', 1000, 53, 8 + length, checksum) + bytes(i % 251 for i in range(length))


def tcp(length):
    return struct.pack('>HHIIBBHHH', 1000, 80, 1, 2, 0x50, 0x10, 512, 0x5678, 0) + bytes(i % 241 for i in range(length))


def echo(length, kind=8, code=0):
    message = struct.pack('>BBHHH', kind, code, 0, 77, 1) + bytes(i % 239 for i in range(length))
    return message[:2] + struct.pack('>H', captures.checksum(message)) + message[4:]


def arp(operation=1, tags=(), hardware=1):
    return ethernet(struct.pack('>HHBBH', hardware, 0x0800, 6, 4, operation) + SENDER + V4[:4] + bytes(6) + V4[4:], 0x0806, tags)


VLAN, QINQ = ((0x8100, 5),), ((0x88a8, 6), (0x8100, 5))
HOP_BY_HOP = struct.pack('>BB6x', 17, 0)
PLAIN = [  # what testpmd treats as we do
    *(ipv4(17, udp(length)) for length in (0, 1, 2, 18, 101, 1472)), ipv4(17, udp(30, checksum=0)), ipv4(17, udp(30), VLAN),
    *(ipv4(6, tcp(length)) for length in (0, 3, 1000)), ipv4(6, tcp(5), VLAN), ipv4(17, udp(9), options=bytes(8)),
    ipv6(17, udp(64)), ipv6(17, udp(33), VLAN), ipv6(6, tcp(77)), ipv4(17, udp(12), checksum=0), ipv4(17, udp(12), checksum=99),
    ipv4(47, bytes(40)), ethernet(bytes(60), 0x88b5)]
ANSWERED = [ipv4(1, echo(length)) for length in (0, 1, 56, 1400)] + [
    ipv4(1, echo(20), VLAN), arp(), arp(tags=VLAN), ipv4(1, echo(8), addresses=V4[:4] + bytes([224, 0, 0, 1]))]
IGNORED = [ipv4(1, echo(8, kind=0)), ipv4(1, echo(8, code=1)), arp(operation=2), arp(hardware=6), ipv6(58, echo(8)),
           ipv4(1, echo(40), fragment=0x2000), ipv4(1, echo(40), fragment=5), ethernet(bytes(46), 0x0806)[:40]]
OTHERS = [  # what testpmd reads past, leaves alone or spoils
    ipv4(17, udp(50), QINQ), ipv6(17, udp(51), first=0, extensions=HOP_BY_HOP), ipv4(17, udp(40), fragment=0x2000),
    ipv4(17, udp(40), fragment=3), ipv6(17, udp(24), first=44, extensions=struct.pack('>BBHI', 17, 0, 8 << 3, 1)),
    ipv4(132, bytes(32)), ipv4(17, udp(200))[:150], ipv4(6, tcp(200))[:50], ipv4(6, tcp(9))[:28], ipv6(6, tcp(200))[:60],
    ipv4(1, echo(20), QINQ), ipv4(1, echo(20), options=bytes(4)),
    ipv4(1, echo(8), addresses=bytes([10, 0, 0, 2, 239, 1, 2, 3])), ipv4(1, echo(8), addresses=bytes([10, 0, 0, 1, 239, 0, 0, 1])),
    *(frame[:30] for frame in PLAIN[:3]), PLAIN[-1][:14]]
TYPES = {0x0800: 4, 0x86dd: 6}


class Packet:
    """Where a frame's headers are; None for those that it has not, or that are in another fragment."""

    def __init__(self, frame):
        at, self.transport, self.whole, self.protocol, self.version = 12, None, False, None, None
        for _ in range(2):
            if frame[at:at + 2] in (b'\x81\x00', b'\x88\xa8'):
                at += 4
        self.type, self.ip = int.from_bytes(frame[at:at + 2], 'big'), at + 2
        head = frame[self.ip:]
        if TYPES.get(self.type) == 4 and len(head) >= 20:
            self.version, self.protocol = 4, head[9]
            fragment = int.from_bytes(head[6:8], 'big') & 0x3fff
            self.whole, self.addresses = fragment == 0, (self.ip + 12, 4)
            self.end = self.ip + int.from_bytes(head[2:4], 'big')
            self.transport = None if fragment & 0x1fff else self.ip + (head[0] & 15) * 4
        elif TYPES.get(self.type) == 6 and len(head) >= 40:
            self.version, self.protocol, self.addresses, self.whole = 6, head[6], (self.ip + 8, 16), True
            self.end, at = self.ip + 40 + int.from_bytes(head[4:6], 'big'), self.ip + 40
            if self.protocol in (0, 44):
                self.whole = self.protocol != 44
                at, self.protocol = (at + 8, frame[at]) if self.whole else (None, frame[at])
            self.transport = at


def replaced(frame, at, data):
    return frame[:at] + data + frame[at + len(data):]


def swapped(frame, at, half):
    return replaced(frame, at, frame[at + half:at + 2 * half] + frame[at:at + half])


def summed(frame, packet):
    """With checksums, but for UDP that has none."""
    header = frame[packet.ip:packet.ip + (frame[packet.ip] & 15) * 4] if packet.version == 4 else b''
    if header and len(header) == (header[0] & 15) * 4:
        frame = replaced(frame, packet.ip + 10, struct.pack('>H', captures.checksum(replaced(header, 10, b'\0\0'))))
    field = {17: 6, 6: 16}.get(packet.protocol)
    if field is None or not packet.whole or packet.end > len(frame):
        return frame
    segment = frame[packet.transport:packet.end]
    if packet.protocol == 17 and not any(segment[6:8]):
        return frame
    at, length = packet.addresses
    pseudo = frame[at:at + 2 * length] + struct.pack('>II', packet.protocol, len(segment))
    right = captures.checksum(pseudo + replaced(segment, field, b'\0\0')) or 0xffff
    return replaced(frame, packet.transport + field, struct.pack('>H', right))


def answered(frame, packet, own):
    if packet.type == 0x0806 and frame[packet.ip:packet.ip + 8] == bytes([0, 1, 8, 0, 6, 4, 0, 1]) and len(frame) >= packet.ip + 28:
        at = packet.ip + 8
        body = b'\0\2' + own + frame[at + 16:at + 20] + frame[at:at + 10]
        return frame[6:12] + own + frame[12:packet.ip + 6] + body + frame[packet.ip + 28:]
    message = frame[packet.transport:] if packet.version == 4 and packet.protocol == 1 and packet.whole else b''
    if len(message) < 8 or message[:2] != b'\x08\0':
        return None
    head = swapped(frame[packet.ip:packet.transport], 12, 4)
    if head[12] >> 4 == 14:
        head = replaced(head, 12, head[16:19] + bytes([head[19] & 0xfc | (2 if head[19] & 3 == 1 else 1)]))
        head = replaced(head, 10, struct.pack('>H', captures.checksum(replaced(head, 10, b'\0\0'))))
    payload = message[:packet.end - packet.transport]
    total = struct.pack('>H', captures.checksum(b'\0\0\0\0' + payload[4:]))
    return swapped(frame, 0, 6)[:packet.ip] + head + b'\0\0' + total + message[4:]


def model(mode, frame, port):
    """What leaves for `frame` that went in at the other port, or, in mode icmpecho, at this one. None: nothing does."""
    packet = Packet(frame)
    if mode in ('mac', 'csum'):
        frame = PEER[port] + OWN[port] + frame[12:]
        return frame if mode == 'mac' else summed(frame, packet)
    if mode == 'icmpecho':
        return answered(frame, packet, OWN[port])
    frame = swapped(frame, 0, 6)
    if packet.version:
        frame = swapped(frame, *packet.addresses)
    if packet.protocol in (6, 17) and packet.transport and len(frame) >= packet.transport + 4:
        frame = swapped(frame, packet.transport, 2)
    return frame


def forwarded(mode, frames, *options):
    """What halfpage sends through each of two ports that `frames` come in at."""
    with launch.scratch() as folder:
        (folder / 'in.pcap').write_bytes(captures.written(frames))
        ports = [f'--vdev=net_pcap{i},rx_pcap={folder}/in.pcap,tx_pcap={folder}/out{i}.pcap' for i in range(2)]
        ended = launch.halfpage('--no-huge', '--no-pci', '-m', '128', *ports, '--', f'--forward-mode={mode}',
                                '--duration=300ms', *options)
        launch.expect_good(ended)
        return [captures.read(folder / f'out{i}.pcap') for i in range(2)]


def compare(mode, frames, out, options=''):
    for port in range(2):
        wanted = [each for each in (model(mode, frame, port) for frame in frames) if each is not None]
        tap.expect(len(out[port]) == len(wanted), f'{mode} {options}: {len(out[port])} frames left port {port}, not {len(wanted)}')
        for number, (want, got) in enumerate(zip(wanted, out[port])):
            tap.expect(want == got, f'{mode} {options}, port {port}, frame {number} of {len(want)} bytes', want[:120].hex(),
                       got[:120].hex())


def register(mode, frames):
    @tap.subtest(f'--forward-mode={mode}: frames of every shape leave as they should, in one buffer and in many')
    def _():
        everything = [*PLAIN, *ANSWERED, *IGNORED, *OTHERS]
        for options in ([], ['--mbuf-size=188']):  # the first buffer has 60 bytes then
            compare(mode, everything, forwarded(mode, everything, *options), options)

    @tap.subtest(f'--forward-mode={mode}: dpdk-testpmd sends the same')
    def _():
        theirs = stock.forward_frames(stock.NO_HUGE, frames, mode)
        compare(mode, frames, theirs, 'of testpmd')
        tap.expect(theirs == forwarded(mode, frames), 'halfpage and testpmd differ')


for each_mode, given in {'mac': PLAIN, 'csum': PLAIN, '5tswap': PLAIN, 'icmpecho': ANSWERED}.items():
    register(each_mode, given)


@tap.subtest('--eth-peer says where mac sends, and set eth-peer and set fwd change it while the run goes on')
def _():
    out = forwarded('mac', PLAIN, '--eth-peer=1,02:aa:00:00:00:0b', '--eth-peer', '0,02:AA:00:00:00:0c')
    for port, peer in enumerate(('02aa0000000c', '02aa0000000b')):
        tap.expect({frame[:12] for frame in out[port]} == {bytes.fromhex(peer) + OWN[port]}, out[port][0].hex())
    with launch.scratch() as folder:
        (folder / 'in.pcap').write_bytes(captures.written(PLAIN))
        ports = [f'--vdev=net_pcap{i},rx_pcap={folder}/in.pcap,tx_pcap={folder}/out{i}.pcap' for i in range(2)]
        ended = launch.halfpage('--no-huge', '--no-pci', '-m', '128', *ports, '--', '-i', stdin='set fwd csum\nshow config fwd\n'
                                'set eth-peer port0 02:aa:00:00:00:0d\nset eth-peer 1 02:aa:00:00:00:0e\nstart\nstop\nquit\n')
        launch.expect_good(ended)
        tap.expect('port 0 (port0): program fwd_csum, sink from0_to1' in ended.out, ended)
        for port, peer in enumerate(('02aa0000000d', '02aa0000000e')):
            heads = {frame[:12] for frame in captures.read(folder / f'out{port}.pcap')}
            tap.expect(heads == {bytes.fromhex(peer) + OWN[port]}, heads, ended)


@tap.subtest('modes of the prompt: which program each gives, and words for those that are none')
def _():
    given = {'io': 'none', 'mac': 'fwd_mac', 'macswap': 'fwd_macswap', 'csum': 'fwd_csum', '5tswap': 'fwd_5tswap',
             'icmpecho': 'fwd_icmpecho_back', 'rxonly': 'drop'}
    lines = [line for mode in given for line in (f'set fwd {mode}', 'show config fwd')]
    ended = launch.halfpage('--no-huge', '--no-pci', '-m', '128', '--vdev=net_null0', '--vdev=net_null1', '--', '-i', '--auto-start',
                            stdin='\n'.join([*lines, 'set fwd flowgen', 'quit', '']))
    launch.expect_good(ended)
    for mode, program in given.items():
        told = ended.out.split(f'> set fwd {mode}\n')[1].split('> set fwd')[0]
        tap.expect(told.count(f'program {program}') == 2 + 2, mode, told)
    tap.expect('ours: frames are made by sources' in ended.out, ended)
    for line, words in {'set fwd nothing': 'no forwarding mode nothing; ours are io, rxonly, mac, macswap, csum, icmpecho, 5tswap',
                        'set eth-peer 0 02:00:0': 'give six bytes as in 02:00:00:00:00:0a',
                        'set eth-peer 9 02:00:00:00:00:01': 'there is no port 9'}.items():
        ended = launch.halfpage('--no-huge', '--no-pci', '-m', '128', '--vdev=net_null0', '--', '-i', stdin=f'{line}\nquit\n')
        tap.expect(ended.code != 0 and words in ended.err, line, ended)


if __name__ == '__main__':
    sys.exit(tap.main())
