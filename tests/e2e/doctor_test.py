#!/usr/bin/python3
"""--doctor on this machine, and on what is broken about it on purpose: in mount namespaces of its own, as another user."""

import contextlib
import os
import re
import shutil
import sys
import time

import launch
import tap
from launch import HALFPAGE, QUICKSTART, halfpage, scratch


def said(ended, subject):
    """What the doctor says of `subject`, with the line that mends it."""
    return '\n'.join(re.findall(rf'^(?:note|FAULT) +{re.escape(subject)}: .*\n       mend: .*$', ended.out, re.MULTILINE))


def expect_said(ended, subject, *words, code=None):
    tap.expect(code is None or ended.code == code, f'expected exit code {code}', ended)
    for word in words:
        tap.expect(word in said(ended, subject), f'{subject}: does not say: {word}', ended)


def need_root():
    if os.getuid() != 0:
        raise tap.Skip('mounts and other users need root')


def broken(preparation, *arguments, **environment):
    """The doctor behind shell commands in a mount namespace of its own, where they harm nobody."""
    need_root()
    command = f'set -e; mount --make-rprivate /; {preparation}; exec "$@"'
    return launch.run(['unshare', '--mount', 'sh', '-c', command, 'sh', HALFPAGE, '--doctor', *arguments],
                      env={**os.environ, **environment})


@tap.subtest('here a run can start, and the exit code is that of hugepages')
def _():
    ended = halfpage('--doctor')
    tap.expect('without hugepages: yes' in ended.out, ended)
    tap.expect(ended.code == (0 if 'with hugepages: yes' in ended.out else 4), ended)
    for subject in ('memory', 'hugepages', 'hugetlbfs', 'cpus', 'runtime directory', 'DPDK processes', 'plug-in', 'bpf(2)',
                    'network namespaces', 'tun', 'mempool handlers'):
        tap.expect(f'  {subject}: ' in ended.out, f'nothing of {subject}', ended)


@tap.subtest('without hugetlbfs the mount command is named, and runs start all the same')
def _():
    ended = broken('umount -a -t hugetlbfs || true')
    expect_said(ended, 'hugetlbfs', 'not mounted', 'mount -t hugetlbfs')
    tap.expect('without hugepages: yes' in ended.out, ended)


@tap.subtest('an unprivileged user is told what works without privileges and what does not')
def _():
    need_root()
    with scratch(mode=0o777) as folder:
        program = folder / 'halfpage'  # where nobody may read it
        shutil.copy(HALFPAGE, program)
        shutil.copy(launch.PAGE_FRAG_SO, folder)
        ended = launch.run(['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', program, '--doctor'], cwd=folder,
                           env={'LD_LIBRARY_PATH': str(folder), 'RUNTIME_DIRECTORY': str(folder), 'PATH': os.environ['PATH']})
    expect_said(ended, 'user', 'uid 65534', 'net_af_packet', 'sudo')
    expect_said(ended, 'plug-in', 'everybody may write')
    tap.expect('without hugepages: yes' in ended.out, ended)


@tap.subtest('without /dev/net/tun the commands that make it are named')
def _():
    with scratch() as folder:
        expect_said(broken(f'mount --bind {folder} /dev/net'), 'tun', 'net_tap', 'mknod /dev/net/tun c 10 200')


@tap.subtest('a runtime directory that is full stops every run and says how to go round it')
def _():
    with scratch() as folder:
        fill = f'mount -t tmpfs -o size=256k tmpfs {folder}; head -c 250000 /dev/zero >{folder}/full || true'
        expect_said(broken(fill, RUNTIME_DIRECTORY=str(folder)), 'runtime directory', 'is full', 'RUNTIME_DIRECTORY=', code=1)


@tap.subtest('a runtime directory that is read-only does, too')
def _():
    with scratch() as folder:
        ended = broken(f'mount -t tmpfs -o ro tmpfs {folder}', RUNTIME_DIRECTORY=str(folder))
        expect_said(ended, 'runtime directory', 'Read-only file system', code=1)


@contextlib.contextmanager
def running(*arguments):
    child = launch.start([HALFPAGE, '--config', QUICKSTART, '--duration', '20s', '--stats-period', '100ms', *arguments])
    try:
        while 'NIC statistics' not in child.stdout.readline():
            tap.expect(child.poll() is None, 'it does not run')
        yield child
    finally:
        child.terminate()
        launch.finish(child, 10)


@tap.subtest('a file prefix in use names the process, by configuration and by EAL argument; a prefix of its own does not')
def _():
    prefix = f'mine-{os.getpid()}'
    with launch.nothing_left(), running('--set', f'eal.file_prefix={prefix}') as child:
        words = (f'{prefix} is in use by process {child.pid}', 'eal.file_prefix=auto')
        expect_said(halfpage('--config', QUICKSTART, '--set', f'eal.file_prefix={prefix}', '--doctor'), 'file prefix', *words,
                    code=1)
        expect_said(halfpage(f'--file-prefix={prefix}', '--', '--doctor'), 'file prefix', *words, code=1)
        other = halfpage('--doctor')
        tap.expect(other.code in (0, 4) and f'{prefix} (process {child.pid})' in other.out, other)


@tap.subtest('what a killed run left is listed, removed only when told, and a running one is left alone')
def _():
    with launch.nothing_left():
        with running() as killed:
            killed.kill()
            time.sleep(0.1)
        with running() as alive:
            listed = halfpage('--doctor')
            expect_said(listed, 'stale files', f'halfpage-{killed.pid}-', '--doctor --remove-stale')
            again = halfpage('--doctor')
            tap.expect(said(again, 'stale files') == said(listed, 'stale files'), 'the list alone removed something', again)
            removed = halfpage('--doctor', '--remove-stale')
            tap.expect(re.search(rf'^removed: .*/halfpage-{killed.pid}-', removed.out, re.MULTILINE), removed)
            tap.expect(f'halfpage-{alive.pid}-' not in said(removed, 'stale files'), removed)
            tap.expect(not said(halfpage('--doctor'), 'stale files'), 'something is stale still')


@tap.subtest('--remove-stale alone is refused')
def _():
    ended = halfpage('--config', QUICKSTART, '--remove-stale')
    tap.expect(ended.code == 2 and '--doctor --remove-stale' in ended.err, ended)


if __name__ == '__main__':
    sys.exit(tap.main())
