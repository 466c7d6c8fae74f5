#!/usr/bin/python3
"""--plan: what memory a configuration will take, told before any is taken, and kept to by the run."""

import json
import os
import re
import sys

import launch
import tap
from launch import QUICKSTART, ROOT, expect_good, halfpage, need_hugepages, nothing_left, scratch

IMIX = ROOT / 'conf' / 'imix.yaml'
SMALL = '''version: 1
eal: {{memory: {memory}}}
veth: [{{name: front, ends: [{{name: veth0}}, {{name: veth1}}]}}]
traffic: [{{name: udp, into: veth1, pool: a, count: 1000}}]
pools:
{pools}'''


def write(folder, pools, memory='256MiB'):
    file = folder / 'plan.yaml'
    file.write_text(SMALL.format(memory=memory, pools=pools))
    return file


def plan(*arguments, code=0, **options):
    """Runs --plan and gives (how it ended, its JSON); EAL must not have been started."""
    with scratch() as folder, nothing_left():
        file = folder / 'plan.json'
        ended = halfpage(*arguments, '--plan', '--json', file, **options)
        tap.expect(ended.code == code, f'expected exit code {code}', ended)
        tap.expect('EAL:' not in ended.err + ended.out, 'EAL was started', ended)
        return ended, json.loads(file.read_text())


def number_behind(words, text):
    found = re.search(re.escape(words) + r'(\d+)', text)
    tap.expect(found, f'no number behind "{words}"', text)
    return int(found.group(1))


@tap.subtest('every configuration that is shipped fits, stock beside page_frag, without starting EAL')
def _():
    for conf in sorted((ROOT / 'conf').rglob('*.yaml')):
        ended, told = plan('--config', conf)
        for words in ('by ring_mp_mc', 'arena of socket any', 'sum: ', 'eal.memory', 'packing: ', 'page: '):
            tap.expect(words in ended.out, f'{conf.name}: no "{words}"', ended)
        tap.expect(told['fits'] and told['needed_bytes'] > 0, conf.name, told)


@tap.subtest('--json - puts the plan on stdout as JSON and nothing else')
def _():
    ended = halfpage('--config', IMIX, '--plan', '--json', '-')
    tap.expect(ended.code == 0, ended)
    told = json.loads(ended.out)
    pools = {pool['name']: pool for pool in told['pools']}
    tap.expect(set(pools) == {'short', 'long'}, told)
    for pool in pools.values():
        tap.expect(pool['bytes_per_buffer_real'] > pool['bytes_per_buffer_nominal'], pool)
        tap.expect(pool['bytes_per_buffer_real'] < pool['stock']['no_hugepages']['bytes_per_buffer_real'], pool)
    tap.expect(told['needed_bytes'] < told['stock_no_hugepages_bytes'], told)


def expect_peak_as_planned(conf, *options):
    ended = halfpage('--config', conf, '--duration', '2s', *options)
    expect_good(ended)
    _, told = plan('--config', conf)
    found = re.search(r'^page memory: planned ([\d.]+) MiB with all buffers out, peak ([\d.]+) MiB$', ended.out,
                      re.MULTILINE)
    tap.expect(found, 'no line "page memory: planned ..."', ended)
    planned, peak = float(found.group(1)), float(found.group(2))
    tap.expect(abs(peak - planned) <= 0.02 * planned, f'planned {planned} MiB, peak {peak} MiB', ended)
    chunks = sum(arena['chunks'] for arena in told['arenas'])
    tap.expect(planned == 2 * chunks, f'the run says {planned} MiB, --plan {chunks} chunks of 2 MiB')
    return ended, told


@tap.subtest('a run of conf/imix.yaml peaks within 2 % of its plan, and short frames borrow long buffers')
def _():
    with scratch() as folder:
        _, told = expect_peak_as_planned(IMIX, '--json', folder / 'report.json')
        report = json.loads((folder / 'report.json').read_text())
    taken = [line for pool in told['pools'] for line in pool['taken_for']]
    tap.expect(any('frames of 1 to 576 bytes; when empty, from the next larger pool' in line for line in taken), taken)
    borrowed = {pool['name']: pool['borrowed'] for pool in report['pools']}
    tap.expect(borrowed['short'] > 0 and borrowed['long'] == 0, borrowed)
    for source in report['traffic']:
        tap.expect([each['pool'] for each in source['classes']] == ['short', 'long'], source)
    tap.expect(sum(each['borrowed'] for source in report['traffic'] for each in source['classes']) == borrowed['short'], report)


@tap.subtest('a run of conf/exact.yaml peaks within 2 % of its plan, at less than a third of stock with hugepages')
def _():
    _, told = expect_peak_as_planned(ROOT / 'conf' / 'exact.yaml')
    tap.expect(told['pools'][0]['exact'] is True, told)
    # 256 of mbuf and headroom and 279 of frame, in whole lines: 576 on average, and the ends of pages
    tap.expect(560 <= told['pools'][0]['object_bytes'] <= 640, told['pools'][0])
    tap.expect(3 * told['needed_bytes'] < told['stock_hugepages_bytes'], told)


CLASSES = '''version: 1
eal: {{memory: 256MiB}}
pools:
  - {{name: long, size: 4096, data_room: 1664}}
  - {{name: short, size: 256, data_room: 192, cache: 0}}
veth: [{{name: front, queues: 4, ring: 1024, ends: [{{name: veth0}}, {{name: veth1}}]}}]
traffic: [{{name: udp, into: veth1, sizes: 64, classes: [short, long], borrow: {borrow}, count: 2000000}}]
measure: {{budget: 4}}
'''


@tap.subtest('R12: small frames alone empty the short class: with borrow nothing waits and borrowed counts, without it frames wait')
def _():
    for borrow in (True, False):
        with scratch() as folder:
            file, out = folder / 'classes.yaml', folder / 'report.json'
            file.write_text(CLASSES.format(borrow=str(borrow).lower()))
            ended = halfpage('--config', file, '--json', out, '--stats-period', '0.005s')
            expect_good(ended)
            report = json.loads(out.read_text())
        source = report['traffic'][0]
        pools = {pool['name']: pool for pool in report['pools']}
        tap.expect(source['generated'] == 2000000, source)
        tap.expect((source['nobuf'] == 0) == borrow, source)
        tap.expect((pools['short']['borrowed'] > 0) == borrow, pools)
        tap.expect(pools['long']['borrowed'] == 0, pools)
        if launch.SLOWER == 1:  # each class's fill is told while the run goes on
            tap.expect(re.search(r'^  pool short: \d+ of 256 buffers in use, borrowed \d+$', ended.out, re.MULTILINE), ended)


MIXED_MTU = '''version: 1
eal: {{preset: lab, memory: 512MiB}}
pools:
{pools}
veth:
  - {{name: usual, ends: [{{name: a0, mtu: 1500}}, {{name: a1, mtu: 1500}}]}}
  - {{name: jumbo, ends: [{{name: b0, mtu: 9000}}, {{name: b1, mtu: 9000}}]}}
traffic:
  - {{name: full, into: a1, sizes: 1514, count: 20000, pool: {usual}}}
  - {{name: large, into: b1, sizes: 9014, count: 20000, pool: large}}
'''


@tap.subtest('R11: pools for MTU 1500 and 9000 share one memory: the plan says what that saves, and both sizes are forwarded')
def _():
    own = '  - {name: small, size: 8192, data_room: 1664}\n  - {name: large, size: 4096, data_room: 9216}'
    told = {}
    for name, pools, usual in (('own', own, 'small'), ('one', '  - {name: large, size: 12288, data_room: 9216}', 'large')):
        with scratch() as folder:
            file = folder / 'mtus.yaml'
            file.write_text(MIXED_MTU.format(pools=pools, usual=usual))
            told[name] = plan('--config', file)[1]
            ended = halfpage('--config', file, '--json', folder / 'report.json', cwd=folder)
            tap.expect(ended.code == 0, ended)
            report = json.loads((folder / 'report.json').read_text())
            received = {device['name']: device['received'] for device in report['devices']}
            sent = {source['into']: source['sent'] for source in report['traffic']}
            tap.expect(received['a0'] == sent['a1'] > 0 and received['b0'] == sent['b1'] > 0, received, sent)
    tap.expect(told['own']['needed_one_pool_at_a_time_bytes'] < told['own']['needed_bytes'], told['own'])
    tap.expect(told['own']['needed_bytes'] < 0.6 * told['one']['needed_bytes'], told)


@tap.subtest('R07: a pool no larger than its ring finds none at times, which is counted, and its low water is 0')
def _():
    with scratch() as folder:
        file = folder / 'small.yaml'
        file.write_text('version: 1\npools: [{name: packets, size: 1024, cache: 0}]\ntraffic: [{name: udp, into: veth1}]\n'
                        'veth: [{name: pair, ring: 1024, ends: [{name: veth0}, {name: veth1}]}]\n'
                        'lcores: {workers: [{generate: [udp]}, {poll: [veth0, veth1]}]}\n')
        for more, waits in (((), True), (('--set', 'pools[0].size=8192'), False)):
            ended = halfpage('--config', file, '--duration', '300ms', '--json', folder / 'report.json', *more, cwd=folder)
            tap.expect(ended.code == 0 and ('are fewer than can be held at once' in ended.err) == waits, ended)
            report = json.loads((folder / 'report.json').read_text())
            pool, source = report['pools'][0], report['traffic'][0]
            tap.expect((source['nobuf'] > 0) == waits and (pool['low_water'] == 0) == waits, pool, source)
            tap.expect(f"at least {pool['low_water']} of them free" in ended.out, ended)


@tap.subtest('arena.limit holds to the chunk, in the plan and in the run, and what finds no page is counted')
def _():
    with scratch() as folder:
        ended, told = plan('--config', IMIX, '--set', 'arena.limit=9MiB')
        tap.expect(told['arenas'][0]['chunks'] == 4 and told['arenas'][0]['denied_bytes'] > 0, told['arenas'])
        tap.expect('limit 9.00 MiB: pages of' in ended.out, ended)
        out = folder / 'report.json'
        ended = halfpage('--config', IMIX, '--duration', '1s', '--set', 'arena.limit=9MiB', '--json', out)
        expect_good(ended)
        report = json.loads(out.read_text())
    memory = report['page_memory']
    tap.expect(memory['peak_bytes'] == memory['planned_bytes'] == memory['limit_bytes'] == 8 << 20, memory)
    tap.expect(memory['limit_refusals'] > 0, memory)
    tap.expect(sum(source['nobuf'] for source in report['traffic']) > 0, report['traffic'])
    tap.expect('page memory: limit 8.0 MiB, reached ' in ended.out, ended)


@tap.subtest('arena.trim gives back what a run no longer needs while it goes on')
def _():
    for preset in ('lab', 'hugepages'):
        if preset == 'hugepages':
            need_hugepages(64)
        ended = halfpage('--config', IMIX, '--duration', '1s', '--set', 'arena.trim=5ms', '--set', f'eal.preset={preset}',
                         '--set', 'traffic[1].count=100000', '--set', 'traffic[0].count=100000')
        expect_good(ended)


@tap.subtest('the report file that a configuration names is left alone by --plan')
def _():
    with scratch() as folder:
        report = folder / 'report.json'
        report.write_text('kept')
        file = write(folder, '  - {name: a}\n')
        file.write_text(file.read_text() + f'report: {{json: {report}}}\n')
        ended = halfpage('--config', file, '--plan')
        tap.expect(ended.code == 0 and report.read_text() == 'kept', ended)


@tap.subtest('R01: a pool of ten times -m names needed, available and the largest size, and that size starts')
def _():
    eal = ('-l', '0,1', '--no-pci', '--no-huge', '-m', '128', '--') if len(os.sched_getaffinity(0)) > 1 else \
        ('--lcores', '0@0,1@0', '--no-pci', '--no-huge', '-m', '128', '--')
    with scratch() as folder:
        for ops in ('page_frag', 'ring_mp_mc'):
            def arguments(size):
                file = write(folder, f'  - {{name: a, ops: {ops}, cache: 256, size: {size}}}\n')
                return (*eal, '--config', file)

            refused = halfpage(*arguments(10 * (128 << 20) // 2176))
            tap.expect(refused.code == 2, refused)
            tap.expect('EAL:' not in refused.err, 'EAL was started', refused)
            lines = [line for line in refused.err.splitlines() if 'the pools need' in line]
            tap.expect(len(lines) == 1 and 'leaves' in lines[0], refused)
            tap.expect(number_behind('the pools need ', lines[0]) > number_behind('leaves ', lines[0]), lines[0])
            largest = number_behind('write size: ', lines[0])
            size = largest - largest % 256  # a multiple of the cache, so that nothing is warned of
            with nothing_left():
                expect_good(halfpage(*arguments(size)))


@tap.subtest('R02: of five pools that fit alone but not together, the first over the line is named under the table')
def _():
    with scratch() as folder:
        pools = ''.join(f'  - {{name: {name}, size: 24576}}\n' for name in 'abcde')
        file = write(folder, pools)
        ended, told = plan('--config', file, code=2)
        for name in 'abcde':
            tap.expect(re.search(rf'^  {name} .*page_frag', ended.out, re.MULTILINE), f'no row of {name}', ended)
        tap.expect('pool d is the first over the line' in ended.out, ended)
        tap.expect('pools[3].size: the pools need' in ended.err, ended)
        tap.expect(told['overrun']['pool'] == 'd' and not told['fits'], told)
        checked = halfpage('--config', file, '--check')
        tap.expect(checked.code == 2 and 'pools[3].size: the pools need' in checked.err, checked)
        alone, _ = plan('--config', write(folder, '  - {name: a, size: 24576}\n'))
        tap.expect('fits' in alone.out, alone)


@tap.subtest('a configuration with other faults has no plan, only its faults')
def _():
    with scratch() as folder:
        file = write(folder, '  - {name: a, sise: 5, size: 10000000}\n')
        ended = halfpage('--config', file, '--plan')
        tap.expect(ended.code == 2 and 'sise' in ended.err and not ended.out, ended)


@tap.subtest('size: auto runs, and --print-config shows the number')
def _():
    with scratch() as folder:
        file = write(folder, '  - {name: a, size: auto}\n')
        printed = halfpage('--config', file, '--print-config')
        tap.expect(re.search(r'^\s+size: 1024\b.*auto', printed.out, re.MULTILINE), printed)
        expect_good(halfpage('--config', file))
        expect_good(halfpage('--config', QUICKSTART, '--count', '10000', '--total-num-mbufs', 'auto'))


@tap.subtest('with hugepages the plan looks at those that are free')
def _():
    need_hugepages(64)
    ended, told = plan('--config', IMIX, '--set', 'eal.preset=hugepages', '--set', 'eal.memory=1GiB')
    tap.expect('free hugepages of 2MiB' in ended.out, ended)
    tap.expect(told['hugepages'] and told['fits'], told)


@tap.subtest('more hugepages than are free is refused by --plan with the largest size that fits')
def _():
    free = launch.hugepages_free() * 2
    ended, told = plan('--config', IMIX, '--set', 'eal.preset=hugepages', '--set', f'eal.memory={4 * free + 8192}MiB',
                       '--total-num-mbufs', str(256 * (2 * free + 1024)), code=2)
    tap.expect('free hugepages' in ended.err and 'crosses the line' in ended.err, ended)
    tap.expect(not told['fits'], told)


if __name__ == '__main__':
    sys.exit(tap.main())
