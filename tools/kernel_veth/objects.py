"""Programs of XDP objects in the kernel, loaded by libbpf."""

import ctypes
import os

import bpf

LIBRARY = 'libbpf.so.1'
PROG_TYPE_XDP = 6


class Object:
    """An object with one of its programs loaded. `program` and what map_file() gives are descriptors that close() closes."""

    def __init__(self, path, function):
        try:
            self.library = ctypes.CDLL(LIBRARY, use_errno=True)
        except OSError as error:
            raise OSError(0, f'{error} (Debian: libbpf1)') from None
        for name in ('open', 'next_program', 'find_program_by_name'):
            getattr(self.library, f'bpf_object__{name}').restype = ctypes.c_void_p
        self.library.bpf_program__name.restype = ctypes.c_char_p
        self.library.libbpf_set_print(None)
        self.object = ctypes.c_void_p(self.library.bpf_object__open(os.fsencode(path)))
        if not self.object:
            raise OSError(ctypes.get_errno(), f'{path}: {os.strerror(ctypes.get_errno())}')
        each = ctypes.c_void_p(self.library.bpf_object__next_program(self.object, None))
        while each:
            wanted = self.library.bpf_program__name(each) == function.encode()
            self.library.bpf_program__set_autoload(each, wanted)
            each = ctypes.c_void_p(self.library.bpf_object__next_program(self.object, each))
        program = ctypes.c_void_p(self.library.bpf_object__find_program_by_name(self.object, function.encode()))
        if not program:
            raise OSError(0, f'{path} holds no program {function}')
        self.library.bpf_program__set_type(program, PROG_TYPE_XDP)
        failed = self.library.bpf_object__load(self.object)
        if failed:
            raise OSError(-failed, f'{path}: the kernel does not load it: {os.strerror(-failed)}')
        self.program = self.library.bpf_program__fd(program)

    def set_entry(self, name, value):
        """Puts an interface index into entry 0 of map `name`."""
        descriptor = self.library.bpf_object__find_map_fd_by_name(self.object, name.encode())
        if descriptor < 0:
            raise OSError(-descriptor, f'there is no map {name}')
        bpf.set_entry(descriptor, value)

    def close(self):
        self.library.bpf_object__close(self.object)
