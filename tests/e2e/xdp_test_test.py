#!/usr/bin/python3
"""--xdp-test: unmodified XDP objects over packets, without EAL, as any user."""

import os
import subprocess
import sys
import xml.etree.ElementTree

import tap
from launch import HALFPAGE, halfpage, scratch

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


@tap.subtest('a user without any right runs it')
def _():
    if os.getuid() != 0:
        return
    with scratch() as folder:
        program = folder / 'halfpage'
        for source, name in ((HALFPAGE, 'halfpage'), (BASIC, 'basic.o')):
            subprocess.run(['cp', source, folder / name], check=True)
            os.chmod(folder / name, 0o755)
        os.chmod(folder, 0o755)
        done = subprocess.run([program, '--xdp-test', folder / 'basic.o', '--program', 'swap', '--packet', UDP9],
                              capture_output=True, text=True, user=65534, group=65534, extra_groups=[])
        if 'cannot open shared object' in done.stderr:
            return
        tap.expect(done.returncode == 0, done.stderr)


if __name__ == '__main__':
    sys.exit(tap.main())
