#!/usr/bin/python3
"""Real ports: two hosts in namespaces of their own, joined through halfpage, and the drivers that need none."""

import contextlib
import json
import signal
import struct
import sys
import time

import captures
import launch
import namespaces
import tap
from launch import HALFPAGE, ROOT, expect_good, halfpage, scratch
from namespaces import ADDRESSES, Sides

BRIDGE = ROOT / 'conf' / 'ports.yaml'
JUMBO = [word for setting in ('pools[0].data_room=8320', 'ports[0].mtu=8000', 'ports[1].mtu=8000', 'veth[0].ends[0].mtu=8000',
                              'veth[0].ends[1].mtu=8000',
                              'ports[0].device=net_af_packet0,iface=near0,framesz=8192,blocksz=8192,framecnt=1024',
                              'ports[1].device=net_af_packet1,iface=near1,framesz=8192,blocksz=8192,framecnt=1024')
         for word in ('--set', setting)]
BACK_TO_BACK = '''
version: 1
pools:
  - {{name: packets, size: auto, ops: {ops}}}
  - {{name: others, size: auto, ops: {ops}}}
ports:
  - {{name: wan, device: "{wan}", pool: packets, sink: to_lan}}
  - {{name: lan, device: "{lan}", pool: others, sink: to_wan}}
sinks:
  - {{name: to_lan, kind: port, port: lan}}
  - {{name: to_wan, kind: port, port: wan}}
'''
# Sends ten datagrams to each of two UDP ports and counts what comes: argv is the role and the address.
DATAGRAMS = '''
import select, socket, sys, time
role, address = sys.argv[1:]
ports = (5999, 6000)
if role == "send":
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for port in ports * 10:
            s.sendto(b"x" * 100, (address, port))
            time.sleep(0.005)
else:
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in ports]
    for s, port in zip(sockets, ports):
        s.bind((address, port))
    print("ready", flush=True)
    counts = [0, 0]
    while ready := select.select(sockets, [], [], 1)[0]:
        for s in ready:
            s.recv(2000)
            counts[sockets.index(s)] += 1
    print(*counts)
'''


@contextlib.contextmanager
def bridging(sides, *arguments, attach=None):
    """halfpage in the middle, joining the sides. Ends it by SIGINT and looks at how it ended; yields what holds that."""
    child = launch.start(sides.command(sides.middle, HALFPAGE, *arguments))
    ended = {}
    try:
        if attach:
            attach()
        began = time.monotonic()
        while not sides.ping():
            if child.poll() is not None or time.monotonic() - began > 10 * launch.SLOWER:
                child.kill()
                raise AssertionError(f'no ping comes back\n{launch.finish(child, 5)}')
            time.sleep(0.05)
        yield ended
    finally:
        if child.poll() is None:
            child.send_signal(signal.SIGINT)
    ended['ended'] = launch.finish(child, 6)
    expect_good(ended['ended'])


def expect_traffic_crosses(sides, size):
    tap.expect(sides.ping(20) == 20, 'pings are lost')
    tap.expect(sides.ping(20, size=size) == 20, f'pings of {size} bytes are lost')
    for direction in ((), ('--reverse',)):
        end = sides.iperf(*direction)
        tap.expect(end['sum_received']['bytes'] > 1e6, f'TCP {direction} carried {end["sum_received"]["bytes"]} bytes')
    end = sides.iperf('--udp', '--bitrate', '20M')
    tap.expect(end['sum']['packets'] > 100 and end['sum']['lost_packets'] == 0, f'UDP: {end["sum"]}')


@tap.subtest('ping, TCP and UDP cross conf/ports.yaml, and the program blocks one UDP port and nothing else')
def _():
    namespaces.need('iperf3')
    with Sides() as sides:
        with bridging(sides, '--config', BRIDGE) as bridge:
            expect_traffic_crosses(sides, 1472)
            receiver = launch.start(sides.command(sides.names[1], '/usr/bin/python3', '-c', DATAGRAMS, 'receive', ADDRESSES[1]))
            receiver.stdout.readline()
            launch.run(sides.command(sides.names[0], '/usr/bin/python3', '-c', DATAGRAMS, 'send', ADDRESSES[1]))
            counts = launch.finish(receiver, 10).out.split()
            tap.expect(counts == ['0', '10'], f'of ten datagrams to each of two ports came {counts}')
            sides.iperf('--cport', '5999')
        tap.expect('blocked 10' in bridge['ended'].out, 'the rule did not count ten', bridge['ended'])


@tap.subtest('the same at an MTU of 8000')
def _():
    namespaces.need('iperf3')
    with Sides(mtu=8000) as sides, bridging(sides, '--config', BRIDGE, *JUMBO):
        expect_traffic_crosses(sides, 7972)


def join_by_taps(sides):
    for side in range(2):
        began = time.monotonic()
        while f'tap{side}' not in sides.in_(sides.middle, 'ip', '-br', 'link'):
            tap.expect(time.monotonic() - began < 10 * launch.SLOWER, f'no interface tap{side} comes up')
            time.sleep(0.05)
    time.sleep(0.3)  # the driver sets the interface up once more when its queues are there
    for side in range(2):
        sides.in_(sides.middle, 'ip', 'link', 'set', f'tap{side}', 'netns', sides.names[side])
        sides.address(side, f'tap{side}')


@tap.subtest('taps join two namespaces as well')
def _():
    namespaces.need('iperf3')
    taps = [word for port in range(2) for word in ('--set', f'ports[{port}].device=net_tap{port},iface=tap{port}')]
    with Sides(joined=False) as sides, bridging(sides, '--config', BRIDGE, *taps, attach=lambda: join_by_taps(sides)):
        expect_traffic_crosses(sides, 1472)


@tap.subtest('net_af_xdp receives into a pool of a stock handler')
def _():
    namespaces.need('iperf3')
    with Sides() as sides, scratch() as folder:
        config = folder / 'af_xdp.yaml'
        config.write_text(BACK_TO_BACK.format(ops='ring_mp_mc', wan='net_af_xdp0,iface=near0', lan='net_af_packet0,iface=near1'))
        with bridging(sides, '--config', config) as bridge:
            expect_traffic_crosses(sides, 1472)
        tap.expect('kept by net_af_xdp' in bridge['ended'].out, 'nothing says what the driver kept', bridge['ended'])


@tap.subtest('net_pcap: what a capture holds leaves through a port into another, byte for byte')
def _():
    with scratch() as folder:
        frames = captures.made_up([60, 64, 65, 590, 1500, 1514] * 50)
        (folder / 'in.pcap').write_bytes(captures.written(frames))
        config = folder / 'pcap.yaml'
        config.write_text(BACK_TO_BACK.format(ops='page_frag', wan=f'net_pcap0,rx_pcap={folder}/in.pcap,tx_pcap={folder}/back.pcap',
                                              lan=f'net_pcap1,tx_pcap={folder}/out.pcap'))
        expect_good(halfpage('--config', config, '--duration', '300ms'))
        tap.expect(captures.read(folder / 'out.pcap') == frames, 'the frames written are not the frames read')


@tap.subtest('a port copies frames as its `copy` says: always, for want of headroom, or never')
def _():
    frames = [captures.udp(b'x' * (20 * i), 5000, 9) for i in range(1, 51)]
    for copy, cause in (('when: always, policy: half', 'always'), ('headroom: 256, policy: exact', 'headroom'), ('when: never', '')):
        with scratch() as folder:
            (folder / 'in.pcap').write_bytes(captures.written(frames))
            (folder / 'run.yaml').write_text(f'''version: 1
eal: {{preset: lab, memory: 128MiB}}
pools: [{{name: packets, size: 2048, cache: 32}}]
programs: [{{name: look, kind: pass}}]
ports:
  - {{name: wan, device: "net_pcap0,rx_pcap={folder}/in.pcap", program: look, sink: out, copy: {{{copy}}}}}
sinks: [{{name: out, kind: pcap, file: out.pcap}}]
measure: {{duration: 1s}}
''')
            ended = halfpage('--config', folder / 'run.yaml', '--json', folder / 'report.json', cwd=folder)
            expect_good(ended)
            copied = json.loads((folder / 'report.json').read_text())['devices'][0].get('copies', {})
            buffers = {name: count for name, count in copied.get('buffers_copied', {}).items() if count}
            tap.expect(buffers == ({cause: 50} if cause else {}), copy, copied)
            tap.expect(captures.read(folder / 'out.pcap') == frames, copy)


@tap.subtest('net_null: frames without end go in circles between two ports and all are accounted for')
def _():
    with scratch() as folder:
        config = folder / 'null.yaml'
        config.write_text(BACK_TO_BACK.format(ops='page_frag', wan='net_null0', lan='net_null1,size=1514'))
        ended = halfpage('--config', config, '--duration', '300ms', '--json', folder / 'report.json')
        expect_good(ended)
        wan, lan = json.loads((folder / 'report.json').read_text())['devices']
        tap.expect(wan['received'] > 0 and wan['received'] == lan['sent_through'] == lan['driver']['sent'], wan, lan)


@tap.subtest('net_memif: two processes, a generator in one, a count in the other')
def _():
    with scratch() as folder:
        (folder / 'server.yaml').write_text(f'''
version: 1
pools: [{{name: packets, size: auto}}]
ports: [{{name: in, device: "net_memif0,role=server,socket={folder}/memif.sock,socket-abstract=no", sink: counted}}]
sinks: [{{name: counted}}]
''')
        (folder / 'client.yaml').write_text(f'''
version: 1
pools: [{{name: packets, size: auto}}]
ports: [{{name: out, device: "net_memif0,role=client,socket={folder}/memif.sock,socket-abstract=no"}}]
traffic: [{{name: udp, into: out, sizes: [64, 1514]}}]
''')
        server = launch.start([HALFPAGE, '--config', folder / 'server.yaml', '--json', folder / 'server.json'])
        try:
            began = time.monotonic()
            while not (folder / 'memif.sock').exists() and time.monotonic() - began < 10:
                time.sleep(0.05)
            expect_good(halfpage('--config', folder / 'client.yaml', '--duration', '1s', '--json', folder / 'client.json'))
        finally:
            server.send_signal(signal.SIGINT)
        expect_good(launch.finish(server, 10))
        sent = json.loads((folder / 'client.json').read_text())['devices'][0]['driver']['sent']
        come = json.loads((folder / 'server.json').read_text())['devices'][0]['received']
        # What is in the shared ring when the client goes is lost with it.
        tap.expect(0 < come <= sent and sent - come <= 2048, f'sent {sent}, received {come}')


def expect_whole_payload(segments):
    """These are all that one frame of 20000 bytes was cut into."""
    tap.expect([len(segment) for segment in segments] == [1454] * 14 + [400], [len(segment) for segment in segments])
    for number, segment in enumerate(segments):
        length, sequence = struct.unpack('>H', segment[16:18])[0], struct.unpack('>I', segment[38:42])[0]
        tap.expect(length == len(segment) - 14 and sequence == 1 + number * 1400, f'segment {number}: {length}, {sequence}')
        tap.expect(captures.checksum(segment[14:34]) == 0, f'segment {number}: its IPv4 checksum is wrong')
        pseudo = segment[26:34] + struct.pack('>BBH', 0, 6, length - 20)
        tap.expect(captures.checksum(pseudo + segment[34:]) == 0, f'segment {number}: its TCP checksum is wrong')


@tap.subtest('frames marked for segmentation pass a program that takes frags whole, and leave a port as segments')
def _():
    with scratch() as folder:
        config = folder / 'gso.yaml'
        config.write_text(f'''
version: 1
pools: [{{name: packets, size: 8192}}]
ports: [{{name: out, device: "net_pcap0,tx_pcap={folder}/out.pcap"}}]
veth: [{{name: front, ends: [{{name: veth0, program: look, sink: leave}}, {{name: veth1}}]}}]
programs: [{{name: look, frags: true}}]
sinks: [{{name: leave, kind: port, port: out}}]
traffic: [{{name: super, sizes: 20000, gso: 1400, flows: 1, into: veth1, count: 100, burst: 4}}]
''')
        # A program without frags sees no chain: segments for it are made before, in a buffer each.
        for frags, cut_at, received in (('true', 'out', 100), ('false', 'veth1', 1500)):
            ended = halfpage('--config', config, '--set', f'programs[0].frags={frags}', '--json', folder / 'report.json')
            expect_good(ended)
            devices = {each['name']: each for each in json.loads((folder / 'report.json').read_text())['devices']}
            gso = devices[cut_at]['gso']
            tap.expect(gso == {'segmented': 100, 'segments': 1500, 'segments_lost': 0}, gso, ended)
            passed = devices['veth0']['verdicts']['pass']
            tap.expect(passed == received, f'veth0 passed {passed}', ended)
            frames = captures.read(folder / 'out.pcap')
            tap.expect(len(frames) == 1500, f'{len(frames)} frames left')
            expect_whole_payload(frames[:15])
            expect_whole_payload(frames[-15:])


def expect_refused(device, *words, settings=(), prefix=(), **options):
    with scratch(mode=0o777) as folder:
        config = folder / 'port.yaml'
        config.write_text(f'version: 1\npools: [{{name: packets, size: 8192}}]\nports: [{{name: wan, device: "{device}"}}]\n')
        environment = {'XDG_RUNTIME_DIR': str(folder), 'PATH': '/usr/bin:/usr/sbin'}
        ended = launch.run([*prefix, HALFPAGE, '--config', config, '--duration', '1s', *settings], env=environment, **options)
    tap.expect(ended.code == 1, 'expected exit code 1', ended)
    said = [line for line in ended.err.splitlines() if line.startswith('halfpage: port wan: ')]
    tap.expect(len(said) == 1 and all(word in said[0] for word in words), f'no line with all of {words}', ended)


@tap.subtest('a port that cannot be had is refused with what is missing and how to mend it')
def _():
    expect_refused('net_af_packet0,iface=nosuch', 'no iface=nosuch', 'there are lo', 'ip link add')
    expect_refused('net_af_packet0', 'needs a network interface')
    expect_refused('net_nosuch0', 'cannot make the device `net_nosuch0`', "driver's name")
    expect_refused('gibberish', 'cannot make the device `gibberish`', 'PCI address')
    expect_refused('0000:ff:1f.7', 'vfio-pci', 'dpdk-devbind.py')
    expect_refused('net_pcap0,rx_pcap=/nonexistent.pcap', 'cannot make the device')
    with scratch() as folder:
        (folder / 'in.pcap').write_bytes(captures.written(captures.made_up([60])))
        expect_refused(f'net_pcap0,rx_pcap={folder}/in.pcap', 'queues: 2', 'has 1', 'write queues: 1', 'rx_ and tx_ argument',
                       settings=('--set', 'ports[0].queues=2'))


@tap.subtest('an interface takes no MTU that its driver has not got, and none but root has a port on it')
def _():
    namespaces.need()
    with Sides() as sides:
        prefix = sides.command(sides.middle)
        expect_refused('net_af_xdp0,iface=near0', 'mtu 9000', 'takes at most', prefix=prefix,
                       settings=('--set', 'ports[0].mtu=9000', '--set', 'pools[0].ops=ring_mp_mc', '--set',
                                 'pools[0].data_room=9216'))
        expect_refused('net_af_packet0,iface=lo', 'needs root', 'sudo', prefix=('setpriv', '--reuid=65534', '--clear-groups'))
        expect_refused('net_tap0', '/dev/net/tun', 'modprobe tun',
                       prefix=('unshare', '--mount', 'sh', '-c', 'mount -t tmpfs none /dev/net && exec "$@"', 'sh'))


sys.exit(tap.main())
