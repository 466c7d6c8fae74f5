#!/usr/bin/python3
"""Holds 2 MiB hugepages for as long as something runs, and puts the kernel's number back afterwards.

As a module: `with hugepages.held(256) as note:`. As a command: `hugepages.py COUNT COMMAND [ARGUMENT...]`.

Only root can change the number; for anybody else nothing is changed and the command runs all the same. Several holders at
once each keep what they added: a holder's file in STATE says who it is (process id and start time) and how many pages it
added, and what a killed holder left is put back by the next one to come along. All of it under a lock on the kernel's
own folder, so no lock file can be lost.
"""

import contextlib
import fcntl
import os
import pathlib
import signal
import subprocess
import sys

KERNEL = pathlib.Path('/sys/kernel/mm/hugepages/hugepages-2048kB')
STATE = pathlib.Path('/run/halfpage-hugepages')
STOPPERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def read(name):
    """The kernel's number called `name` (nr_hugepages, free_hugepages, resv_hugepages); 0 where there is none."""
    try:
        return int((KERNEL / name).read_text())
    except OSError:
        return 0


def free():
    """Pages that a program could still get now."""
    return max(0, read('free_hugepages') - read('resv_hugepages'))


def start_time(pid):
    """When process `pid` began, in clock ticks since boot: with the pid it names one process for ever. None: it is gone."""
    try:
        stat = pathlib.Path(f'/proc/{pid}/stat').read_text()
    except OSError:
        return None
    return int(stat.rpartition(')')[2].split()[19])


@contextlib.contextmanager
def _locked():
    folder = os.open(KERNEL, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        STATE.mkdir(mode=0o755, exist_ok=True)
        yield
    finally:
        with contextlib.suppress(OSError):
            STATE.rmdir()  # fails, and should, while others hold pages
        os.close(folder)


def _change(by):
    """Adds `by` pages to the kernel's number and returns how many came (fewer where memory is in pieces)."""
    before = read('nr_hugepages')
    (KERNEL / 'nr_hugepages').write_text(str(max(0, before + by)))
    return read('nr_hugepages') - before


def _take_back(holder):
    _change(-int(holder.read_text()))
    holder.unlink()


def _acquire(count):
    """Makes sure that `count` pages are there for this process. Returns (holder's file, pages added)."""
    with _locked():
        others = 0
        for holder in STATE.iterdir():
            pid, _, began = holder.name.partition('-')
            if start_time(pid) == int(began):
                others += 1
            else:
                _take_back(holder)
        wanted = count if others else max(0, count - free())  # free pages may be what another holder is about to use
        me = STATE / f'{os.getpid()}-{start_time(os.getpid())}'
        me.write_text('0')
        added = _change(wanted) if wanted else 0
        me.write_text(str(added))
        return me, wanted, added


@contextlib.contextmanager
def held(count):
    """Holds `count` pages inside the `with`; its value says in words what was done. SystemExit and kin put them back too."""
    if os.getuid() != 0:
        yield f'{free()} hugepages free; only root can reserve more'
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPERS)  # between taking and remembering nothing may come
    try:
        try:
            holder, wanted, added = _acquire(count)
        except OSError as error:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            yield f'{free()} hugepages free; the kernel lets nobody reserve more here ({error.strerror})'
            return
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            short = '' if added >= wanted else f', {wanted} were asked for: free some memory'
            yield f'{free()} hugepages free, {added} of them reserved until the end{short}'
        finally:
            signal.pthread_sigmask(signal.SIG_BLOCK, STOPPERS)
            with _locked():
                if holder.exists():
                    _take_back(holder)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Stopped(BaseException):
    """A signal asked this process to end; `number` says which."""

    def __init__(self, number):
        super().__init__(f'stopped by {signal.Signals(number).name}')
        self.number = number


def stop_on_signals():
    """From here on SIGINT, SIGTERM and SIGHUP raise Stopped, so that every `finally` is passed on the way out."""

    def stop(number, _):
        for each in STOPPERS:
            signal.signal(each, signal.SIG_IGN)  # what is being put back is put back once
        raise Stopped(number)

    for number in STOPPERS:
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup stays nohup
            signal.signal(number, stop)


def run_and_wait(command, seconds_to_stop=20, **options):
    """subprocess.call(), but when this process is stopped the child is too: SIGTERM, and SIGKILL after a while."""
    child = subprocess.Popen(command, **options)
    try:
        return child.wait()
    except BaseException:
        child.terminate()
        try:
            child.wait(seconds_to_stop)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        raise


def main():
    if len(sys.argv) < 3 or not sys.argv[1].isdigit():
        print('usage: hugepages.py COUNT COMMAND [ARGUMENT...]', file=sys.stderr)
        return 2
    stop_on_signals()
    try:
        with held(int(sys.argv[1])) as note:
            print(f'hugepages: {note}', file=sys.stderr)
            code = run_and_wait(sys.argv[2:])
    except Stopped as stopped:
        return 128 + stopped.number
    return code if code >= 0 else 128 - code


if __name__ == '__main__':
    sys.exit(main())
