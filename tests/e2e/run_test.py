#!/usr/bin/python3
"""Runs of halfpage as users start them: every configuration in conf/, without root, in pairs, with its outputs."""

import json
import os
import pathlib
import re
import shutil
import sys
import time

import launch
import tap
from launch import HALFPAGE, QUICKSTART, ROOT, VERDICTS, expect_good, halfpage, nothing_left, scratch

ONE_SECOND = ('--duration', '1s')
COUNT = 20000


def named_exit_code(conf):
    mark = re.match(r'# Exits (\d)', conf.read_text())
    tap.expect(mark, f'{conf} does not begin with "# Exits N"')
    return int(mark.group(1))


def expect_several_verdicts(text):
    table = launch.verdict_table(text)
    seen = [verdict for verdict in VERDICTS if any(row[verdict] for row in table.values())]
    tap.expect(len(seen) >= 3, f'only these verdicts are above 0: {seen or "none"}', f'table as read: {table}', text)


def run_with_json(folder, *arguments):
    """Runs and returns (how it ended, the JSON report)."""
    file = folder / 'report.json'
    ended = halfpage(*arguments, '--json', file, cwd=folder)
    tap.expect(file.exists(), 'no JSON report was written', ended)
    return ended, json.loads(file.read_text())


def register_every_configuration():
    for conf in sorted((ROOT / 'conf').rglob('*.yaml')):
        if 'needs root' in conf.read_text().split('\n', 1)[0]:
            continue  # ports_test.py makes what it needs

        @tap.subtest(f'{conf.relative_to(ROOT)} runs and ends with the exit code that its first comment names')
        def _(conf=conf):
            code = named_exit_code(conf)
            with scratch() as folder, nothing_left():
                ended = halfpage('--config', conf, *ONE_SECOND, cwd=folder)
            tap.expect(ended.code == code, f'expected exit code {code}', ended)
            if code in (0, 4):
                expect_good(ended, code)


register_every_configuration()


@tap.subtest('the quick start shows several verdicts')
def _():
    ended = halfpage('--config', QUICKSTART, *ONE_SECOND)
    expect_good(ended)
    expect_several_verdicts(ended.out)


@tap.subtest('EAL arguments, --, own options works like testpmd')
def _():
    with nothing_left():
        ended = halfpage(*launch.lcores(2), '--no-pci', '--no-huge', '-m', '512', '--', '--config', QUICKSTART, *ONE_SECOND)
    expect_good(ended)
    expect_several_verdicts(ended.out)


@tap.subtest('EAL arguments for hugepages work as well')
def _():
    launch.need_hugepages(64)
    ended = halfpage(*launch.lcores(2), '--no-pci', '--in-memory', '--', '--config', QUICKSTART, *ONE_SECOND)
    expect_good(ended)


@tap.subtest('stdin may be closed')
def _():
    expect_good(halfpage('--config', QUICKSTART, *ONE_SECOND, preexec_fn=lambda: os.close(0)))


@tap.subtest('a run that leaks warns, names pool, stage, count and age, and takes the pages back in bounded time')
def _():
    started = time.monotonic()
    ended = halfpage('--config', ROOT / 'conf' / 'leak.yaml')
    took = time.monotonic() - started
    tap.expect(ended.code == 3, 'expected exit code 3', ended)
    named = re.search(r'pool packets: (\d+) buffers are still out, on (\d+) pages; sink forgetful holds (\d+), the oldest for '
                      r'[\d.]+ s', ended.err)
    lost = re.search(r'pool packets: (\d+) buffers never came back; after 0\.\d+ s the pool was ended without them and their '
                     r'(\d+) pages were taken back', ended.err)
    tap.expect(named and named[1] == named[3], 'pool, stage, count and age are not named', ended)
    tap.expect(lost and lost[1] == named[1] and lost[2] == named[2], 'the pages are not said to have been taken back', ended)
    tap.expect('warning: pool packets: buffers in use have only grown' in ended.err, 'no warning while it ran', ended)
    tap.expect('not used again' not in ended.err, 'pages were given up', ended)
    tap.expect(took < 5 * launch.SLOWER, f'a run of one second took {took:.1f} s', ended)


@tap.subtest('two runs at the same time do not disturb each other')
def _():
    with nothing_left():
        pair = [launch.start([HALFPAGE, '--config', QUICKSTART, *ONE_SECOND]) for _ in range(2)]
        for ended in [launch.finish(child, 40) for child in pair]:
            expect_good(ended)


def for_nobody(folder):
    """(command prefix, user id, halfpage's path) for a run as an ordinary user who may read what he runs."""
    if os.getuid() != 0:
        return [], os.getuid(), HALFPAGE
    prefix = ['setpriv', '--reuid=nobody', '--regid=nogroup', '--clear-groups']
    if launch.run([*prefix, HALFPAGE, '--version']).code == 0:
        return prefix, 65534, HALFPAGE
    for file in (HALFPAGE, launch.PAGE_FRAG_SO):  # the clone is closed to others: same files, same distance
        (folder / file.parent.name).mkdir()
        shutil.copy(file, folder / file.parent.name)
    return prefix, 65534, folder / HALFPAGE.parent.name / HALFPAGE.name


@tap.subtest('a user other than root needs nothing but an own runtime folder')
def _():
    with scratch() as folder:
        prefix, user, program = for_nobody(folder)
        own = folder / 'runtime'
        own.mkdir(mode=0o700)
        os.chown(own, user, -1)
        environment = {**os.environ, 'XDG_RUNTIME_DIR': str(own), 'HOME': '/nonexistent'}
        environment.pop('RUNTIME_DIRECTORY', None)
        conf = folder / 'quickstart.yaml'
        shutil.copy(QUICKSTART, conf)
        expect_good(launch.run([*prefix, program, '--config', conf, *ONE_SECOND], env=environment))
        launch.expect_empty(own / 'dpdk')


@tap.subtest('a user other than root needs no XDG_RUNTIME_DIR')
def _():
    shared = pathlib.Path('/tmp/dpdk')  # EAL's choice then
    with scratch() as folder:
        prefix, user, program = for_nobody(folder)
        if shared.exists() and shared.stat().st_uid != user:
            raise tap.Skip(f'{shared} belongs to another user, and EAL has no other place for this one')
        before = set(os.listdir(shared)) if shared.exists() else None
        unset = ('XDG_RUNTIME_DIR', 'RUNTIME_DIRECTORY')
        environment = {name: value for name, value in os.environ.items() if name not in unset}
        conf = folder / 'quickstart.yaml'
        shutil.copy(QUICKSTART, conf)
        expect_good(launch.run([*prefix, program, '--config', conf, *ONE_SECOND], env=environment))
        left = set(os.listdir(shared)) - (before or set())
        tap.expect(not left, f'left in {shared}: {left}')
        if before is None:
            shared.rmdir()


@tap.subtest('every configuration runs without hugetlbfs, without a network and as nobody')
def _():
    if os.getuid() != 0:
        raise tap.Skip('taking hugetlbfs and the network away needs root; this user has neither as it is')
    with scratch(mode=0o777) as folder:
        prefix, user, program = for_nobody(folder)
        own = folder / 'runtime'
        own.mkdir(mode=0o700)
        os.chown(own, user, -1)
        shutil.copytree(ROOT / 'conf', folder / 'conf')
        away = ['unshare', '--mount', '--net', 'sh', '-c',
                'mount --make-rprivate /; umount -a -t hugetlbfs 2>/dev/null; grep -q hugetlbfs /proc/mounts && exit 99; exec "$@"',
                'sh', *prefix, program]
        for conf in sorted((folder / 'conf').rglob('*.yaml')):
            if 'needs root' in conf.read_text().split('\n', 1)[0]:
                continue
            ended = launch.run([*away, '--config', conf, '--duration', '300ms'], cwd=own,
                               env={**os.environ, 'RUNTIME_DIRECTORY': str(own)})
            tap.expect(ended.code == named_exit_code(conf), conf.name, ended)


@tap.subtest('nothing of a run is left in the default runtime folder')
def _():
    began, used = time.monotonic(), set()
    child = launch.start([HALFPAGE, '--config', QUICKSTART, *ONE_SECOND])
    while child.poll() is None and (time.monotonic() - began < 1.0 * launch.SLOWER):
        used |= launch.runtime_names(child)
        time.sleep(0.05)
    expect_good(launch.finish(child, 30))
    left = [name for name in used if (launch.runtime_folder() / name).exists()]
    tap.expect(not left, f'left in {launch.runtime_folder()}: {left}')


@tap.subtest('a run that fails after EAL has started leaves nothing behind')
def _():
    with nothing_left():
        ended = halfpage(*launch.lcores(2), '--no-pci', '--no-huge', '-m', '16', '--', '--config', QUICKSTART, *ONE_SECOND,
                         '--set', 'pools[0].ops=ring_mp_mc')  # takes its 64 MiB at once
    tap.expect(ended.code in (1, 2), '64 MiB of buffers in 16 MiB must fail', ended)
    tap.expect(re.search(r'memory|pool|bytes|MiB', ended.err), 'the message does not say what was missing', ended)


@tap.subtest('a JSON report that cannot be written is an error that names the place, and leaves nothing behind')
def _():
    with nothing_left():
        ended = halfpage('--config', QUICKSTART, *ONE_SECOND, '--json', '/nonexistent/report.json')
    tap.expect(ended.code in (1, 2), 'expected exit code 1 or 2', ended)
    tap.expect('/nonexistent' in ended.err, 'the message does not name the folder that is missing', ended)


@tap.subtest('an EAL argument that does not exist is an error, and leaves nothing behind')
def _():
    with nothing_left():
        ended = halfpage('--no-such-argument', '--', '--config', QUICKSTART, *ONE_SECOND)
    tap.expect(ended.code in (1, 2), 'expected exit code 1 or 2', ended)
    tap.expect('no-such-argument' in ended.err, 'the message does not name the argument', ended)


@tap.subtest('--count 1000 generates exactly 1000 frames')
def _():
    with scratch() as folder:
        ended, report = run_with_json(folder, '--config', QUICKSTART, '--count', '1000')
    expect_good(ended)
    generated = sum(source['generated'] for source in report['traffic'])
    tap.expect(generated == 1000, f'{generated} frames were generated', report)
    for source in report['traffic']:
        tap.expect(source['generated'] == source['sent'] + sum(source['refused'].values()),
                   'generated is not sent and refused', source)


@tap.subtest('the JSON report agrees with the text and adds up')
def _():
    with scratch() as folder:
        ended, report = run_with_json(folder, '--config', QUICKSTART, *ONE_SECOND)
    expect_good(ended)
    tap.expect(report['ledger']['balanced'] is True, report['ledger'])
    tap.expect(f"{report['rate_pps'] / 1e6:.2f}" == launch.rate(ended.out), f"rate_pps {report['rate_pps']}", ended.out)
    tap.expect(0.9 <= report['seconds'] <= 3 * launch.SLOWER, f"a run of one second says {report['seconds']} s")
    table = launch.verdict_table(ended.out)
    tap.expect(table, 'no verdict table could be read', ended.out)
    for device in report['devices']:
        row = {'received': device['received'], **{verdict: device['verdicts'][verdict] for verdict in VERDICTS}}
        tap.expect(table.get(device['name']) == row, f"{device['name']}: JSON has {row}, the text {table.get(device['name'])}")
        if sum(device['verdicts'].values()):
            tap.expect(sum(device['verdicts'].values()) == device['received'], 'verdicts do not add up', device)
    for pool in report['pools']:
        tap.expect(pool['buffers_in_use'] == 0, pool)
        tap.expect(pool['pages_in_flight'] == 0, pool)


@tap.subtest('--json - puts the report, and nothing else, on stdout')
def _():
    ended = halfpage('--config', QUICKSTART, *ONE_SECOND, '--stats-period', '0', '--json', '-')
    tap.expect(ended.code == 0, ended)
    tap.expect(json.loads(ended.out)['ledger']['balanced'] is True, ended)


def verdicts_with_seed(seed):
    with scratch() as folder:
        ended, report = run_with_json(folder, '--config', QUICKSTART, '--count', str(COUNT), '--seed', str(seed))
    expect_good(ended)
    return {device['name']: (device['received'], device['bytes'], device['verdicts']) for device in report['devices']}


@tap.subtest('the same seed gives the same counts')
def _():
    first, second = verdicts_with_seed(7), verdicts_with_seed(7)
    tap.expect(first == second, f'first: {first}', f'second: {second}')


@tap.subtest('a reader that goes away after one line is no crash')
def _():
    with scratch() as folder, nothing_left():
        script = '"$0" "$@" | head -n 1; exit "${PIPESTATUS[0]}"'
        ended = launch.run(['bash', '-c', script, HALFPAGE, '--config', QUICKSTART, '--duration', '2s', '--stats-period', '1s'],
                           cwd=folder)
        tap.expect(ended.code in (0, 1), 'expected exit code 0 or 1, not a death by signal', ended)
        tap.expect(len(ended.out.splitlines()) == 1, ended)
        tap.expect(not os.listdir(folder), f'left behind: {os.listdir(folder)}')


@tap.subtest('a closed stdout is no crash')
def _():
    with nothing_left():
        ended = halfpage('--config', QUICKSTART, *ONE_SECOND, stdout=None, preexec_fn=lambda: os.close(1), seconds=10)
    tap.expect(ended.code in (0, 1), 'expected exit code 0 or 1, not a death by signal', ended)


@tap.subtest('logs go to stderr, data to stdout')
def _():
    ended = halfpage('--config', QUICKSTART, *ONE_SECOND)
    tap.expect('EAL:' not in ended.out, ended)
    tap.expect('ledger:' not in ended.err, ended)


if __name__ == '__main__':
    if not HALFPAGE.exists():
        sys.exit(f'{HALFPAGE} does not exist; run tools/build')
    sys.exit(tap.main())
