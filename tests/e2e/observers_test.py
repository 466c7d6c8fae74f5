#!/usr/bin/python3
"""Telemetry and metrics: what answers, what is refused, and what never happens; same_snapshot_test.py has the values."""

import contextlib
import socket
import sys

import launch
import observed
import tap


def configuration(folder):
    path = folder / 'observed.yaml'
    path.write_text('''version: 1
eal: {preset: lab, memory: 512MiB}
pools:
  - {name: packets, size: 8192}
veth:
  - {name: pair, ends: [{name: veth0, program: web, sink: stack}, {name: veth1}]}
programs:
  - {name: web, kind: filter, rules: [{name: rule web, protocol: udp, destination_port: 9, verdict: drop}], default: pass}
  - {name: tally, kind: object, object: OBJECT, function: count, jit: 'off', maps: [{map: words, key: 3, value: 9}]}
sinks:
  - {name: stack, kind: count}
traffic:
  - {name: mix, into: veth1, ports: 2, rate: 100000}
'''.replace('OBJECT', str(launch.HALFPAGE.parents[1] / 'tests/bpf/maps.bpf.o')))
    return path


@contextlib.contextmanager
def running(*arguments):
    with launch.scratch() as folder, observed.running(folder, configuration(folder), *arguments) as run:
        yield run


@tap.subtest('each telemetry command answers, and wrong parameters get no answer')
def _():
    if observed.TELEMETRY is None:
        raise tap.Skip('no dpdk-telemetry.py')
    things = {'pools': 'packets', 'veth': 'veth1', 'sinks': 'stack', 'traffic': 'mix', 'workers': '1', 'programs': 'tally'}
    with running() as run:
        lists = run.ask(*(f'/halfpage/{family}/list' for family in things))
        for (family, name), listed in zip(things.items(), lists):
            tap.expect(name in listed, family, listed)
        for kind in ('info', 'stats'):
            for reply in run.ask(*(f'/halfpage/{family}/{kind},{name}' for family, name in things.items())):
                tap.expect(isinstance(reply, dict) and reply, kind, reply)
        wrong = ['/halfpage/veth/info', '/halfpage/veth/stats,nobody', '/halfpage/veth/stats,veth0,x', '/halfpage/pools/list,x',
                 '/halfpage/ledger,x', '/halfpage/info,packets']
        tap.expect(run.ask(*wrong) == [None] * len(wrong), run.ask(*wrong))
        maps, words, info = run.ask('/halfpage/bpf/maps', '/halfpage/bpf/entries,tally/words', '/halfpage/info')
        tap.expect('tally/flows' in maps and words == ['3: 9'] and info['forwarding'] == 1, maps, words, info)
        tap.expect(run.ask('/halfpage/bpf/entries,nothing', '/halfpage/bpf/entries') == [None] * 2, maps)
        ended, _ = run.end()
    tap.expect(ended.code == 0, ended)


@tap.subtest('counters of scrapes one after the other never go backwards')
def _():
    with running('--set', 'traffic[0].rate=0') as run:
        last = {}
        for turn in range(30):
            if turn % 10 == 5:
                run.type('clear all')
                run.type('xdp replace veth0 tx')
            for line in run.scrape().splitlines():
                series, _, value = line.rpartition(' ')
                if line.startswith('#') or '_total' not in series:
                    continue
                tap.expect(float(value) >= last.get(series, 0), f'{series}: {last.get(series)} then {value}')
                last[series] = float(value)
        run.end()


@tap.subtest('--metrics says what is wrong with an address')
def _():
    with launch.scratch() as folder, socket.socket() as taken:
        taken.bind(('127.0.0.1', 0))
        taken.listen()
        for where, message in {'127.0.0.1:99999': 'port from 0 to 65535', 'eth0:80': 'ADDRESS:PORT', '80s': 'ADDRESS:PORT',
                               str(taken.getsockname()[1]): 'nobody can listen there'}.items():
            ended = launch.halfpage('--config', configuration(folder), '--metrics', where, '--count', '10')
            tap.expect(ended.code != 0 and message in ended.err and where in ended.err, where, ended)


if __name__ == '__main__':
    sys.exit(tap.main())
