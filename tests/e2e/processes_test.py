#!/usr/bin/python3
"""Secondary processes of stock DPDK beside a dpdk-testpmd on page_frag: what works, and that none harms the primary.

A pool names its handler by a number, and that is a place in each program's own table. dpdk-testpmd is linked against one
handler (dpaa) that dpdk-pdump and dpdk-proc-info are not, so their numbers agree only when all load that one first.
"""

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import launch
import stock
import tap

PAGES = 256  # hugepages: 2 x 256 MiB at most
PCAP_HEADER = 24


def same_table():
    """EAL arguments after which every program has the same table of handlers."""
    found = sorted(pathlib.Path('/usr/lib').glob('*/dpdk/pmds-*/librte_mempool_dpaa.so*'))
    tap.expect(found, 'librte_mempool_dpaa.so is in no folder of drivers; run tools/setup')
    return ['-d', str(found[0])]


@contextlib.contextmanager
def mounted():
    """A hugetlbfs of one's own: processes share memory by its files."""
    if os.getuid() != 0:
        raise tap.Skip('only root can mount the hugetlbfs that processes share')
    launch.need_hugepages(PAGES)
    with launch.scratch(mode=0o700) as folder:
        made = subprocess.run(['mount', '-t', 'hugetlbfs', '-o', 'pagesize=2M', 'halfpage', folder], capture_output=True, text=True)
        if made.returncode:
            raise tap.Skip(f'hugetlbfs cannot be mounted here: {made.stderr.strip()}')
        try:
            yield folder
        finally:
            subprocess.run(['umount', folder], check=True)


class Primary:
    """dpdk-testpmd on page_frag, forwarding between two net_null ports until ended."""

    def __init__(self, folder, prefix, *options):
        load, self.environment = stock.handler()
        self.eal = ['--no-pci', f'--huge-dir={folder}', *prefix]
        self.load = [*same_table(), *load]
        self.child = launch.start(
            [stock.program('dpdk-testpmd'), *launch.lcores(2), '-m', '256', *self.eal, *self.load, '--vdev', 'net_null0',
             '--vdev', 'net_null1', '--', '--auto-start', '--total-num-mbufs=8192', *options],
            stdin=subprocess.PIPE, env=self.environment, cwd='/')
        self.wait_until_up(prefix)

    def wait_until_up(self, prefix):
        """The socket for secondaries is there before the ports are; a second more starts the forwarding."""
        socket = launch.runtime_folder() / prefix[0].split('=')[1] / 'mp_socket'
        deadline = time.monotonic() + 20
        while not socket.exists() and self.child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(1.5)

    def attach(self, *arguments):
        """Runs dpdk-proc-info as a secondary process until its own end."""
        return launch.run([stock.program('dpdk-proc-info'), *self.eal, *self.load, '--', *arguments], env=self.environment,
                          cwd='/')

    def start_testpmd(self, *arguments):
        return launch.start([stock.program('dpdk-testpmd'), *other_lcores(), '--proc-type=secondary', *self.eal, *self.load,
                             '--', '--auto-start', *arguments], env=self.environment, cwd='/', stdin=subprocess.PIPE)

    def end(self):
        """The primary must be alive, forward, and end as if it had been alone."""
        tap.expect(self.child.poll() is None, f'the primary is gone: {self.child.poll()}')
        ended = launch.finish(self.child, 20, stdin='\n')
        tap.expect(stock.totals(ended)[0] > 10000, 'the primary forwarded next to nothing', ended)


@contextlib.contextmanager
def primary(*options):
    with mounted() as folder, stock.file_prefix() as prefix:
        running = Primary(folder, prefix, *options)
        try:
            yield running
            running.end()
        finally:
            if running.child.poll() is None:
                running.child.kill()
                running.child.communicate()


def other_lcores():
    """Two lcores that the primary has not: per-lcore caches of a pool are shared memory."""
    first, second = launch.cpus(2)
    return ['--lcores', f'2@{first},3@{second}']


@tap.subtest('dpdk-proc-info reads the ports and finds the pool with its handler while a primary on page_frag forwards')
def _():
    with primary() as running:
        ended = running.attach('--stats')
        tap.expect(ended.code == 0 and 'RX-packets' in ended.out, 'no statistics', ended)
        ended = running.attach('--show-mempool=mb_pool_0')
        tap.expect(ended.code == 0 and f'ops_name {stock.OPS}' in ended.out, 'the pool or its handler is not what it is', ended)
        ended = running.attach('--iter-mempool=mb_pool_0')
        tap.expect(ended.code == 0, ended)


@tap.subtest('dpdk-pdump records what a primary on page_frag receives')
def _():
    with primary() as running, launch.scratch() as folder:
        recorded = folder / 'recorded.pcap'
        child = launch.start([stock.program('dpdk-pdump'), *other_lcores(), *running.eal, *running.load, '--', '--pdump',
                              f'port=0,queue=*,rx-dev={recorded}'], env=running.environment, cwd='/')
        time.sleep(2)
        child.send_signal(signal.SIGINT)
        ended = launch.finish(child, 20)
        dequeued = re.search(r'packets dequeued:\s+(\d+)', ended.out)
        tap.expect(dequeued and int(dequeued.group(1)) > 1000, 'nothing recorded', ended)
        tap.expect(recorded.stat().st_size > PCAP_HEADER, 'the file is empty', ended)


def register_foreign_pools():
    for cache in (0, 250):

        @tap.subtest(f'a secondary dpdk-testpmd that reaches for a pool of page_frag (mempool cache {cache}) harms nobody')
        def _(cache=cache):
            queues = ['--rxq=2', '--txq=2', '--num-procs=2']
            with primary(f'--mbcache={cache}', *queues, '--proc-id=0') as running:
                child = running.start_testpmd(*queues, '--proc-id=1')
                time.sleep(2.5)
                ended = launch.finish(child, 20, stdin='\n')
                tap.expect(ended.code == 0, 'the secondary did not end well', ended)


register_foreign_pools()


@tap.subtest('a secondary that is killed leaves a primary on page_frag at work')
def _():
    with primary() as running:
        child = running.start_testpmd('--num-procs=2', '--proc-id=1')
        time.sleep(1.5)
        child.kill()
        child.communicate()
        time.sleep(0.5)


if __name__ == '__main__':
    sys.exit(tap.main())
