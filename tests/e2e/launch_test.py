#!/usr/bin/python3
"""Launched without a configuration, as dpdk-testpmd is; few CPUs; the manual page."""

import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

import launch
import tap
from launch import HALFPAGE, expect_good, halfpage, lcores, nothing_left, scratch

NO_HUGE = ('--no-huge', '--no-pci', '-m', '128')


def launched(vdevs, *options, seconds='400ms', eal=NO_HUGE, stdin=None):
    """halfpage over virtual ports for a moment; with all that every run promises."""
    arguments = [*eal, *(f'--vdev={vdev}' for vdev in vdevs), '--', *options, f'--duration={seconds}']
    with nothing_left():
        ended = halfpage(*arguments, stdin=stdin)
    expect_good(ended)
    return ended


def received(ended):
    return {device: row['received'] for device, row in launch.verdict_table(ended.out).items()}


for mode in ('io', 'mac', 'macswap', 'csum', '5tswap', 'rxonly'):
    @tap.subtest(f'--forward-mode={mode} between two net_null ports, one worker, no configuration')
    def _(mode=mode):
        counts = received(launched(['net_null0', 'net_null1'], f'--forward-mode={mode}'))
        tap.expect(set(counts) == {'port0', 'port1'} and min(counts.values()) > 1000, counts)


@tap.subtest('--forward-mode=txonly makes frames of the length of --txpkts')
def _():
    with scratch() as folder:
        file = folder / 'sent.pcap'
        launched([f'net_pcap0,tx_pcap={file}'], '--forward-mode=txonly', '--txpkts=100,150', '--count=10')
        lengths = re.findall(r'length (\d+):', subprocess.run(['tcpdump', '-enr', file], capture_output=True, text=True,
                                                              check=True).stdout)
        tap.expect(lengths == ['250'] * 10, lengths)


@tap.subtest('--tx-first sends a burst round net_ring ports for as long as the run lasts, and no buffer stays in a ring')
def _():
    for vdevs in (['net_ring0'], ['net_ring0', 'net_ring1']):
        ended = launched(vdevs, '--tx-first', '--burst=8')
        counts = received(ended)
        tap.expect(min(counts.values()) > 1000, 'they do not go round', ended)


@tap.subtest('two workers share the ports of --nb-cores=2')
def _():
    ended = launched(['net_null0', 'net_null1'], '--nb-cores=2', '--rxq=1', '--txq=2', '--rxd=128', '--txd=128')
    tap.expect('2 workers' in ended.out, ended)


@tap.subtest('--txq makes transmit queues: shown, not fewer than workers that send, not more than the device has')
def _():
    ended = launched(['net_null0', 'net_null1'], '--txq=3', '-i', stdin='show config rxtx\nshow port info 0\nstart\nstop\nquit\n')
    for words in ('port 1 (port1): RX queue number: 1 Tx queue number: 3', '\nTX queues: 3\n', '\nMax possible TX queues: '):
        tap.expect(words in ended.out, words, ended)
    # Each port's burst goes ahead from its own worker, what is forwarded comes from the other.
    both = ['--tx-first', '--nb-cores=2']
    launched(['net_null0', 'net_null1'], *both, '--txq=2')
    for vdevs, options, words in (
            (['net_null0', 'net_null1'], [*both, '--txq=1'], 'port port0: tx_queues: 1, and 2 workers send through it'),
            (['net_null0', 'net_null1'], [*both, '--txq=1'], 'write tx_queues: 2 or auto (--txq)'),
            (['net_pcap0,tx_pcap=/dev/null'], ['--txq=2'], 'port port0: 2 transmit queues'),
            (['net_pcap0,tx_pcap=/dev/null'], ['--txq=2'], 'net_pcap0 has 1; give it more with one rx_ and tx_ argument')):
        ended = halfpage(*NO_HUGE, *(f'--vdev={vdev}' for vdev in vdevs), '--', *options, '--duration=200ms')
        tap.expect(ended.code == 1 and words in ended.err, words, ended)


@tap.subtest('a launch is printed as a file that runs like it')
def _():
    printed = halfpage(*NO_HUGE, '--vdev=net_null0', '--', '--forward-mode=macswap', '--print-config')
    tap.expect(printed.code == 0, printed)
    with scratch() as folder:
        file = folder / 'printed.yaml'
        file.write_text(printed.out)
        expect_good(halfpage('--config', file, '--duration', '200ms'))


@tap.subtest('what the command line has wrong ends in exit code 2 before EAL starts')
def _():
    for option, words in (('--forward-mode=noisy', 'use io'), ('--portlist=7', 'there is no port 7'), ('--rss-ip', '--rxq'),
                          ('--rxq=99', '--rxq')):
        ended = halfpage(*NO_HUGE, '--vdev=net_null0', '--', option)
        tap.expect(ended.code == 2 and words in ended.err and 'EAL:' not in ended.err, ended)


@tap.subtest('a port that EAL does not make ends in exit code 1 with the device named')
def _():
    ended = halfpage(*NO_HUGE, '--vdev=net_nothing0', '--', '--duration=200ms')
    tap.expect(ended.code == 1 and 'net_nothing0' in ended.err, ended)


def cpuset_hierarchy():
    """Where control groups with cpusets are made here, of either version; None without one."""
    old = pathlib.Path('/sys/fs/cgroup/cpuset')
    if (old / 'cpuset.cpus').exists():
        return old
    top = pathlib.Path('/sys/fs/cgroup')
    try:
        if 'cpuset' not in (top / 'cgroup.controllers').read_text().split():
            return None
        (top / 'cgroup.subtree_control').write_text('+cpuset')
    except OSError:
        return None
    return top


@contextlib.contextmanager
def cpuset(cpu):
    """A control group that has one CPU. Gives what a child calls to enter it."""
    top = cpuset_hierarchy()
    if top is None or os.getuid() != 0:
        raise tap.Skip('control groups with cpusets cannot be made here')
    group = top / f'halfpage-{os.getpid()}'
    group.mkdir()
    try:
        for name, text in (('cpuset.mems', '0'), ('cpuset.cpus', str(cpu))):
            (group / name).write_text(text)
        yield lambda: (group / 'cgroup.procs').write_text(str(os.getpid()))
    finally:
        group.rmdir()


@tap.subtest('on one CPU all lcores share it, by affinity or by cpuset, whatever its number')
def _():
    for cpu in sorted(os.sched_getaffinity(0)):
        arguments = (*NO_HUGE, '--vdev=net_null0', '--vdev=net_null1', '--', '--nb-cores=2', '--duration=300ms')
        expect_good(halfpage(*arguments, preexec_fn=lambda cpu=cpu: os.sched_setaffinity(0, {cpu})))
        printed = launch.run(['taskset', '-c', str(cpu), HALFPAGE, '--config', launch.QUICKSTART, '--duration', '300ms'])
        expect_good(printed)


@tap.subtest('in a control group with one CPU lcores are those that it has')
def _():
    cpu = max(os.sched_getaffinity(0))
    with cpuset(cpu) as enter:
        expect_good(halfpage('--config', launch.QUICKSTART, '--duration', '300ms', preexec_fn=enter))


@tap.subtest('too few lcores for --nb-cores are told with the way out')
def _():
    ended = halfpage(*lcores(2), *NO_HUGE, '--vdev=net_null0', '--vdev=net_null1', '--', '--nb-cores=2', '--duration=200ms')
    tap.expect(ended.code == 1 and '2 workers' in ended.err and '--lcores' in ended.err, ended)


@tap.subtest('the manual page is without fault for man(1) and has each option')
def _():
    page = halfpage('--man')
    tap.expect(page.code == 0 and page.out.startswith('.TH HALFPAGE 1'), page)
    if not shutil.which('man') or not shutil.which('groff'):
        raise tap.Skip('man(1) with groff is not here')
    shown = launch.run(['man', '--warnings', '-E', 'UTF-8', '-l', '-Tascii', '-'], stdin=page.out,
                       env={**os.environ, 'MANWIDTH': '110'})
    tap.expect(shown.code == 0 and not shown.err.strip(), shown)
    text = re.sub('.\b', '', shown.out)
    for option in re.findall(r'^  (?:-\w, )?(--[\w-]+)', halfpage('--help').out, re.MULTILINE):
        tap.expect(option in text, f'{option} is not in the page')


@tap.subtest('a duration of 1 s ends between 1 and 1.3 s, and a count before it')
def _():
    ended = launched(['net_null0', 'net_null1'], '--forward-mode=io', seconds='1s')
    seconds = float(re.search(r': (\d+\.\d+) s, ', ended.out).group(1))
    tap.expect(1 <= seconds <= 1.3 * launch.SLOWER, ended)
    ended = launched(['net_null0'], '--forward-mode=txonly', '--count=1000', seconds='20s')
    tap.expect(ended.seconds < 10 * launch.SLOWER and re.search(r'\b1000 +1000\b', ended.out), ended)


@tap.subtest('preset lab runs as nobody, twice at once; --no-huge with --in-memory ends in words that say what to give instead')
def _():
    if os.getuid() != 0:
        raise tap.Skip('becoming nobody needs root')
    with scratch(mode=0o777) as folder:
        for file in (HALFPAGE, launch.PAGE_FRAG_SO):
            shutil.copy(file, folder)
        command = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', folder / 'halfpage', '--config', '-',
                   '--duration', '500ms']
        environment = {'LD_LIBRARY_PATH': str(folder), 'RUNTIME_DIRECTORY': str(folder), 'PATH': os.environ['PATH']}
        both = [launch.start(command, cwd=folder, env=environment, stdin=subprocess.PIPE) for _ in range(2)]
        text = launch.QUICKSTART.read_text()
        for child in both:
            expect_good(launch.finish(child, 30, stdin=text))
    clash = halfpage('--no-huge', '--in-memory', '--no-pci', '--vdev=net_null0', '--', '--duration=100ms')
    tap.expect(clash.code == 1 and 'preset: lab' in clash.err, clash)


if __name__ == '__main__':
    sys.exit(tap.main())
