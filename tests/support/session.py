"""What tools/test does once the packages are there: build, check, test, count."""

import argparse
import fcntl
import json
import os
import pathlib
import signal
import subprocess
import sys

import hugepages
import results

ROOT = pathlib.Path(__file__).resolve().parents[2]
HUGEPAGES = 256  # 512 MiB: what one run of dpdk-testpmd or dpdk-test is given
FOLDERS = {(): 'build', ('--sanitize', 'address'): 'build-asan', ('--sanitize', 'thread'): 'build-tsan',
           ('--without-llvm',): 'build-interpreted'}  # by what tools/build is told
CHECK = 'tools/check'  # counts as one test


def say(text):
    print(f'test: {text}', file=sys.stderr, flush=True)


def arguments():
    parser = argparse.ArgumentParser(
        prog='tools/test',
        description='Builds everything, runs all tests and tools/check, and closes on "N passed, N failed, N skipped".',
        epilog='Exit code: 0 when something passed and nothing failed, 1 otherwise, 2 for wrong usage. '
        'Single GoogleTest cases: GTEST_FILTER=Config.* tools/test --filter unit. '
        'The report for other programs is build/meson-logs/testlog.junit.xml.')
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument('--sanitize', choices=['address', 'thread'],
                      help='build in build-asan/ (AddressSanitizer and UBSan) or build-tsan/ and test that; stock DPDK '
                      'programs cannot load such a handler, so their tests are left out')
    kind.add_argument('--without-llvm', action='store_true',
                      help='build in build-interpreted/ (-Dbpf_jit=disabled) and test that; cases that compare compiled code with '
                      'the interpreter say that they are skipped')
    parser.add_argument('--filter', metavar='NAME', help='only test programs with NAME in their name or suite')
    parser.add_argument('--list', action='store_true', help='print the names of the test programs and run none')
    return parser.parse_args()


def test_lock():
    """Tests of one clone take turns: two at once would spoil each other's time limits and reports."""
    folder = os.open(ROOT / 'tests', os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        say('another tools/test is at work in this clone; waiting for it')
        fcntl.flock(folder, fcntl.LOCK_EX)
    return folder


def programs(build):
    """Names of the registered test programs, as `suite / name` for reading and `name` for meson."""
    tests = json.loads(subprocess.check_output(['meson', 'introspect', '--tests', str(build)]))
    return {' '.join(suite.split(':', 1)[-1] for suite in test['suite']) + ' / ' + test['name']: test['name']
            for test in tests}


def environment(sanitize):
    """The environment that tests run in: a sanitizer's find ends the program at once, with a code that no program uses."""
    values = dict(os.environ)
    if sanitize == 'address':
        values.setdefault('ASAN_OPTIONS', 'exitcode=86:halt_on_error=1:detect_leaks=1:strict_string_checks=1:'
                          'detect_stack_use_after_return=1')
        values.setdefault('UBSAN_OPTIONS', 'exitcode=86:halt_on_error=1:print_stacktrace=1')
    elif sanitize == 'thread':
        values.setdefault('TSAN_OPTIONS', f"exitcode=86:second_deadlock_stack=1:suppressions={ROOT / 'tests/support/races.supp'}")
    return values


def run_check():
    done = subprocess.run([ROOT / 'tools' / 'check'], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(done.stdout, end='', flush=True)
    if done.returncode == 0:
        return results.Case(CHECK, results.PASSED)
    return results.Case(CHECK, results.FAILED, results.tail(done.stdout))


def run_meson(build, names, sanitize):
    """Runs the test programs. Returns their cases; what they were is in meson-logs/ for as long as nothing else runs."""
    logs = build / 'meson-logs'
    for old in [*build.glob('*.xml'), *logs.glob('testlog*')]:
        old.unlink()  # of a program that crashes now, meson would read the report of the last time
    command = ['meson', 'test', '-C', str(build), '--no-rebuild']
    if sanitize == 'thread':
        command = ['setarch', '-R', *command, '--timeout-multiplier', '4']  # its shadow memory wants fixed addresses
    elif sanitize:
        command += ['--timeout-multiplier', '3']
    with hugepages.held(HUGEPAGES) as note:
        say(note)
        code = hugepages.run_and_wait([*command, *names], env=environment(sanitize), stdin=subprocess.DEVNULL)
    cases = results.read(logs)
    if code != 0 and not any(case.outcome == results.FAILED for case in cases):
        cases.append(results.Case('meson test', results.FAILED, f'exit code {code}; its output is above'))
    return cases


def report(cases):
    for outcome in (results.SKIPPED, results.FAILED):
        for case in cases:
            if case.outcome == outcome:
                first, *rest = case.detail.splitlines() or ['']
                print(f'{outcome}: {case.name}' + (f': {first}' if outcome == results.SKIPPED else ''))
                for line in ([] if outcome == results.SKIPPED else [first, *rest]):
                    print(f'    {line}')
    print(results.summary(cases), flush=True)


def run(options):
    lock = test_lock()
    kind = ('--sanitize', options.sanitize) if options.sanitize else ('--without-llvm',) if options.without_llvm else ()
    build = ROOT / FOLDERS[kind]
    if hugepages.run_and_wait([ROOT / 'tools' / 'build', *kind], stdin=subprocess.DEVNULL) != 0:
        return 1
    known = programs(build)
    chosen = {title: name for title, name in known.items() if (options.filter or '') in title}
    checking = not kind and (options.filter or '') in CHECK
    if options.list:
        print('\n'.join([*chosen, *([CHECK] if checking else [])]))
        return 0
    if not chosen and not checking:
        say(f"no test program has '{options.filter}' in its name; there are: {', '.join([*known, CHECK])}")
        return 2
    cases = [run_check()] if checking else []
    if chosen:
        cases += run_meson(build, list(chosen.values()), options.sanitize)
    report(cases)
    os.close(lock)
    passed = any(case.outcome == results.PASSED for case in cases)
    return 0 if passed and not any(case.outcome == results.FAILED for case in cases) else 1


def main():
    options = arguments()
    hugepages.stop_on_signals()
    try:
        return run(options)
    except hugepages.Stopped as stopped:
        say(str(stopped))
        signal.signal(stopped.number, signal.SIG_DFL)
        os.kill(os.getpid(), stopped.number)
        return 128 + stopped.number


if __name__ == '__main__':
    sys.exit(main())
