"""bpf(2) by hand: the five programs and two kinds of map that the measurement needs, written as instructions.

A program of two to six instructions needs no compiler, and so this machine none to measure its kernel.
"""

import ctypes
import errno
import os
import platform
import struct

SYSCALLS = {'x86_64': 321, 'aarch64': 280}
MAP_CREATE, MAP_UPDATE_ELEM, PROG_LOAD, PROG_RUN, LINK_CREATE = 0, 2, 5, 10, 28
PROG_TYPE_XDP, ATTACH_XDP = 6, 37
DEVMAP, XSKMAP = 14, 17
DROP, PASS, TX = 1, 2, 3  # enum xdp_action
HAS_FRAGS = 1 << 5  # prog_flags: may be shown frames in several buffers
LIVE_FRAMES = 1 << 1  # PROG_RUN: real frames that go where the verdict says
NATIVE = 1 << 2  # attach to the driver, not to the stack behind it
CALL_REDIRECT_MAP = 51
LIVE_BATCH = 64  # frames per bulk of the kernel's generator
LOG_BYTES = 65536

_libc = ctypes.CDLL(None, use_errno=True)


def call(command, attributes):
    """bpf(2). Returns its result; raises OSError with the kernel's reason."""
    number = SYSCALLS.get(platform.machine())
    if number is None:
        raise OSError(errno.ENOSYS, f'the number of bpf(2) on {platform.machine()} is not known here')
    block = ctypes.create_string_buffer(attributes, max(len(attributes), 80))
    result = _libc.syscall(number, command, ctypes.byref(block), len(block))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f'bpf({command}): {os.strerror(code)}')
    return result


def instruction(code, destination=0, source=0, offset=0, value=0):
    return struct.pack('<BBhi', code, source << 4 | destination, offset, value)


def returning(action):
    return instruction(0xb7, 0, value=action) + instruction(0x95)


def redirecting(map_descriptor):
    """Sends everything to entry 0 of a map; what the map does not have is aborted."""
    return (instruction(0x18, 1, 1, value=map_descriptor) + instruction(0) + instruction(0xb7, 2) + instruction(0xb7, 3) +
            instruction(0x85, value=CALL_REDIRECT_MAP) + instruction(0x95))


def load(code, frags=False):
    """File descriptor of an XDP program. OSError carries the verifier's words."""
    instructions = ctypes.create_string_buffer(code, len(code))
    licence = ctypes.create_string_buffer(b'BSD')
    log = ctypes.create_string_buffer(LOG_BYTES)
    attributes = struct.pack('<IIQQIIQII16sII', PROG_TYPE_XDP, len(code) // 8, ctypes.addressof(instructions),
                             ctypes.addressof(licence), 1, LOG_BYTES, ctypes.addressof(log), 0,
                             HAS_FRAGS if frags else 0, b'halfpage_veth', 0, ATTACH_XDP)
    try:
        return call(PROG_LOAD, attributes)
    except OSError as error:
        words = log.value.decode(errors='replace').strip().splitlines()
        raise OSError(error.errno, f'{error.strerror}{": " + words[-1] if words else ""}') from None


def one_entry_map(kind, value):
    """A map whose only entry is an interface index of this network namespace (DEVMAP) or a socket (XSKMAP)."""
    descriptor = call(MAP_CREATE, struct.pack('<IIIII', kind, 4, 4, 1, 0))
    if value is not None:
        set_entry(descriptor, value)
    return descriptor


def set_entry(map_descriptor, value):
    key, entry = ctypes.c_uint32(0), ctypes.c_uint32(value)
    call(MAP_UPDATE_ELEM, struct.pack('<IIQQQ', map_descriptor, 0, ctypes.addressof(key), ctypes.addressof(entry), 0))


def attach(program, interface_index):
    """Attaches natively, in this network namespace, until the returned descriptor is closed."""
    return call(LINK_CREATE, struct.pack('<IIII', program, interface_index, ATTACH_XDP, NATIVE))


class LiveFrames:
    """The kernel's own generator: frames that lie in driver memory, run through a program again and again."""

    def __init__(self, program, frame, repeat):
        self.frame = ctypes.create_string_buffer(frame, len(frame))
        self.repeat = repeat
        self.attributes = struct.pack('<IIIIQQIIIIQQIII', program, 0, len(frame), 0, ctypes.addressof(self.frame), 0,
                                      repeat, 0, 0, 0, 0, 0, LIVE_FRAMES, 0, LIVE_BATCH)

    def send(self):
        """Runs `repeat` frames. Returns how many."""
        call(PROG_RUN, self.attributes)
        return self.repeat
