#!/usr/bin/python3
"""Unmodified dpdk-testpmd on the page_frag handler: every forwarding mode, and every byte of what it forwards."""

import itertools
import sys

import captures
import launch
import stock
import tap
from stock import MEMORIES, NO_HUGE, forward, forward_frames, testpmd, until_enough

MODES = ('io', 'mac', 'macswap')  # nothing is dropped and nothing made up


def register_forwarding():
    for (where, memory), mode in itertools.product(MEMORIES.items(), MODES):

        @tap.subtest(f'testpmd forwards in mode {mode} between net_null ports {where}')
        def _(memory=memory, mode=mode):
            forward(memory, ['net_null0', 'net_null1'], mode)

        @tap.subtest(f'testpmd forwards in mode {mode} between net_ring ports {where}')
        def _(memory=memory, mode=mode):
            forward(memory, ['net_ring0', 'net_ring1'], mode, '--tx-first', ahead=2 * 32)


register_forwarding()


def register_other_modes():
    for where, memory in MEMORIES.items():

        @tap.subtest(f'testpmd forwards in mode csum, checksums in software, {where}')
        def _(memory=memory):
            forward(memory, ['net_null0', 'net_null1'], 'csum')

        @tap.subtest(f'testpmd forwards in mode 5tswap {where}')
        def _(memory=memory):
            forward(memory, ['net_null0', 'net_null1'], '5tswap')

        @tap.subtest(f'testpmd receives and frees in mode rxonly {where}')
        def _(memory=memory):
            until_enough(10000, lambda seconds: testpmd(memory, ['net_null0', 'net_null1'], ['--forward-mode=rxonly'], seconds),
                         lambda ended: stock.totals(ended)[0])

        @tap.subtest(f'testpmd makes up packets of several segments in mode txonly {where}')
        def _(memory=memory):
            options = ['--forward-mode=txonly', '--txpkts=64,128,256']
            until_enough(10000, lambda seconds: testpmd(memory, ['net_null0', 'net_null1'], options, seconds),
                         lambda ended: stock.totals(ended)[1])

        @tap.subtest(f'testpmd makes up flows and drops what comes back in mode flowgen {where}')
        def _(memory=memory):
            until_enough(10000,
                         lambda seconds: testpmd(memory, ['net_ring0', 'net_ring1'], ['--forward-mode=flowgen'], seconds),
                         lambda ended: stock.totals(ended)[0])


register_other_modes()


def udp_frames():
    """Frames with right IPv4 checksums and, as UDP allows, none of their own; the payload tells them apart."""
    frames = []
    for number, length in enumerate([*range(60, 1515, 7)] * 4):
        frames.append(captures.udp(bytes([number % 251]) * (length - 42), source=1000 + number, destination=53))
    return frames


def rewritten(before, after, mode):
    """What `mode` must make of the frame `before`. Where addresses are anything, they are those of `after`."""
    swapped = before[6:12] + before[:6]
    if mode == 'macswap':
        return swapped + before[12:]
    if mode == '5tswap':  # addresses and ports change places, which leaves the IPv4 checksum right
        return swapped + before[12:26] + before[30:34] + before[26:30] + before[36:38] + before[34:36] + before[38:]
    return before if mode == 'io' else after[:12] + before[12:]


def register_contents():
    for (where, memory), mode in itertools.product(MEMORIES.items(), (*MODES, '5tswap')):

        @tap.subtest(f'testpmd in mode {mode} hands every byte of captured frames on {where}')
        def _(memory=memory, mode=mode):
            frames = udp_frames() if mode == '5tswap' else captures.made_up([*range(60, 1515, 7)] * 8)
            for port, out in enumerate(forward_frames(memory, frames, mode)):
                tap.expect(len(out) == len(frames), f'{len(out)} of {len(frames)} frames left port {port}')
                for number, (before, after) in enumerate(zip(frames, out)):
                    tap.expect(after == rewritten(before, after, mode),
                               f'port {port}, frame {number} of {len(before)} bytes was changed')


register_contents()


def register_checksums():
    for where, memory in MEMORIES.items():

        @tap.subtest(f'testpmd in mode csum writes the IPv4 and UDP checksums that we compute {where}')
        def _(memory=memory):
            frames = udp_frames()
            for port, out in enumerate(forward_frames(memory, frames, 'csum')):
                tap.expect(len(out) == len(frames), f'{len(out)} of {len(frames)} frames left port {port}')
                for number, (before, after) in enumerate(zip(frames, out)):
                    tap.expect(after[12:40] == before[12:40] and after[42:] == before[42:],
                               f'port {port}, frame {number}: more than addresses and the UDP checksum was changed')
                    tap.expect(after[40:42] in (before[40:42], captures.udp_checksum(before)),
                               f'port {port}, frame {number}: a wrong UDP checksum')


register_checksums()


@tap.subtest('testpmd forwards frames that chain several buffers')
def _():
    frames = captures.made_up([64, 1514, 3000, 6000, 9000] * 20)
    for port, out in enumerate(forward_frames(NO_HUGE, frames, 'io', '--mbuf-size=1024')):
        tap.expect(out == frames, f'what left port {port} is not what went in')


@tap.subtest('testpmd refuses a handler that is not there, so the others did use this one')
def _():
    load, environment = stock.handler()
    load = [argument.replace(f'={stock.OPS}', '=no_such_ops') for argument in load]
    with stock.file_prefix() as prefix:
        ended = launch.run([stock.program('dpdk-testpmd'), *launch.lcores(2), '--no-pci', *NO_HUGE, *prefix, *load, '--vdev',
                            'net_null0', '--', '--auto-start', '--total-num-mbufs=4096'], env=environment, cwd='/')
    tap.expect(ended.code != 0, ended)


if __name__ == '__main__':
    sys.exit(tap.main())
