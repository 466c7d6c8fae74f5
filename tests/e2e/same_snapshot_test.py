#!/usr/bin/python3
"""Metrics, telemetry, Prometheus and the dashboard give the very numbers of the JSON of the same snapshot, each of them.

Two runs over everything that counts, each stopped before it is compared, so that all look at one snapshot.
"""

import contextlib
import json
import re
import shutil
import socket
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

import launch
import observed
import tap


def configuration(folder):
    path = folder / 'everything.yaml'
    path.write_text('''version: 1
eal: {preset: lab, memory: 768MiB}
arena: {limit: 512MiB}
pools:
  - {name: short, size: auto, data_room: 704}
  - {name: long, size: auto}
  - {name: plain, size: auto, ops: ring_mp_mc}
ports:
  - {name: wan, device: net_ring0, pool: plain, program: gate}
veth:
  - {name: front, queues: 2, ends: [{name: veth0, program: web, sink: stack, copy: {when: always, pools: [long]}}, {name: veth1}]}
  - {name: back, ends: [{name: veth2, program: tally, sink: socket}, {name: veth3, program: gate, sink: rings}]}
programs:
  - name: web
    kind: filter
    rules:
      - {name: to nobody, protocol: udp, destination_port: 9, verdict: drop}
      - {name: back again, protocol: udp, destination_port: 10, verdict: tx}
      - {name: elsewhere, protocol: udp, destination_port: 11, verdict: redirect, map: cpus, key: 0}
      - {name: onward, protocol: udp, destination_port: 12, verdict: redirect, map: outs, key: 0}
    default: pass
  - {name: tally, kind: object, object: OBJECT, function: count, jit: 'off'}
  - {name: gate, kind: pass}
  - {name: last, kind: filter, rules: [{name: none, ethertype: arp, verdict: drop}]}
maps:
  - {name: outs, kind: devmap, entries: [{key: 0, device: wan, program: last}]}
  - {name: cpus, kind: cpumap, entries: [{key: 0, worker: 1, ring: 64, program: gate}]}
sinks:
  - {name: stack, kind: count}
  - {name: socket, kind: udp_socket}
  - {name: rings, kind: user, port: veth3}
traffic:
  - {name: mix, into: veth1, classes: [short, long], ports: 6, sizes: [64, 1514], rate: 200000}
  - {name: more, into: veth3, pool: long, ports: 2, rate: 100000}
  - {name: other, into: veth2, pool: long, rate: 50000}
  - {name: super, into: veth1, pool: long, sizes: [2900], gso: 1400, rate: 1000}
lcores:
  workers:
    - {poll: [veth0, veth1, wan], generate: [mix, super]}
    - {poll: [veth2, veth3], generate: [more, other], read: [socket, rings]}
'''.replace('OBJECT', str(launch.HALFPAGE.parents[1] / 'tests/bpf/maps.bpf.o')))
    return path


# Where a metric is in the JSON, below the thing that its labels name; what is in braces is a label.
JUDGED = {
    'received_frames': 'received', 'received_bytes': 'bytes', 'verdict_frames': 'verdicts/{verdict}',
    'refused_frames': 'refused/{reason}', 'fault_frames': 'faults/{reason}', 'copied_buffers': 'copies/buffers_copied/{cause}',
    'copied_bytes': 'copies/bytes_copied/{cause}', 'copied_truesize_bytes': 'copies/truesize', 'tx_sent_frames': 'tx/sent',
    'tx_error_frames': 'tx/errors/{reason}', 'redirect_sent_frames': 'redirect/sent',
    'redirect_error_frames': 'redirect/errors/{reason}', 'redirect_copy_frames': 'redirect/copies',
    'redirect_sink_frames': 'redirect/to_sinks', 'redirect_worker_frames': 'redirect/to_workers',
    'left_in_ring_frames': 'left_in_ring', 'rule_frames': 'rules/{rule}'}
PLACES = {
    'run': {'uptime_seconds': 'at', 'forwarding_seconds': 'seconds', 'forwarding': 'forwarding'},
    'traffic': {'generated_frames': 'generated', 'sent_frames': 'sent', 'refused_frames': 'refused/{reason}',
                'nobuf_frames': 'nobuf', 'class_borrowed_frames': 'classes/{pool}/borrowed',
                'class_nobuf_frames': 'classes/{pool}/nobuf'},
    'device': {**JUDGED, 'queue_high_water_frames': 'ring_high_water/{queue}', 'queue_waiting_frames': 'ring_waiting/{queue}',
               'queue_xdp_xmit': 'xstats/tx_queue_{queue}_xdp_xmit',
               'queue_xdp_xmit_errors': 'xstats/tx_queue_{queue}_xdp_xmit_errors', 'sent_through_frames': 'sent_through',
               'refused_through_frames': 'refused_through/{reason}', 'segmented_frames': 'gso/segmented',
               'segment_frames': 'gso/segments', 'segment_lost_frames': 'gso/segments_lost', 'gathered_frames': 'gathered',
               'polls': 'polls', 'empty_polls': 'empty_polls', 'driver_received_frames': 'driver/received',
               'driver_sent_frames': 'driver/sent', 'driver_sent_bytes': 'driver/sent_bytes',
               'driver_missed_frames': 'driver/missed', 'driver_receive_error_frames': 'driver/receive_errors',
               'driver_send_error_frames': 'driver/send_errors', 'driver_nobuf_frames': 'driver/no_buffer'},
    'lane': JUDGED,
    'egress': {'verdict_frames': 'verdicts/{verdict}', 'fault_frames': 'faults', 'rule_frames': 'rules/{rule}'},
    'map': {'broadcast_frames': 'everywhere', 'slot_frames': 'slots/{key}/frames'},
    'sink': {'received_frames': 'frames', 'received_bytes': 'bytes', 'written_frames': 'written', 'kept_frames': 'kept',
             'sent_frames': 'sent', 'refused_frames': 'refused/{reason}', 'queued_frames': 'reader/queued',
             'read_frames': 'reader/read', 'read_bytes': 'reader/read_bytes', 'freed_frames': 'reader/freed',
             'left_frames': 'reader/left', 'dropped_frames': 'reader/dropped/{reason}',
             'most_held_frames': 'reader/counters/most_held'},
    'object': {'runs': 'runs', 'verdict_frames': 'verdicts/{verdict}', 'unknown_verdict_frames': 'unknown',
               'fault_frames': 'faults', 'run_seconds': 'ns_per_run'},
    'pool': {'size_buffers': 'size', 'low_water_buffers': 'low_water', 'in_use_buffers': 'buffers_in_use',
             'kept_by_driver_buffers': 'kept_by_drivers', 'borrowed_buffers': 'borrowed', 'in_flight_pages': 'pages_in_flight',
             'resident_bytes': 'bytes_resident'},
    'worker': {'rounds': 'rounds', 'idle_rounds': 'idle_rounds'},
    'arena': {'resident_bytes': 'resident_bytes', 'peak_bytes': 'peak_bytes', 'limit_bytes': 'limit_bytes',
              'limit_refusals': 'limit_refusals'},
}
# Counters of a kind that are named by what they count: any other metric of the family is one of these.
NAMED = {'device': 'xstats/rx_queue_{queue}_', 'sink': 'reader/counters/', 'pool': 'counters/'}
LISTS = {'traffic': ('traffic', 'source'), 'device': ('devices', 'device'), 'lane': ('lanes', 'lane'), 'map': ('maps', 'map'),
         'egress': ('egress', 'program'),
         'sink': ('sinks', 'sink'), 'object': ('objects', 'program'), 'pool': ('pools', 'pool'), 'worker': ('workers', 'lcore')}
# Numbers that no metric has: what things are, sums of others, and what is a metric's by another unit.
NOT_COUNTED = re.compile(r'/(rate_pps|pages_in_flight|buffers_in_use)$|/devices/\w+/(port|mtu|up|errors/\w+)$|/\w+/read_pps$|'
                         r'/maps/\w+/slots/\d+/key$|/lanes/.*/worker$|/objects/\w+/(instructions|frags)$|/reader/read_pps$|'
                         r'/pools/\w+/(data_room|exact|page_size|objects_per_page)$|/workers/\d+/lcore$')


def named(value):
    """`value` with lists of things as {name: thing}."""
    if isinstance(value, dict):
        return {key: named(each) for key, each in value.items()}
    if isinstance(value, list):
        keys = [next((str(each[key]) for key in ('name', 'lcore', 'pool', 'key') if key in each), None)
                if isinstance(each, dict) else str(n) for n, each in enumerate(value)]
        return {key: named(each) for key, each in zip(keys, value)}
    return value


def numbers(value, path=''):
    """(path, number) of each number in `value`; true is 1."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from numbers(each, f'{path}/{key}')
    elif isinstance(value, (int, float)):
        yield path, float(value)


def place_of(name, labels):
    """The path in the JSON of a series."""
    family, rest = re.fullmatch(r'halfpage_([a-z]+)_(\w+?)(?:_total)?', name).groups()
    root = {'run': '', 'arena': '/page_memory'}.get(family)
    if root is None:
        listed, label = LISTS[family]
        root = f'/{listed}/{labels[label]}'
    below = PLACES[family].get(rest) or NAMED[family] + rest.removeprefix('queue_')
    return f'{root}/{below.format(**labels)}'


def series(text):
    """{(name, labels as sorted pairs): value} of the text format."""
    found = {}
    for line in text.splitlines():
        if line.startswith(('#', 'exposer_')):  # prometheus-cpp counts what it does, too
            continue
        name, labels, value = re.fullmatch(r'(\w+)(?:\{(.*)\})? (\S+)', line).groups()
        key = (name, tuple(sorted(re.findall(r'(\w+)="(.*?)"', labels or ''))))
        tap.expect(key not in found, f'{key} is there twice')
        found[key] = float(value)
    return found


def expect_metrics_equal(told, metrics):
    """Each series is a number of the JSON, and each number that counts something has a series."""
    there, seen = dict(numbers(named(told))), set()
    for (name, labels), value in metrics.items():
        place = place_of(name, dict(labels))
        tap.expect(place in there, f'{name}{dict(labels)} is not in the JSON as {place}')
        seen.add(place)
        wanted = there[place] * (1e-9 if name == 'halfpage_object_run_seconds' else 1)
        moving = name == 'halfpage_run_uptime_seconds'
        tap.expect(value >= wanted if moving else abs(value - wanted) <= 1e-12 * abs(wanted), f'{place}: {wanted}, {name} {value}')
    left = [path for path in there if path not in seen and not NOT_COUNTED.search(path)]
    tap.expect(not left, 'no metric has', *left)


def as_told(value):
    """How telemetry tells a JSON value: it knows whole numbers, texts of 127 letters and names of letters, digits, _ and /."""
    if isinstance(value, dict):
        return {re.sub(r'[^A-Za-z0-9/]', '_', key): as_told(each) for key, each in value.items()}
    if isinstance(value, list):
        return [as_told(each) for each in value]
    return int(value) if isinstance(value, bool) else value


def same(told, wanted):
    if isinstance(wanted, float):
        return float(told) == wanted
    if isinstance(wanted, dict):
        return isinstance(told, dict) and told.keys() == wanted.keys() and all(same(told[key], wanted[key]) for key in wanted)
    if isinstance(wanted, list) and wanted and isinstance(wanted[0], dict):  # lists hold texts or numbers: each a document
        return [json.loads(each) for each in told] == wanted
    return told == wanted


def expect_telemetry_equal(told, run):
    """list, info and stats of each family, /halfpage/info and /halfpage/ledger: nothing is missing, and all is equal."""
    families = {'pools': 'pools', 'veth': 'devices', 'programs': 'objects', 'sinks': 'sinks', 'traffic': 'traffic',
                'workers': 'workers', 'maps': 'maps', 'lanes': 'lanes', 'egress': 'egress'}
    tap.expect({key for key, value in told.items() if isinstance(value, list)} == set(families.values()), 'no family', *told)
    lists = run.ask(*(f'/halfpage/{family}/list' for family in families))
    for (family, listed), names in zip(families.items(), lists):
        tap.expect(names == list(named(told[listed])), family, names)
    things = [(f'/halfpage/{family}/{kind},{name}', family, name) for family, names in zip(families, lists) for name in names
              for kind in ('info', 'stats')]
    answers = {}
    for (start, family, name), reply in zip(things, run.ask(*(each[0] for each in things))):
        answer = answers.setdefault((family, name), {})
        answer.update(reply)
        while 'next' in answer:
            more, = run.ask(f'{start},{answer.pop("next")}')
            answer.update(more)
    for (family, name), answer in answers.items():
        thing, = (each for each in told[families[family]] if name in (each.get('name'), str(each.get('lcore'))))
        wanted = as_told(thing)
        tap.expect(answer.keys() == wanted.keys(), family, name, answer.keys() ^ wanted.keys())
        for key, value in wanted.items():
            tap.expect(same(answer[key], value), f'{family} {name} {key}: telemetry {answer[key]}, JSON {value}')
    info, ledger = run.ask('/halfpage/info', '/halfpage/ledger')
    wanted = as_told({key: value for key, value in told.items() if not isinstance(value, list)})
    tap.expect(float(info.pop('at')) >= wanted.pop('at') and same(info, wanted), info, wanted)
    tap.expect(ledger == {'balanced': 1, 'forwarding': 0, 'faults': [], 'pages_in_flight': told['pages_in_flight'],
                          'buffers_in_use': told['buffers_in_use']}, ledger)


@tap.subtest('of runs that stand still, each metric and each telemetry command gives what the JSON of the same snapshot says')
def _():
    if observed.TELEMETRY is None:
        raise tap.Skip('no dpdk-telemetry.py')
    with launch.scratch() as folder, observed.running(folder, configuration(folder)) as run:
        for turn in range(2):
            time.sleep(0.5)
            told = run.stop()
            metrics = run.scrape()
            expect_telemetry_equal(told, run)
            after = run.json()
            tap.expect(after.pop('at') >= told['at'] and after == {key: told[key] for key in after}, 'it did not stand still')
            expect_metrics_equal(told, series(metrics))
            counts = dict(numbers(named(told)))
            for path in ('devices/veth0/rules/elsewhere', 'lanes/cpus[0]/received', 'egress/last/rules/default', 'maps/outs/slots/0/frames', 'objects/tally/runs',
                         'devices/wan/driver/received', 'sinks/socket/reader/read', 'sinks/rings/reader/read', 'traffic/mix/sent',
                         'devices/veth1/gso/segments', 'pools/short/counters/alloc_fast', 'devices/veth0/tx/sent'):
                tap.expect(counts[f'/{path}'] > 0, f'{path} counts nothing, so its equality says nothing')
            if turn == 0:
                run.type('clear all')  # is the prompt's own affair
                run.type('start')
        ended, report = run.end()
    tap.expect(ended.code == 0, ended)
    tap.expect(report['traffic'] == told['traffic'] and report['devices'] == told['devices'], 'the report says something else')


@tap.subtest("Debian's promtool finds the text format and the names without fault")
def _():
    if shutil.which('promtool') is None:
        raise tap.Skip('promtool is not installed (tools/setup)')
    with launch.scratch() as folder, observed.running(folder, configuration(folder)) as run:
        checked = launch.run(['promtool', 'check', 'metrics'], stdin=run.scrape())
        run.end()
    tap.expect(checked.code == 0 and not checked.out.strip() and not checked.err.strip(), checked)


class Vector:
    """What an expression of a query gives: a value for each set of labels."""

    def __init__(self, values):
        self.values = values

    def __add__(self, other):
        return Vector({key: value + other.values[key] for key, value in self.values.items()})

    def __truediv__(self, other):
        return Vector({key: value / other.values[key] for key, value in self.values.items() if other.values[key]})

    def __rsub__(self, number):
        return Vector({key: number - value for key, value in self.values.items()})

    def sum_by(self, *kept):
        sums = {}
        for labels, value in self.values.items():
            key = tuple(pair for pair in labels if pair[0] in kept)
            sums[key] = sums.get(key, 0) + value
        return Vector(sums)


def expected(expression, before, after):
    """What Prometheus must say of `expression`, from two sets of series; a rate is how much a counter has grown between."""

    def now(name):
        return Vector({labels: value for (each, labels), value in after.items() if each == name})

    def grown(name):
        return Vector({labels: value - before[name, labels] for labels, value in now(name).values.items()})

    python = re.sub(r'sum by \(([\w, ]+)\) (\((?:[^()]|\([^()]*\))*\))',
                    lambda match: f'{match[2]}.sum_by({", ".join(map(repr, match[1].split(", ")))})', expression)
    python = re.sub(r'rate\((\w+)\[\$__rate_interval\]\)', r'grown("\1")', python)
    python = re.sub(r'(?<!")\bhalfpage_\w+\b(?!")', r'now("\g<0>")', python)
    return eval(python, {'now': now, 'grown': grown, '__builtins__': {}}).values  # pylint: disable=eval-used


class Prometheus:
    """Debian's prometheus over one target."""

    def __init__(self, folder, target):
        with socket.socket() as free:
            free.bind(('127.0.0.1', 0))
            self.port = free.getsockname()[1]
        (folder / 'prometheus.yml').write_text(
            f'scrape_configs: [{{job_name: halfpage, scrape_interval: 250ms, scrape_timeout: 250ms, '
            f'static_configs: [{{targets: ["127.0.0.1:{target}"]}}]}}]\n')
        self.child = launch.start(['prometheus', f'--config.file={folder}/prometheus.yml', f'--storage.tsdb.path={folder}/data',
                                   f'--web.listen-address=127.0.0.1:{self.port}'], stderr=open(folder / 'log', 'w'))

    def ask(self, expression, at=None):
        asked = {'query': expression, **({} if at is None else {'time': f'{at:.3f}'})}
        where = f'http://127.0.0.1:{self.port}/api/v1/query?' + urllib.parse.urlencode(asked)
        with urllib.request.urlopen(where, timeout=10) as reply:
            return json.load(reply)['data']['result']

    def query(self, expression, at):
        """{labels of ours: value}"""
        return {tuple(sorted(pair for pair in each['metric'].items() if pair[0] not in ('job', 'instance', '__name__'))):
                float(each['value'][1]) for each in self.ask(expression, at)}

    def scraped_after(self, moment):
        """When the target was first scraped after `moment`, both in seconds of the epoch; waits for it."""
        deadline = time.monotonic() + 20 * launch.SLOWER
        while time.monotonic() < deadline:
            with contextlib.suppress(urllib.error.URLError, ConnectionError):
                for each in self.ask('halfpage_run_uptime_seconds[2m]'):
                    for scraped, _ in each['values']:
                        if scraped > moment + 0.005:  # a scrape's time is moved by up to 2 ms to where it was due
                            return scraped
            time.sleep(0.1)
        raise AssertionError('prometheus scrapes nothing')


@tap.subtest("each query of the dashboard returns, through Debian's prometheus, what the JSON of the same snapshots says")
def _():
    if shutil.which('prometheus') is None:
        raise tap.Skip('prometheus is not installed (tools/setup)')
    dashboard = json.loads((launch.ROOT / 'tools/grafana/halfpage.json').read_text())
    queries = [target['expr'] for panel in dashboard['panels'] for target in panel['targets']]
    tap.expect(len(queries) > 10, queries)
    with launch.scratch() as folder, observed.running(folder, configuration(folder)) as run:
        server = Prometheus(folder, run.port)
        try:
            snapshots = []
            for _ in range(2):
                time.sleep(0.5)
                told, metrics = run.stop(), series(run.scrape())
                expect_metrics_equal(told, metrics)
                # The very scrapes that saw it stand still: one that a busy machine misses, or makes late, changes nothing.
                snapshots.append((server.scraped_after(time.time()), metrics))
                run.type('start')
            (first, before), (last, after) = snapshots
            window = f'{round((last - first) * 1000)}ms'
            for query in queries:
                said = server.query(query.replace('$__rate_interval', window), last)
                wanted = expected(query, before, after)
                tap.expect(said and said.keys() == wanted.keys(), query, said, wanted)
                factor = 1 / (last - first) if 'rate(' in query and '/' not in query else 1
                for labels, value in wanted.items():
                    tap.expect(abs(said[labels] - value * factor) <= 1e-6 * abs(value * factor), query, labels,
                               f'prometheus {said[labels]}, JSON {value * factor}')
            tap.expect(any(value for query in queries for value in expected(query, before, after).values()), 'all is 0')
        finally:
            server.child.terminate()
            server.child.communicate()
        run.end()


if __name__ == '__main__':
    sys.exit(tap.main())
