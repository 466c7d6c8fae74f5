"""Rules about C++: format, layers, hot files, headers."""

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

from source_files import ROOT, Finding

JOBS = 2


def clang_format(files):
    """every C++ file stands as clang-format leaves it"""
    paths = [file.path for file in files if file.is_cpp]
    if not paths:
        return
    done = subprocess.run(['clang-format', '--dry-run', '-Werror', *paths], cwd=ROOT, capture_output=True, text=True)
    seen = set()
    for path, line in re.findall(r'^(\S+?):(\d+):\d+: error: code should be clang-formatted', done.stderr, re.MULTILINE):
        if path not in seen:
            seen.add(path)
            yield Finding(path, int(line), f'not formatted; run: clang-format -i {path}')
    if done.returncode and not seen:
        yield Finding('.clang-format', 0, f'clang-format failed: {done.stderr.strip()[:200]}')


# What a folder may not include of the others. exact_frag.h, counter.h and buffer_stamp.h are all that the emulator knows
# of the memory.
FORBIDDEN = (
    ('mempool/', re.compile(r'(xdp_emul|app)/'), 'mempool knows nothing of the layers above it; hand it what it needs'),
    ('xdp_emul/', re.compile(r'app/'), 'xdp_emul is below app; pass the value in as a parameter'),
    ('xdp_emul/', re.compile(r'mempool/(?!(?:exact_frag|counter|buffer_stamp)\.h$)'),
     'xdp_emul meets mempool through rte_mempool*, rte_mbuf*, mempool/exact_frag.h, counter.h and buffer_stamp.h only'),
)


def layers(files):
    """includes go down: app, xdp_emul, mempool"""
    for file in files:
        for number, name in file.includes() if file.is_cpp else ():
            for folder, pattern, advice in FORBIDDEN:
                if file.path.startswith(folder) and pattern.match(name):
                    yield Finding(file.path, number, f'includes {name}: {advice}')


def yaml_in_config_only(files):
    """yaml-cpp is used in app/config* only"""
    for file in files:
        for number, name in file.includes() if file.is_cpp else ():
            if name.startswith('yaml-cpp/') and not file.path.startswith(('app/config', 'tests/')):
                yield Finding(file.path, number, f'includes {name}: only app/config* may; its exceptions end there')


DPDK_FREE = re.compile(r'(mempool/(page_layout|footprint)|app/(config|capture))[^/]*\.(h|cc)$')


def dpdk_free(files):
    """arithmetic, configuration and captures work without DPDK"""
    by_path = {file.path: file for file in files}
    for file in files:
        if not DPDK_FREE.match(file.path):
            continue
        waiting, seen = [(file, None, '')], {file.path}
        while waiting:
            at, first, way = waiting.pop()
            for number, name in at.includes():
                line = first or number
                if re.match(r'(rte_|bus_|ethdev_)', name):
                    yield Finding(file.path, line, f'includes {name}{way}: this file must work without DPDK; move what '
                                  'needs it to another file, or declare the type without its header')
                elif name in by_path and name not in seen:
                    seen.add(name)
                    waiting.append((by_path[name], line, f' through {name}'))


HOT = (
    (r'\b(?:rte_)?\w*(?:malloc|calloc|realloc|memalign)\s*\(', 'allocates'),
    (r'\bnew\b', 'allocates'),
    (r'(?<!= )\bdelete\b|(?<![\w.:>])(?:std::|rte_)?free\s*\(', 'gives memory back to the heap'),
    (r'\bstd::(?:make_unique|make_shared)\b', 'allocates'),
    (r'\bstd::(?:vector|string|w?stringstream|ostringstream|list|deque|map|set|multimap|unordered_\w+)\b', 'may allocate'),
    (r'\bstd::function\b', 'may allocate and is an indirect call'),
    (r'\bvirtual\b', 'is an indirect call'),
    (r'\b(?:std::)?\w*mutex\w*\b|\b(?:lock_guard|unique_lock|scoped_lock|MutexLock)\b', 'takes a lock'),
    (r'\bRTE_LOG\w*|\brte_v?log\b', 'logs'),
    (r'\b\w*printf\b|\bStrFormat\b|\bStrCat\b|\bstd::c(?:out|err)\b', 'prints'),
    (r'\babsl::(?:Status|StatusOr|\w+Error)\b', 'may allocate; hot functions return how many they took'),
    (r'(?<![\w.:>])(?:::)?(?:read|write|open|close|ioctl|poll|epoll_wait|select|send|recv|sendmsg|recvmsg|mmap|munmap|'
     r'madvise|sleep|usleep|nanosleep|fopen|fread|fwrite|fputs|fflush|getenv|sched_yield)\s*\(', 'is a system call'),
    (r'\bthrow\b', 'throws'),
)


def hot_path(files):
    """files that begin with "// Hot path:" hold no allocation, lock, log, system or indirect call"""
    patterns = [(re.compile(pattern), why) for pattern, why in HOT]
    for file in files:
        if not file.is_cpp or not file.lines or not file.lines[0].startswith('// Hot path:'):
            continue
        for number, line in enumerate(file.code, 1):
            if line.lstrip().startswith('#'):
                continue
            for pattern, why in patterns:
                mark = pattern.search(line)
                if mark:
                    yield Finding(file.path, number, f"'{mark.group(0).strip()}' {why}; move it to set-up code in another file")


def headers_alone(files):
    """each header compiles by itself and has #pragma once"""
    headers = [file for file in files if file.suffix == '.h']
    for header in headers:
        if '#pragma once' not in header.lines:
            yield Finding(header.path, 1, 'has no #pragma once')
    # A .cc file that includes its own header first proves it with every build; the others are compiled here.
    proven = {next(file.includes(), (0, ''))[1] for file in files if file.suffix == '.cc'}
    headers = [header for header in headers if header.path not in proven]
    if not headers:
        return
    flags = subprocess.run(['pkg-config', '--cflags', 'libdpdk', 'absl_status', 'yaml-cpp', 'gmock', 'libpcap'],
                           capture_output=True, text=True, check=True).stdout.split()
    defines = ['-DHALFPAGE_SOURCE_ROOT=""']  # what meson.build files hand to the sources
    command = [os.environ.get('CXX', 'g++'), *defines, '-std=c++20', '-fsyntax-only', '-x', 'c++', f'-I{ROOT}', *flags]

    def compile_one(header):
        # Through stdin: as the main file, a header would be told off for its #pragma once.
        return subprocess.run([*command, '-'], cwd=ROOT, input=f'#include "{header.path}"\n', capture_output=True, text=True)

    with ThreadPoolExecutor(JOBS) as pool:
        for header, done in zip(headers, pool.map(compile_one, headers)):
            if done.returncode:
                mark = re.search(r'^(\S+?):(\d+):\d+: (?:fatal )?error: (.*)$', done.stderr, re.MULTILINE)
                place, line, text = mark.groups() if mark else (header.path, '0', done.stderr.strip()[:200])
                elsewhere = '' if place == header.path else f' (in {place}:{line})'
                yield Finding(header.path, 0 if elsewhere else int(line),
                              f'does not compile by itself: {text}{elsewhere}; include what it uses')


def built(files):
    """every .cc file and every test script is named in a meson.build"""
    named = '\n'.join('\n'.join(file.lines) for file in files if file.path.endswith('meson.build'))
    for file in files:
        name = file.path.rsplit('/', 1)[-1]
        if file.suffix in ('.cc', '.c') or name.endswith('_test.py'):
            stem = name.rsplit('.', 1)[0]
            spelt = '|'.join(map(re.escape, (name, stem, stem.removesuffix('_test'))))  # tests are listed without their ending
            if not re.search(rf"['/](?:{spelt})'", named):
                yield Finding(file.path, 0, "no meson.build names it, so nothing builds or runs it; add it, or delete the file")


RULES = (clang_format, layers, yaml_in_config_only, dpdk_free, hot_path, headers_alone, built)
