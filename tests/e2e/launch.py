"""Starts programs the way users do and reads what halfpage prints.

meson hands over by environment: HALFPAGE and PAGE_FRAG_SO (what is tested), SOURCE_ROOT (the clone), SANITIZED (1 for a
build that is several times slower). Without it, as when a script is started by hand, what tools/build made is tested.
"""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from dataclasses import dataclass

import tap

ROOT = pathlib.Path(os.environ.get('SOURCE_ROOT') or pathlib.Path(__file__).resolve().parents[2])
HALFPAGE = pathlib.Path(os.environ.get('HALFPAGE') or ROOT / 'build/app/halfpage')
PAGE_FRAG_SO = pathlib.Path(os.environ.get('PAGE_FRAG_SO') or ROOT / 'build/mempool/librte_mempool_page_frag.so')
SLOWER = 4 if os.environ.get('SANITIZED') == '1' else 1  # factor on every time limit
QUICKSTART = ROOT / 'conf' / 'quickstart.yaml'
VERDICTS = ('drop', 'aborted', 'pass', 'tx', 'redirect')


@dataclass
class Ended:
    """How a program ended. `code` is negative when a signal killed it."""
    code: int
    out: str
    err: str
    seconds: float

    def __str__(self):
        return '\n'.join((f'exit code {self.code} after {self.seconds:.1f} s', '--- stdout', _end(self.out), '--- stderr',
                          _end(self.err)))


def _end(text, lines=25):
    return '\n'.join(text.rstrip().splitlines()[-lines:])


def cpus(count):
    """`count` CPUs that this process may use, the same one again where there are not enough."""
    allowed = sorted(os.sched_getaffinity(0))
    return [allowed[i % len(allowed)] for i in range(count)]


def lcores(count):
    """EAL's argument for `count` lcores on the CPUs that are there."""
    if len(os.sched_getaffinity(0)) >= count:
        return ['-l', ','.join(map(str, cpus(count)))]
    return ['--lcores', ','.join(f'{lcore}@{cpu}' for lcore, cpu in enumerate(cpus(count)))]


_children = []


def _end_with_children(number, _):
    """meson ends a test that takes too long: what it started goes first, for it is in sessions of its own."""
    for child in _children:
        if child.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
    os._exit(128 + number)


signal.signal(signal.SIGTERM, _end_with_children)


def start(command, **options):
    """subprocess.Popen of `command` with both outputs piped as text and nothing on stdin."""
    settings = dict(stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors='replace',
                    start_new_session=True)
    settings.update(options)
    _children.append(subprocess.Popen([str(part) for part in command], **settings))
    return _children[-1]


def finish(child, seconds, began=None, stdin=None):
    """Waits for `child`; one that is still there after `seconds` is killed with all its kin, and the subtest fails."""
    began = began or time.monotonic()
    try:
        out, err = child.communicate(stdin, timeout=seconds * SLOWER)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        out, err = child.communicate()
        raise AssertionError(f'still running after {seconds * SLOWER} s: {child.args}\n'
                             f'{Ended(0, out or "", err or "", seconds * SLOWER)}') from None
    return Ended(child.returncode, out or '', err or '', time.monotonic() - began)


def run(command, seconds=30, stdin=None, **options):
    """Starts `command` and waits for its end. `stdin`: text to send."""
    if stdin is not None:
        options['stdin'] = subprocess.PIPE
    return finish(start(command, **options), seconds, stdin=stdin)


def halfpage(*arguments, **options):
    return run([HALFPAGE, *arguments], **options)


def expect_good(ended, code=0):
    """The promises of every run: exit code, balanced ledger, no page or buffer left, a rate."""
    tap.expect(ended.code == code, f'expected exit code {code}', ended)
    tap.expect('ledger: balanced' in ended.out.splitlines(), 'no line "ledger: balanced"', ended)
    for what in ('pages in flight', 'buffers in use'):
        values = re.findall(rf'^{what}: (\d+)$', ended.out, re.MULTILINE)
        tap.expect(values and set(values) == {'0'}, f'no line "{what}: 0"', ended)
    tap.expect(rate(ended.out) is not None, 'no line "rate: X.XX Mpps"', ended)


def rate(text):
    """Mpps of the final report as printed, a string; None where there is none."""
    found = re.findall(r'^rate: (\d+\.\d\d) Mpps', text, re.MULTILINE)
    return found[-1] if found else None


def verdict_table(text):
    """The last verdict table as {device: {column: number}}."""
    table, columns = {}, None
    for line in text.splitlines():
        words = line.split()
        if 'device' in words and 'redirect' in words:
            table, columns = {}, words
        elif columns and len(words) == len(columns):
            row = dict(zip(columns, words))
            if all(re.fullmatch(r'\d+', row[column]) for column in ('received', *VERDICTS)):
                table[row['device']] = {column: int(row[column]) for column in ('received', *VERDICTS)}
    return table


@contextlib.contextmanager
def scratch(mode=0o755):
    """A folder of one's own, deleted afterwards."""
    with tempfile.TemporaryDirectory(prefix='halfpage-') as folder:
        os.chmod(folder, mode)
        yield pathlib.Path(folder)


def runtime_folder(environment=os.environ, user=None):
    """Where EAL keeps what processes of `user` (default: ours) share: one folder per file prefix."""
    if environment.get('RUNTIME_DIRECTORY'):
        return pathlib.Path(environment['RUNTIME_DIRECTORY']) / 'dpdk'
    if (os.getuid() if user is None else user) == 0:
        return pathlib.Path('/var/run/dpdk')
    return pathlib.Path(environment.get('XDG_RUNTIME_DIR') or '/tmp') / 'dpdk'


def runtime_names(process):
    """Names in the runtime folder that `process` (a Popen) has open or mapped at this moment."""
    folder = os.path.realpath(runtime_folder())
    used = set()
    with contextlib.suppress(OSError):
        proc = pathlib.Path(f'/proc/{process.pid}')
        used.update(re.findall(rf'{re.escape(folder)}/([^/\n]+)/', (proc / 'maps').read_text()))
        for descriptor in (proc / 'fd').iterdir():
            used.update(re.findall(rf'^{re.escape(folder)}/([^/\n]+)/', os.readlink(descriptor)))
    return used


@contextlib.contextmanager
def nothing_left(even_so=False):
    """What is started inside gets a runtime folder of its own, and the subtest fails when something is left in it.

    `even_so`: what is left is cleared away, and that is all.
    """
    before = os.environ.get('RUNTIME_DIRECTORY')
    with scratch(mode=0o700) as folder:
        os.environ['RUNTIME_DIRECTORY'] = str(folder)
        try:
            yield
            expect_empty(folder / 'dpdk', even_so)
        finally:
            if before is None:
                del os.environ['RUNTIME_DIRECTORY']
            else:
                os.environ['RUNTIME_DIRECTORY'] = before


def expect_empty(folder, even_so=False):
    left = sorted(os.listdir(folder)) if folder.is_dir() else []
    tap.expect(even_so or not left, f'left in {folder}: {", ".join(left)}')


def world_writable_above(path):
    """Whether EAL would refuse to load `path` by name: one of its folders is writable for everybody."""
    return any(parent.stat().st_mode & stat.S_IWOTH for parent in pathlib.Path(path).resolve().parents)


def hugepages_free():
    folder = pathlib.Path('/sys/kernel/mm/hugepages/hugepages-2048kB')
    try:
        return int((folder / 'free_hugepages').read_text()) - int((folder / 'resv_hugepages').read_text())
    except OSError:
        return 0


def need_hugepages(count):
    """Skips the subtest where fewer than `count` hugepages of 2 MiB can be had."""
    if hugepages_free() < count:
        raise tap.Skip(f'{hugepages_free()} hugepages of 2 MiB are free, {count} are needed; tools/test as root reserves them')
