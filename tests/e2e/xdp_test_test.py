#!/usr/bin/python3
"""--xdp-test: unmodified XDP objects over packets, without EAL, as any user."""

import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree

import captures
import tap
from launch import HALFPAGE, PAGE_FRAG_SO, ROOT, halfpage, run, scratch

OBJECTS = HALFPAGE.parents[1] / 'tests' / 'bpf'
BASIC = OBJECTS / 'basic.bpf.o'
MAPS = OBJECTS / 'maps.bpf.o'
DEBIAN = '/usr/lib/x86_64-linux-gnu/bpf/'
UDP9 = 'ffffffffffff02000000000108004500002c000000004011b8c2c0a80001c0a8000200350009001800000102030405060708090a0b0c0d0e0f10'
TCP = '0200000000020200000000010800450000280000000040060000' '0a0000010a000002c00000500000000000000000500220000000000000000000'


@tap.subtest('a UDP filter drops what is for port 9 and lets TCP pass, and says so in a table')
def _():
    ended = halfpage('--xdp-test', BASIC, '--program', 'udp_drop', '--packet', UDP9, '--packet', TCP)
    tap.expect(ended.code == 0, ended)
    for line in ('drop            1', 'pass            1', 'program_fault: 0', 'ns per packet:'):
        tap.expect(line in ended.out, f'no line {line}', ended)
    tap.expect('EAL' not in ended.out + ended.err, 'EAL was started', ended)


@tap.subtest("Debian's xdp-filter drops what is denied by default and passes the port that --map names")
def _():
    denied = halfpage('--xdp-test', DEBIAN + 'xdpfilt_dny_udp.o', '--packet', UDP9)
    tap.expect(denied.code == 0 and 'drop            1' in denied.out, denied)
    # Its flags: 2 is the destination, 8 is UDP; the count of hits is kept above them.
    ended = halfpage('--xdp-test', DEBIAN + 'xdpfilt_dny_udp.o', '--packet', UDP9, '--map', 'filter_ports:0x900=10',
                     '--dump-maps')
    tap.expect(ended.code == 0 and 'pass            1' in ended.out, ended)
    tap.expect('xdp_stats_map' in ended.out and '2304: 4a' in ended.out, ended)


@tap.subtest('a verdict that is not the expected one exits 4 and names packet, expected and got')
def _():
    with scratch() as folder:
        (folder / 'expect.txt').write_text('# comment\n1: pass\nudp port 9: drop\nany: pass\n')
        ended = halfpage('--xdp-test', BASIC, '--program', 'udp_drop', '--packet', UDP9, '--packet', UDP9, '--packet', TCP,
                         '--expect', folder / 'expect.txt', '--junit', folder / 'report.xml')
        tap.expect(ended.code == 4, ended)
        tap.expect('packet 1: expected pass' in ended.err and 'expect.txt:2' in ended.err and 'got drop' in ended.err, ended)
        tap.expect('packet 2' not in ended.err, ended)
        report = xml.etree.ElementTree.parse(folder / 'report.xml').getroot()
        tap.expect(report.get('tests') == '3' and report.get('failures') == '1', report.attrib)


@tap.subtest('captures hold the frames as the program left them, by verdict')
def _():
    with scratch() as folder:
        ended = halfpage('--xdp-test', BASIC, '--program', 'add_tag', '--packet', UDP9, '--out', folder / 'out')
        tap.expect(ended.code == 0, ended)
        sizes = {name: os.path.getsize(folder / 'out' / f'{name}.pcap') for name in ('pass', 'tx', 'redirect')}
        tap.expect(sizes == {'pass': 24, 'tx': 24 + 16 + len(UDP9) // 2 + 4, 'redirect': 24}, sizes)
        data = (folder / 'out' / 'tx.pcap').read_bytes()
        tap.expect(data[24 + 16 + 12:24 + 16 + 16] == bytes([0x81, 0, 0, 42]), data)
        again = halfpage('--xdp-test', BASIC, '--program', 'swap', '--pcap-in', folder / 'out' / 'tx.pcap')
        tap.expect(again.code == 0 and 'tx              1' in again.out, again)


@tap.subtest('a long frame is shown as the kernel shows it: 3520 bytes and the rest in pages; others than xdp.frags are warned of')
def _():
    frame = bytes(range(250)) * 36
    with scratch() as folder:
        ended = halfpage('--xdp-test', OBJECTS / 'frags.bpf.o', '--program', 'first', '--packet', frame.hex(), '--repeat', '3',
                         '--out', folder / 'out', '--dump-maps')
        tap.expect(ended.code == 0 and '0028230000000000: c00d000000000000' in ended.out and 'warning' not in ended.err, ended)
        tap.expect(captures.read(folder / 'out' / 'pass.pcap') == [frame], 'not the frame that was given')
        plain = halfpage('--xdp-test', BASIC, '--program', 'pass', '--packet', frame.hex(), '--packet', TCP, '--out', folder / 'out')
        tap.expect(plain.code == 0 and captures.read(folder / 'out' / 'pass.pcap') == [frame, bytes.fromhex(TCP)], plain)
        warnings = [line for line in plain.err.splitlines() if line.startswith('warning: ')]
        tap.expect(len(warnings) == 1 and '1 of 2 packets' in warnings[0] and 'xdp.frags' in warnings[0], plain)


@tap.subtest('--trace prints instructions and registers, and bpf_loop and its callback are run')
def _():
    ended = halfpage('--xdp-test', MAPS, '--program', 'loops', '--packet', UDP9, '--trace')
    tap.expect(ended.code == 0 and ' r10=' in ended.err and 'exit' in ended.err, ended)


@tap.subtest('what is wrong is named, exits 2 and says what there is')
def _():
    cases = [
        (('--xdp-test', '/nowhere.o', '--packet', UDP9), ('/nowhere.o', '-target bpf')),
        (('--xdp-test', BASIC, '--packet', UDP9), ('choose one of', 'udp_drop')),
        (('--xdp-test', BASIC, '--program', 'nope', '--packet', UDP9), ('nope', 'udp_drop')),
        (('--xdp-test', BASIC, '--program', 'swap'), ('--pcap-in', '--packet')),
        (('--xdp-test', BASIC, '--program', 'swap', '--packet', 'xyz'), ('--packet xyz', 'hexadecimal')),
        (('--xdp-test', MAPS, '--program', 'count', '--packet', UDP9, '--map', 'arry:1=2'), ('arry', 'array')),
        (('--xdp-test', MAPS, '--program', 'count', '--packet', UDP9, '--map', 'array:hex:01=2'), ('key', '4 bytes')),
        (('--xdp-test', MAPS, '--program', 'count', '--packet', UDP9, '--map', 'array:99=1:8,2:8'), ('8 entries',)),
        (('--xdp-test', BASIC, '--program', 'swap', '--packet', UDP9, '--repeat', '0'), ('--repeat 0', 'from 1')),
        (('--xdp-test', DEBIAN + 'xdpdump_bpf.o', '--packet', UDP9), ('no XDP program', 'fentry')),
    ]
    for arguments, words in cases:
        ended = halfpage(*arguments)
        tap.expect(ended.code == 2, arguments, ended)
        for word in words:
            tap.expect(word in ended.err, f'stderr does not say: {word}', ended)


def as_nobody(folder, *arguments):
    """Runs a copy of the program that any user may read, as a user without any right where that can be chosen."""
    for name in ('app', 'xdp_emul/bpf'):
        (folder / name).mkdir(parents=True, exist_ok=True)
    copies = {HALFPAGE: folder / 'app' / 'halfpage'}
    module = HALFPAGE.parents[1] / 'xdp_emul/bpf/libhalfpage_bpf_llvm.so'
    if module.exists():
        copies[module] = folder / 'xdp_emul/bpf' / module.name
    for source, copy in copies.items():
        shutil.copy(source, copy)
        copy.chmod(0o755)
    # The handler's library is found beside the build, which the user may not be allowed to enter.
    shutil.copy(PAGE_FRAG_SO, folder / PAGE_FRAG_SO.name)
    environment = {**os.environ, 'LD_LIBRARY_PATH': str(folder)}
    user = {'user': 65534, 'group': 65534, 'extra_groups': []} if os.getuid() == 0 else {}
    return run([copies[HALFPAGE], *arguments], env=environment, cwd=folder, **user)


@tap.subtest("Debian's xdp-filter passes what tcpdump finds in real captures; one changed packet exits 4 and is named")
def _():
    captures_of = (('/usr/share/gocode/src/github.com/google/gopacket/pcap/test_dns.pcap', 53),
                   ('/usr/share/sip-tester/g711a.pcap', 2006))
    for file, port in captures_of:
        with scratch() as folder:
            folder.chmod(0o777)
            found = subprocess.run(['tcpdump', '-nr', file, '-w', '-', f'udp dst port {port}'], capture_output=True, check=True)
            wanted = captures.read_bytes(found.stdout)
            (folder / 'expect.txt').write_text(f'udp dst port {port}: pass\nany: drop\n')
            arguments = ('--xdp-test', DEBIAN + 'xdpfilt_dny_udp.o', '--map', f'filter_ports:hex:{port:04x}0000=10', '--expect',
                         folder / 'expect.txt')
            ended = as_nobody(folder, *arguments, '--pcap-in', file, '--out', folder / 'out')
            tap.expect(ended.code == 0 and 'not as expected: 0' in ended.out, file, ended)
            frames = captures.read(file)
            tap.expect(wanted and len(wanted) <= len(frames), f'{file}: {len(wanted)} of {len(frames)}')
            tap.expect(captures.read(folder / 'out' / 'pass.pcap') == wanted, f'{file}: other frames passed than tcpdump finds')
            # The fifth packet goes to another port, and the file still expects what it was.
            number = 5
            (folder / 'expect.txt').write_text(f'{number}: pass\nany: pass\n')
            frames[number - 1] = frames[number - 1][:36] + b'\x00\x07' + frames[number - 1][38:]
            (folder / 'changed.pcap').write_bytes(captures.written([frame for frame in frames if frame[36:38] in
                                                                    (port.to_bytes(2, 'big'), b'\x00\x07')]))
            ended = as_nobody(folder, *arguments, '--pcap-in', folder / 'changed.pcap')
            tap.expect(ended.code == 4, file, ended)
            tap.expect(f'packet {number}: expected pass' in ended.err and 'expect.txt:1' in ended.err and 'got drop' in ended.err,
                       ended)
            tap.expect('not as expected: 1' in ended.out, ended)


@tap.subtest('records of a ring buffer are printed as they come, one behind the other, however many')
def _():
    packets = [argument for number in range(200) for argument in ('--packet', f'0200000000{2 * number % 256:02x}0200000000010800')]
    ended = run([HALFPAGE, '--xdp-test', BASIC.parent / 'third.bpf.o', '--program', 'records', *packets])
    tap.expect(ended.code == 0 and 'pass          200' in ended.out, ended)
    tap.expect(ended.err.count('event of ring: 0e000000020000000002') == 2 and 'drop            0' in ended.out, ended)


@tap.subtest('a user without any right runs it, and libLLVM is loaded for objects only')
def _():
    with scratch() as folder:
        shutil.copy(BASIC, folder / 'basic.o')
        (folder / 'basic.o').chmod(0o644)
        ended = as_nobody(folder, '--xdp-test', folder / 'basic.o', '--program', 'swap', '--packet', UDP9)
        tap.expect(ended.code == 0 and 'tx              1' in ended.out, ended)
        for arguments in (('--version',), ('--config', ROOT / 'conf/quickstart.yaml', '--check')):
            traced = run([HALFPAGE, *arguments], env={**os.environ, 'LD_DEBUG': 'files'})
            tap.expect('libLLVM' not in traced.err and 'halfpage_bpf_llvm' not in traced.err, arguments, traced)


if __name__ == '__main__':
    sys.exit(tap.main())
