"""The comparisons of conf/threads/, each as interleaved runs of the program itself, with what the buffers take beside it."""

import json
import os
import subprocess
import sys

import hugepages
import interleave
import ratios
import testpmd

ABOUT = 'the five threads of conf/threads/: half pages, bulk, recycling, short and long, as ratios with memory beside'
PROGRAM = testpmd.ROOT / 'build' / 'app' / 'halfpage'
FOLDER = testpmd.ROOT / 'conf' / 'threads'
HUGE_PAGES = 256
WITHOUT_KNOB = testpmd.ROOT / 'build' / 'tests' / 'bench' / 'without_knob' / 'librte_mempool_page_frag.so'
DURATION = '250ms'
HEADROOM = 256  # that XDP promises
FULL_FRAME = 1514
FRESH_PAGES = 0.0005  # per packet: what prints as 0.000 is met
OBJECT = 64 + 128  # object header and mbuf
MBUF_AND_HEADROOM = 128 + 128  # in front of a frame in an exact buffer, rounded up to 64 with it


class Side:
    """One side of a comparison: a configuration with settings. Calling it runs it once and gives its rate."""

    def __init__(self, config, *settings, device='veth0', memory='hugepages', handler=None):
        self.config, self.device, self.report = config, device, None
        self.environment = {**os.environ, **({'LD_LIBRARY_PATH': str(handler)} if handler else {})}
        self.settings = [f'eal.preset={memory}', *settings]

    def __call__(self):
        command = [str(PROGRAM), '--config', str(FOLDER / f'{self.config}.yaml'), '--duration', DURATION, '--json', '-']
        for setting in self.settings:
            command += ['--set', setting]
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              env=self.environment)
        if done.returncode:
            raise testpmd.TestpmdError(f'{" ".join(command)}\nended with {done.returncode}:\n{done.stderr[-3000:]}')
        self.report = json.loads(done.stdout)
        return self.received() / self.report['seconds'] / 1e6

    def received(self):
        if self.device is None:  # what the reader got
            return self.reader()['read']
        return next(device['received'] for device in self.report['devices'] if device['name'] == self.device)

    def reader(self):
        """Of the first sink, one that keeps frames for a reader."""
        return self.report['sinks'][0]['reader']

    def pages_per_packet(self, size):
        pool = self.report['pools'][0]
        room = pool['data_room']
        buffers = 1 if size <= room - 128 else 1 + -(-(size - room + 128) // room)
        return buffers / pool['objects_per_page'] * pool['page_size'] / 4096

    def pages_by_size_per_packet(self, size):
        """Of a chain of the second pool's buffers whose end is in the first's where it fits."""
        pages, halves = (self.report['pools'][i] for i in (1, 0))
        behind = size - (pages['data_room'] - 128)
        end = (behind - 1) % pages['data_room'] + 1
        buffers = 1 + -(-behind // pages['data_room'])
        last = halves if end <= halves['data_room'] else pages
        return (buffers - 1) / pages['objects_per_page'] + 1 / last['objects_per_page']

    def fresh_pages_per_packet(self):
        counters = self.report['pools'][0]['counters']
        return (counters['alloc_slow'] + counters['alloc_slow_ho']) / self.received()

    def bytes_per_packet(self):
        """Of buffers, object header and mbuf included, over the frames of all sources."""
        rooms = {pool['name']: pool for pool in self.report['pools']}
        total = frames = 0
        for source, pool in zip(self.report['traffic'], self.pool_names()):
            buffer = rooms[pool]
            stride = (buffer['page_size'] / buffer['objects_per_page'] if 'objects_per_page' in buffer else
                      buffer['data_room'] + OBJECT)
            total += source['sent'] * stride
            frames += source['sent']
        return total / frames

    def pool_names(self):
        stock = 'traffic[1].pool=short' in self.settings
        return ['short', 'short' if stock else 'long']


class Comparison:
    """A row of the table and what it says of memory. `memory` gives (text, met) once both sides have run."""

    def __init__(self, name, ours, theirs, at_least, memory=None, judge=None):
        self.row = interleave.Row(name, ours, theirs, at_least, judge)
        self.memory = memory


def half_page():
    whole = ('pools[0].data_room=3648',)
    for size in (FULL_FRAME, 8000):
        sized = f'traffic[0].sizes={size}'
        for name, settings in (('a page each', whole), ('a page each, no colour', (*whole, 'pools[0].colour=false'))):
            ours, theirs = Side('half_page', sized), Side('half_page', sized, *settings)

            def memory(ours=ours, theirs=theirs, size=size):
                half, each = ours.pages_per_packet(size), theirs.pages_per_packet(size)
                spare = ours.report['pools'][0]['data_room'] - FULL_FRAME
                return (f'{half:.2f} against {each:.2f} pages of 4 KiB a packet, {spare} bytes free for headroom',
                        spare >= HEADROOM and (size != FULL_FRAME or half <= each / 2))

            yield Comparison(f'half a page against {name}, {size} B', ours, theirs, 1.0, memory)
            if size == FULL_FRAME:
                continue
            mixed = Side('half_page', sized, 'traffic[0].pool=""', 'traffic[0].classes=[packets,pages]')
            alone = Side('half_page', sized, *settings)

            def mixed_memory(mixed=mixed, alone=alone, size=size):
                mine, each = mixed.pages_by_size_per_packet(size), alone.pages_per_packet(size)
                return f'{mine:.2f} against {each:.2f} pages of 4 KiB a packet', mine < each

            yield Comparison(f'pages, the end in half of one, against {name}, {size} B', mixed, alone, 1.0, mixed_memory)
        yield Comparison(f'carved of 32 KiB against a page each, {size} B',
                         Side('half_page', sized, 'pools[0].page_size=32KiB'), Side('half_page', sized, *whole), 1.0)
        exact = ('pools[0].exact=true', 'traffic[0].buffers=exact', 'pools[0].cache=0', 'pools[0].page_size=32KiB')
        ours, theirs = Side('half_page', sized, *exact), Side('half_page', sized, *whole)

        def memory(theirs=theirs, size=size):
            cut = -(-(MBUF_AND_HEADROOM + size) // 64) * 64 / 4096
            each = theirs.pages_per_packet(size)
            return f'{cut:.2f} against {each:.2f} pages of 4 KiB a packet', cut <= each

        yield Comparison(f'exact of 32 KiB against a page each, {size} B', ours, theirs, 1.0, memory)


def bulk():
    alone = 'traffic[1].count=1'
    for name, settings, target in (('one sender, ring for one', (alone, 'veth[1].ends[0].program=""'), 1.25),
                                   ('one sender, ring for several', (alone,), 2.0), ('two senders', (), 2.0)):
        yield Comparison(f'bulk 16 against 1, {name}', Side('xdp_tx_bulk', *settings, device='veth1'),
                         Side('xdp_tx_bulk', *settings, 'measure.bulk=1', device='veth1'), target)


def recycling():
    for name, device in (('tx_drop', 'veth1'), ('tx_pass', 'veth1'), ('redirect_drop', 'veth3'), ('redirect_pass', 'veth3'),
                         ('user_drop', None)):
        config = f'recycle_{name}'
        if not (FOLDER / f'{config}.yaml').exists():
            continue
        ours, theirs = Side(config, device=device), Side(config, 'pools[0].recycle=off', device=device)

        def memory(ours=ours, theirs=theirs):
            fresh = ours.fresh_pages_per_packet()
            return (f'{fresh:.3f} against {theirs.fresh_pages_per_packet():.3f} fresh pages a packet', fresh < FRESH_PAGES)

        yield Comparison(f'recycling on against off, {name}', ours, theirs, 1.10, memory)
        # The handler compiled with the setting as a constant: two builds of one thing, so even within what ratios.py allows.
        yield Comparison(f'recycling on against a build without the knob, {name}', Side(config, device=device),
                         Side(config, device=device, handler=WITHOUT_KNOB.parent), ratios.EVEN, judge=ratios.at_least)


def short_long():
    stock = ('pools[0].ops=ring_mp_mc', 'pools[0].data_room=2176', 'traffic[1].pool=short', 'pools[1].size=512')
    for memory_mode in ('hugepages', 'lab'):
        ours, theirs = Side('short_long', memory=memory_mode), Side('short_long', *stock, memory=memory_mode)

        def memory(ours=ours, theirs=theirs):
            mine, other = ours.bytes_per_packet(), theirs.bytes_per_packet()
            return f'{mine:.0f} against {other:.0f} bytes of buffer a packet ({mine / other:.2f})', mine <= other / 2

        name = 'hugepages' if memory_mode == 'hugepages' else 'no-huge'
        yield Comparison(f'short and long against one stock pool, {name}', ours, theirs, 1.0, memory)


def condensing():
    if not (FOLDER / 'udp_condense.yaml').exists():
        return
    # A reader slower than the flood: the queue stands full, and the others are dropped.
    ours, theirs = (Side('udp_condense', *condense, device=None) for condense in ((), ('sinks[0].condense=false',)))

    def memory():
        on, off = (side.reader()['counters']['most_held'] for side in (ours, theirs))
        lost = ours.reader()['dropped']['rcvbuf_errors'] / ours.report['traffic'][0]['sent']
        return (f'{on} against {off} packets held at the same rcvbuf ({on / off:.1f}), our accounting; '
                f'{lost:.0%} of the flood dropped', on >= 3 * off)

    yield Comparison('condensing on against off, goodput under overload', ours, theirs, 1.0, memory)
    # A reader that keeps up with the flood's sender: what the sender pays for condensing now and then.
    yield Comparison('condensing on against off, goodput, fast reader', Side('udp_condense', 'sinks[0].rate=0', device=None),
                     Side('udp_condense', 'sinks[0].rate=0', 'sinks[0].condense=false', device=None), 1.0)


class Bytes(Side):
    """A side whose rate is that of received bytes, in MB/s."""

    def received(self):
        return next(device['bytes'] for device in self.report['devices'] if device['name'] == self.device)


def gso():
    """Both sides are full of the source's copying, which reads and writes the same payload; what differs is the rest."""
    whole = Bytes('gso', 'eal.memory=1GiB')
    yield Comparison('64 KiB whole against full frames, MB/s', whole,
                     Bytes('gso', 'traffic[0].gso=0', 'traffic[0].sizes=1502'), 0.8)
    yield Comparison('64 KiB whole against cut before the program, MB/s', whole,
                     Bytes('gso', 'eal.memory=1GiB', 'programs[0].frags=false', 'traffic[0].burst=1'), 3.0)


def run(options):
    groups = (half_page, bulk, recycling, short_long, condensing, gso)
    chosen = [comparison for group in groups for comparison in group()
              if not options.row or options.row in comparison.row.name]
    if not chosen:
        print(f'bench: no row holds {options.row!r}', file=sys.stderr)
        return 2
    if any(comparison.row.judge for comparison in chosen):
        target = WITHOUT_KNOB.relative_to(testpmd.ROOT / 'build')
        if subprocess.run([testpmd.ROOT / 'tools' / 'build', str(target)], stdout=sys.stderr).returncode:
            return testpmd.give_up('the handler without the knob does not compile; what was said is above')
    outcomes, notes, missed = [], [], 0
    try:
        with hugepages.held(HUGE_PAGES):
            if hugepages.free() < HUGE_PAGES:
                return testpmd.give_up(f'{HUGE_PAGES} free hugepages of 2 MiB are needed, there are {hugepages.free()}')
            for comparison in chosen:
                outcomes.append(interleave.measure(comparison.row, options.rounds))
                if comparison.memory:
                    text, met = comparison.memory()
                    notes.append(f'{comparison.row.name}: {text}  {"met" if met else "MISSED"}')
                    missed += not met
    except testpmd.TestpmdError as error:
        return testpmd.give_up(error)
    code = interleave.report(outcomes, 'Mpps')
    print('\n'.join(notes))
    return 4 if missed else code
