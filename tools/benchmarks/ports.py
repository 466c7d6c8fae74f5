"""TCP between two hosts in namespaces of their own: through halfpage against through stock testpmd, on the same ports."""

import contextlib
import os
import signal
import subprocess
import sys
import time

import interleave
import namespaces
import tap
import testpmd

ABOUT = 'TCP through af_packet ports, a veth pair and a filter between two namespaces, against stock testpmd io'
PROGRAM = testpmd.ROOT / 'build' / 'app' / 'halfpage'
CONFIG = testpmd.ROOT / 'conf' / 'ports.yaml'
SECONDS = 2
DEVICES = {1500: ('net_af_packet0,iface=near0', 'net_af_packet1,iface=near1'),
           8000: tuple(f'net_af_packet{side},iface=near{side},framesz=8192,blocksz=8192,framecnt=1024' for side in range(2))}


def halfpage(mtu):
    command = [str(PROGRAM), '--config', str(CONFIG)]
    settings = [f'ports[{side}].{key}={value}' for side in range(2) for key, value in (('mtu', mtu), ('device', DEVICES[mtu][side]))]
    settings += [f'veth[0].ends[{end}].mtu={mtu}' for end in range(2)]
    settings.append(f'pools[0].data_room={2176 if mtu == 1500 else 8320}')
    for setting in settings:
        command += ['--set', setting]
    return command


def stock(mtu):
    vdevs = [word for device in DEVICES[mtu] for word in ('--vdev', device)]
    return ['dpdk-testpmd', *testpmd.lcores(), '--no-pci', '--no-huge', '-m', '256', '--no-telemetry',
            f'--file-prefix=halfpage_ports_{os.getpid()}_{time.monotonic_ns()}', *vdevs, '--', '--forward-mode=io', '--auto-start',
            f'--mbuf-size={2176 if mtu == 1500 else 8320}', '--total-num-mbufs=4096', '--no-flush-rx', '--interactive']


@contextlib.contextmanager
def joined(sides, command):
    """`command` in the middle until a ping has come back and what is inside is done."""
    child = subprocess.Popen(sides.command(sides.middle, *command), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, cwd='/')
    try:
        began = time.monotonic()
        while not sides.ping():
            if child.poll() is not None or time.monotonic() - began > 15:
                child.kill()
                raise testpmd.TestpmdError(f'no ping comes back through {command[0]}:\n{child.communicate()[0][-2000:]}')
        yield
    finally:
        if child.poll() is None:
            child.send_signal(signal.SIGINT)
            try:
                child.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                child.kill()
                child.communicate()


def rate(sides, command):
    """Gb/s of one TCP connection."""
    with joined(sides, command):
        try:
            end = sides.iperf(seconds=SECONDS)
        except AssertionError as error:
            raise testpmd.TestpmdError(f'through {command[0]}: {error}') from None
    return end['sum_received']['bits_per_second'] / 1e9


def run(options):
    try:
        namespaces.need('iperf3', 'dpdk-testpmd')
    except tap.Skip as skip:
        return testpmd.give_up(skip)
    outcomes = []
    for mtu in DEVICES:
        name = f'TCP at MTU {mtu}, veth pair and filter between, against testpmd io'
        if options.row and options.row not in name:
            continue
        with namespaces.Sides(mtu=mtu) as sides:
            row = interleave.Row(name, lambda: rate(sides, halfpage(mtu)), lambda: rate(sides, stock(mtu)), 1.0)
            try:
                outcomes.append(interleave.measure(row, options.rounds))
            except testpmd.TestpmdError as error:
                return testpmd.give_up(error)
    if not outcomes:
        print(f'bench: no row holds {options.row!r}', file=sys.stderr)
        return 2
    return interleave.report(outcomes, 'Gb/s')
