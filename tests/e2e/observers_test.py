#!/usr/bin/python3
"""Telemetry, metrics and the dashboard: others read the same snapshot that the report is made of."""

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

import launch
import tap

TELEMETRY = shutil.which('dpdk-telemetry.py')


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


class Running:
    """halfpage with a prompt and metrics; commands are typed into it."""

    def __init__(self, folder, *arguments):
        self.prefix = f'observed{os.getpid()}'
        self.report = folder / 'report.json'
        self.errors = open(folder / 'errors', 'w+')
        self.child = launch.start([launch.HALFPAGE, '--config', configuration(folder), '-i', '--auto-start', '--metrics', '0',
                                   '--set', f'eal.file_prefix={self.prefix}', '--json', self.report, *arguments],
                                  stdin=subprocess.PIPE, stderr=self.errors)
        deadline = time.monotonic() + 20 * launch.SLOWER
        found = None
        while found is None and time.monotonic() < deadline:
            time.sleep(0.05)
            found = re.search(r'metrics at port (\d+)', (folder / 'errors').read_text())
        tap.expect(found is not None, (folder / 'errors').read_text())
        self.port = int(found[1])

    def type(self, line):
        self.child.stdin.write(line + '\n')
        self.child.stdin.flush()

    def scrape(self):
        with urllib.request.urlopen(f'http://127.0.0.1:{self.port}/metrics', timeout=10) as reply:
            return reply.read().decode()

    def ask(self, *commands):
        """What dpdk-telemetry.py says to each command."""
        told = launch.run([TELEMETRY, '-f', self.prefix], stdin=''.join(f'{each}\n' for each in commands))
        tap.expect(told.code == 0, told)
        decoder, replies, rest = json.JSONDecoder(), [], told.out[told.out.index('{'):]
        while rest.strip():
            reply, end = decoder.raw_decode(rest.strip())
            replies.append(reply)
            rest = rest.strip()[end:]
        return [list(reply.values())[0] for reply in replies[-len(commands):]]

    def end(self):
        ended = launch.finish(self.child, 30, stdin='quit\n')
        return ended, json.loads(self.report.read_text())


@contextlib.contextmanager
def running(*arguments):
    with launch.scratch() as folder:
        run = Running(folder, *arguments)
        try:
            yield run
        finally:
            if run.child.poll() is None:
                run.child.kill()
            run.errors.close()


def number(metrics, name, **labels):
    """The value of a series in the text format."""
    for line in metrics.splitlines():
        match = re.fullmatch(r'(\w+)(?:\{(.*)\})? (\S+)', line)
        if match and match[1] == name and dict(re.findall(r'(\w+)="(.*?)"', match[2] or '')) == labels:
            return float(match[3])
    return None


@tap.subtest('telemetry, metrics and JSON of one snapshot are equal')
def _():
    if TELEMETRY is None:
        raise tap.Skip('no dpdk-telemetry.py')
    with running() as run:
        time.sleep(0.5)
        run.type('stop')
        while number(run.scrape(), 'halfpage_run_forwarding') != 0:
            time.sleep(0.05)
        metrics = run.scrape()
        veth, pool, traffic, sink, ledger = run.ask('/halfpage/veth/stats,veth0', '/halfpage/pools/stats,packets',
                                                    '/halfpage/traffic/stats,mix', '/halfpage/sinks/stats,stack',
                                                    '/halfpage/ledger')
        more = veth
        while 'next' in more:
            more, = run.ask(f'/halfpage/veth/stats,veth0,{more["next"]}')
            veth.update(more)
        ended, report = run.end()
    tap.expect(ended.code == 0, ended)
    device = report['devices'][0]
    tap.expect(device['received'] > 1000, device)
    for key, name in {'received': 'received_frames', 'bytes': 'received_bytes', 'tx': None, 'polls': None,
                      'sent_through': 'sent_through_frames'}.items():
        if name is None:
            continue
        tap.expect(device[key] == veth[key] == number(metrics, f'halfpage_device_{name}_total', device='veth0'), key)
    for verdict, count in device['verdicts'].items():
        tap.expect(count == veth['verdicts'][verdict] == number(metrics, 'halfpage_device_verdict_frames_total',
                                                                device='veth0', verdict=verdict), verdict)
    for reason, count in device['errors'].items():
        tap.expect(device['refused'][reason] == veth['refused'][reason] == number(
            metrics, 'halfpage_device_refused_frames_total', device='veth0', reason=reason), reason)
    tap.expect(device['rules']['rule web'] == veth['rules']['rule_web'] == number(
        metrics, 'halfpage_device_rule_frames_total', device='veth0', program='web', rule='rule web'), device['rules'])
    for name, count in report['pools'][0]['counters'].items():
        if name in ('recycle_cached', 'recycle_ring', 'recycle_released_ref', 'recycle_cache_full', 'recycle_ring_full'):
            continue  # what caches held went home when the run ended
        tap.expect(count == pool['counters'][name] == number(metrics, f'halfpage_pool_{name}_total', pool='packets'), name)
    source = report['traffic'][0]
    for key in ('generated', 'sent'):
        tap.expect(source[key] == traffic[key] == number(metrics, f'halfpage_traffic_{key}_frames_total', source='mix'), key)
    tap.expect(report['sinks'][0]['frames'] == sink['frames'] == number(metrics, 'halfpage_sink_received_frames_total',
                                                                        sink='stack'), sink)
    tap.expect(ledger['balanced'] == 1 and ledger['forwarding'] == 0, ledger)


@tap.subtest('each telemetry command answers, and wrong parameters get no answer')
def _():
    if TELEMETRY is None:
        raise tap.Skip('no dpdk-telemetry.py')
    things = {'pools': 'packets', 'veth': 'veth1', 'sinks': 'stack', 'traffic': 'mix', 'workers': '1', 'programs': 'tally'}
    with running() as run:
        lists = run.ask(*(f'/halfpage/{family}/list' for family in things))
        for (family, name), listed in zip(things.items(), lists):
            tap.expect(name in listed, family, listed)
        for kind in ('info', 'stats'):
            for reply in run.ask(*(f'/halfpage/{family}/{kind},{name}' for family, name in things.items())):
                tap.expect(isinstance(reply, dict) and reply, kind, reply)
        wrong = ['/halfpage/veth/info', '/halfpage/veth/stats,nobody', '/halfpage/veth/stats,veth0,x', '/halfpage/pools/list,x']
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


def query(port, expression):
    where = f'http://127.0.0.1:{port}/api/v1/query?' + urllib.parse.urlencode({'query': expression})
    with urllib.request.urlopen(where, timeout=10) as reply:
        return json.load(reply)['data']['result']


@tap.subtest("Debian's prometheus scrapes it, and every query of the dashboard returns data")
def _():
    prometheus = shutil.which('prometheus')
    if prometheus is None:
        raise tap.Skip('prometheus is not installed (tools/setup)')
    dashboard = json.loads((launch.ROOT / 'tools/grafana/halfpage.json').read_text())
    queries = [target['expr'].replace('$__rate_interval', '5s') for panel in dashboard['panels'] for target in panel['targets']]
    tap.expect(len(queries) > 10, queries)
    with running() as run, launch.scratch() as folder, socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        port = free.getsockname()[1]
        free.close()
        (folder / 'prometheus.yml').write_text(
            f'scrape_configs: [{{job_name: halfpage, scrape_interval: 250ms, scrape_timeout: 250ms, '
            f'static_configs: [{{targets: ["127.0.0.1:{run.port}"]}}]}}]\n')
        server = launch.start([prometheus, f'--config.file={folder}/prometheus.yml', f'--storage.tsdb.path={folder}/data',
                               f'--web.listen-address=127.0.0.1:{port}'])
        try:
            missing, deadline = queries, time.monotonic() + 20 * launch.SLOWER
            while missing and time.monotonic() < deadline:
                time.sleep(0.25)
                with contextlib.suppress(urllib.error.URLError, ConnectionError):
                    missing = [each for each in missing if not query(port, each)]
            tap.expect(not missing, 'no data for', *missing)
            up = query(port, 'up')
            tap.expect(up[0]['value'][1] == '1', up)
        finally:
            server.terminate()
            server.communicate()
        run.end()


if __name__ == '__main__':
    sys.exit(tap.main())
