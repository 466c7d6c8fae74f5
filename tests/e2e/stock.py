"""Unmodified DPDK programs with the handler under test: how they are started, and what testpmd prints at its end."""

import contextlib
import itertools
import os
import re
import shutil
import time

import captures
import launch
import tap

OPS = os.environ.get('MEMPOOL_OPS', 'page_frag')  # ring_mp_mc here tests the tests, with DPDK's own handler
NO_HUGE = ('--no-huge', '-m', '512')
HUGE = ('--in-memory',)
PAGES = 128  # hugepages that one run may need
MEMORIES = {'without hugepages': NO_HUGE, 'with hugepages': HUGE}
numbers = itertools.count()


def handler(ops=OPS):
    """(EAL arguments, environment) that load the handler: by its path, or by name where EAL would not trust the path."""
    if ops != 'page_frag':
        return [f'--mbuf-pool-ops-name={ops}'], dict(os.environ)
    arguments = [f'--mbuf-pool-ops-name={ops}']
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


def program(name):
    path = shutil.which(name)
    tap.expect(path, f'{name} is not installed; run tools/setup')
    return path


def need(memory):
    """Skips the subtest where the machine has not the pages that `memory` takes."""
    if memory == HUGE:
        launch.need_hugepages(PAGES)


def testpmd(memory, devices, options, seconds, settings=None):
    """Runs dpdk-testpmd for about `seconds` of forwarding, then presses Enter. Returns how it ended.

    `settings`: variables added to its environment.
    """
    need(memory)
    load, environment = handler()
    with file_prefix() as prefix:
        command = [program('dpdk-testpmd'), *launch.lcores(2), '--no-pci', *memory, *prefix, *load,
                   *[part for device in devices for part in ('--vdev', device)],
                   '--', '--auto-start', '--total-num-mbufs=16384', *options]
        child = launch.start(command, stdin=-1, env={**environment, **(settings or {})}, cwd='/')
        time.sleep(0.5 + seconds)
        return launch.finish(child, 20, stdin='\n')


def totals(ended):
    """Packets received, missed, sent and dropped over all ports, of a run that ended well."""
    tap.expect(ended.code == 0, 'expected exit code 0', ended)
    ports = re.findall(r'Forward statistics for port \d+ .*?RX-packets: (\d+)', ended.out, re.DOTALL)
    total = re.search(r'Accumulated forward statistics.*?RX-packets: (\d+)\s+RX-dropped: (\d+).*?TX-packets: (\d+)\s+'
                      r'TX-dropped: (\d+)', ended.out, re.DOTALL)
    tap.expect(ports and total, 'no forward statistics', ended)
    tap.expect(not re.search(r'error|fail', ended.err, re.IGNORECASE), 'stderr is not clean', ended)
    received, missed, sent, dropped = map(int, total.groups())
    tap.expect(missed == 0, f'{missed} packets missed for want of buffers', ended)
    tap.expect(sum(map(int, ports)) == received, 'ports do not add up', ended)
    return received, sent, dropped


def expect_balanced(ended, ahead=0):
    """Clean exit, and packets in are packets out, on each port and over all of them. Returns how many came in.

    `ahead`: packets that were sent before any came in (--tx-first: a burst per port).
    """
    received, sent, dropped = totals(ended)
    tap.expect(sent + dropped == received + ahead, f'{received} packets received, {sent} sent, {dropped} dropped', ended)
    return received


def until_enough(enough, run, count):
    """Repeats `run(seconds)` with more time until `count(ended)` reaches `enough`; a busy machine may start testpmd late."""
    for seconds in (0.7, 4, 15):
        ended = run(seconds)
        counted = count(ended)
        if counted >= enough:
            return counted
    raise AssertionError(f'{counted} packets, {enough} expected\n{ended}')


def forward(memory, devices, mode, *options, enough=10000, ahead=0, settings=None):
    """Forwards until `enough` packets came in. Returns how many did."""
    return until_enough(enough,
                        lambda seconds: testpmd(memory, devices, [f'--forward-mode={mode}', *options], seconds, settings),
                        lambda ended: expect_balanced(ended, ahead))


def forward_frames(memory, frames, mode, *options, settings=None):
    """Sends `frames` through both ports of a pair of captures. Returns what left each port."""
    with launch.scratch() as folder:
        (folder / 'in.pcap').write_bytes(captures.written(frames))
        devices = [f'net_pcap{i},rx_pcap={folder}/in.pcap,tx_pcap={folder}/out{i}.pcap' for i in range(2)]
        # Without --no-flush-rx testpmd throws away what waits in its ports before it starts: all of the captures.
        received = forward(memory, devices, mode, '--no-flush-rx', *options, enough=2 * len(frames), settings=settings)
        tap.expect(received == 2 * len(frames), f'2 x {len(frames)} frames went in, {received} came')
        return [captures.read(folder / f'out{i}.pcap') for i in range(2)]
