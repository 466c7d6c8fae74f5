#!/usr/bin/python3
"""Unmodified DPDK programs on the page_frag handler: dpdk-testpmd forwards, dpdk-test's own tests pass."""

import contextlib
import itertools
import os
import re
import shutil
import sys
import time

import captures
import launch
import tap

OPS = os.environ.get('MEMPOOL_OPS', 'page_frag')  # ring_mp_mc here tests this file, with DPDK's own handler
NO_HUGE = ('--no-huge', '-m', '512')
HUGE = ('--in-memory',)
PAGES = 128  # hugepages that one run may need
MODES = ('io', 'mac', 'macswap')
numbers = itertools.count()


def handler():
    """(EAL arguments, environment) that load the handler: by its path, or by name where EAL would not trust the path."""
    if OPS != 'page_frag':
        return [f'--mbuf-pool-ops-name={OPS}'], dict(os.environ)
    arguments = [f'--mbuf-pool-ops-name={OPS}']
    so = launch.PAGE_FRAG_SO
    if not launch.world_writable_above(so):
        return ['-d', str(so), *arguments], dict(os.environ)
    path = ':'.join(filter(None, [str(so.parent), os.environ.get('LD_LIBRARY_PATH')]))
    return ['-d', so.name, *arguments], {**os.environ, 'LD_LIBRARY_PATH': path}


@contextlib.contextmanager
def file_prefix():
    """EAL arguments for a runtime folder of one's own; stock programs leave it behind, so it is removed here."""
    name = f'halfpage_test_{os.getpid()}_{next(numbers)}'
    try:
        yield [f'--file-prefix={name}']
    finally:
        shutil.rmtree(launch.runtime_folder() / name, ignore_errors=True)


def testpmd(memory, devices, options, seconds):
    """Runs dpdk-testpmd for about `seconds` of forwarding, then presses Enter. Returns how it ended."""
    program = shutil.which('dpdk-testpmd')
    tap.expect(program, 'dpdk-testpmd is not installed; run tools/setup')
    if memory == HUGE:
        launch.need_hugepages(PAGES)
    load, environment = handler()
    with file_prefix() as prefix:
        command = [program, *launch.lcores(2), '--no-pci', *memory, *prefix, *load,
                   *[part for device in devices for part in ('--vdev', device)],
                   '--', '--auto-start', '--total-num-mbufs=16384', *options]
        child = launch.start(command, stdin=-1, env=environment, cwd='/')
        time.sleep(0.5 + seconds)
        return launch.finish(child, 20, stdin='\n')


def expect_balanced(ended, ahead=0):
    """Clean exit, and packets in are packets out, on each port and over all of them. Returns how many came in.

    `ahead`: packets that were sent before any came in (--tx-first: a burst per port).
    """
    tap.expect(ended.code == 0, 'expected exit code 0', ended)
    ports = re.findall(r'Forward statistics for port \d+ .*?RX-packets: (\d+)', ended.out, re.DOTALL)
    total = re.search(r'Accumulated forward statistics.*?RX-packets: (\d+)\s+RX-dropped: (\d+).*?TX-packets: (\d+)\s+'
                      r'TX-dropped: (\d+)', ended.out, re.DOTALL)
    tap.expect(ports and total, 'no forward statistics', ended)
    received, missed, sent, dropped = map(int, total.groups())
    tap.expect(sent + dropped == received + ahead, f'{received} packets received, {sent} sent, {dropped} dropped', ended)
    tap.expect(missed == 0, f'{missed} packets missed for want of buffers', ended)
    tap.expect(sum(map(int, ports)) == received, 'ports do not add up', ended)
    tap.expect(not re.search(r'error|fail', ended.err, re.IGNORECASE), 'stderr is not clean', ended)
    return received


def forward(memory, devices, mode, *options, enough=10000, ahead=0):
    """Forwards until `enough` packets came in; on a busy machine testpmd may start late, and gets more time then."""
    for seconds in (0.7, 4, 15):
        ended = testpmd(memory, devices, [f'--forward-mode={mode}', *options], seconds)
        received = expect_balanced(ended, ahead)
        if received >= enough:
            return received
    raise AssertionError(f'{received} packets received, {enough} expected\n{ended}')


def register_forwarding():
    for memory, mode in itertools.product((NO_HUGE, HUGE), MODES):
        where = 'without hugepages' if memory == NO_HUGE else 'with hugepages'

        @tap.subtest(f'testpmd forwards in mode {mode} between net_null ports {where}')
        def _(memory=memory, mode=mode):
            forward(memory, ['net_null0', 'net_null1'], mode)

        @tap.subtest(f'testpmd forwards in mode {mode} between net_ring ports {where}')
        def _(memory=memory, mode=mode):
            forward(memory, ['net_ring0', 'net_ring1'], mode, '--tx-first', ahead=2 * 32)


register_forwarding()


def forward_frames(memory, frames, mode, *options):
    """Sends `frames` through both ports of a pair of captures. Returns what left each port."""
    with launch.scratch() as folder:
        (folder / 'in.pcap').write_bytes(captures.written(frames))
        devices = [f'net_pcap{i},rx_pcap={folder}/in.pcap,tx_pcap={folder}/out{i}.pcap' for i in range(2)]
        # Without --no-flush-rx testpmd throws away what waits in its ports before it starts: all of the captures.
        received = forward(memory, devices, mode, '--no-flush-rx', *options, enough=2 * len(frames))
        tap.expect(received == 2 * len(frames), f'2 x {len(frames)} frames went in, {received} came')
        return [captures.read(folder / f'out{i}.pcap') for i in range(2)]


def rewritten(before, after, mode):
    """What `mode` must make of the frame `before`. For mac it is any pair of addresses, here those of `after`."""
    if mode == 'macswap':
        return before[6:12] + before[:6] + before[12:]
    return before if mode == 'io' else after[:12] + before[12:]


def register_contents():
    for memory, mode in itertools.product((NO_HUGE, HUGE), MODES):
        where = 'without hugepages' if memory == NO_HUGE else 'with hugepages'

        @tap.subtest(f'testpmd in mode {mode} hands every byte of captured frames on {where}')
        def _(memory=memory, mode=mode):
            frames = captures.made_up([*range(60, 1515, 7)] * 8)
            for port, out in enumerate(forward_frames(memory, frames, mode)):
                tap.expect(len(out) == len(frames), f'{len(out)} of {len(frames)} frames left port {port}')
                for number, (before, after) in enumerate(zip(frames, out)):
                    tap.expect(after == rewritten(before, after, mode),
                               f'port {port}, frame {number} of {len(before)} bytes was changed')


register_contents()


@tap.subtest('testpmd forwards frames that chain several buffers')
def _():
    frames = captures.made_up([64, 1514, 3000, 6000, 9000] * 20)
    for port, out in enumerate(forward_frames(NO_HUGE, frames, 'io', '--mbuf-size=1024')):
        tap.expect(out == frames, f'what left port {port} is not what went in')


@tap.subtest('testpmd refuses a handler that is not there, so the others did use this one')
def _():
    load, environment = handler()
    load = [argument.replace(f'={OPS}', '=no_such_ops') for argument in load]
    with file_prefix() as prefix:
        ended = launch.run([shutil.which('dpdk-testpmd'), *launch.lcores(2), '--no-pci', *NO_HUGE, *prefix, *load, '--vdev',
                            'net_null0', '--', '--auto-start', '--total-num-mbufs=4096'], env=environment, cwd='/')
    tap.expect(ended.code != 0, ended)


def register_autotests():
    for memory, (test, seconds) in itertools.product((NO_HUGE, HUGE), (('mbuf_autotest', 60), ('mempool_autotest', 240))):
        where = 'without hugepages' if memory == NO_HUGE else 'with hugepages'

        @tap.subtest(f"dpdk-test's {test} passes {where}")
        def _(memory=memory, test=test, seconds=seconds):
            program = shutil.which('dpdk-test')
            tap.expect(program, 'dpdk-test is not installed; run tools/setup')
            if memory == HUGE:
                launch.need_hugepages(PAGES)
            load, environment = handler()
            with file_prefix() as prefix:
                ended = launch.run([program, *launch.lcores(2), '--no-pci', *memory, *prefix, *load], seconds=seconds, cwd='/',
                                   env={**environment, 'DPDK_TEST': test})
            tap.expect(ended.code == 0 and re.search(r'^Test OK$', ended.out, re.MULTILINE), 'no line "Test OK"', ended)


register_autotests()

if __name__ == '__main__':
    sys.exit(tap.main())
