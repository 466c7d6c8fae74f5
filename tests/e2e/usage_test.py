#!/usr/bin/python3
"""The command line and broken configurations: exit 2, a message that helps, and EAL untouched."""

import re
import sys

import launch
import tap
from launch import QUICKSTART, ROOT, halfpage, nothing_left, scratch

BAD = sorted((ROOT / 'tests' / 'config' / 'bad').glob('*.yaml'))


def expect_refused(ended, *words):
    """Exit code 2, each of `words` on stderr, nothing on stdout, and no sign of EAL."""
    tap.expect(ended.code == 2, 'expected exit code 2', ended)
    for word in words:
        tap.expect(word in ended.err, f'stderr does not say: {word}', ended)
    tap.expect('EAL:' not in ended.err + ended.out, 'EAL was started', ended)
    tap.expect(not ended.out.strip(), 'errors belong on stderr', ended)


def expect_accepted(ended):
    tap.expect(ended.code == 0, 'expected exit code 0', ended)
    tap.expect('EAL:' not in ended.err + ended.out, 'EAL was started', ended)


@tap.subtest('--help prints every option on stdout and exits 0')
def _():
    ended = halfpage('--help')
    expect_accepted(ended)
    for option in ('--config', '--set', '--check', '--print-config', '--duration', '--count', '--seed', '--json',
                   '--stats-period', '--version'):
        tap.expect(option in ended.out, f'{option} is not in it', ended)


@tap.subtest('--version prints name and version on stdout and exits 0')
def _():
    ended = halfpage('--version')
    expect_accepted(ended)
    tap.expect(re.match(r'halfpage \d+\.\d+\.\d+', ended.out), ended)


@tap.subtest('--help after -- works without starting EAL')
def _():
    expect_accepted(halfpage('-l', '0', '--', '--help'))


@tap.subtest('an unknown option is named, with the one that may have been meant')
def _():
    expect_refused(halfpage('--config', QUICKSTART, '--duratoin', '1s'), '--duratoin', '--duration')


@tap.subtest('an unknown option after -- is named too')
def _():
    expect_refused(halfpage('-l', '0', '--no-huge', '--', '--config', QUICKSTART, '--duratoin', '1s'), '--duratoin')


@tap.subtest('an option without its value is named')
def _():
    for option in ('--config', '--duration', '--count', '--json', '--seed', '--set'):
        expect_refused(halfpage(*(['--config', QUICKSTART] if option != '--config' else []), option), option)


@tap.subtest('a value that cannot be read is named with its option')
def _():
    for option, value in (('--duration', 'soon'), ('--count', '12x'), ('--seed', '-1'), ('--stats-period', '1parsec'),
                          ('--set', 'no_equals_sign')):
        expect_refused(halfpage('--config', QUICKSTART, option, value), option, value)


@tap.subtest('a value out of range is named with its option')
def _():
    expect_refused(halfpage('--config', QUICKSTART, '--burst', '1000'), '--burst', '1000', '64')


@tap.subtest('a word that is no option is named')
def _():
    expect_refused(halfpage('--config', QUICKSTART, 'stray'), 'stray')


@tap.subtest('without a configuration the message says how to give one')
def _():
    expect_refused(halfpage(), '--config', '--vdev')


@tap.subtest('a configuration that is not there is named')
def _():
    expect_refused(halfpage('--config', 'conf/missing.yaml', cwd=ROOT), 'conf/missing.yaml')


@tap.subtest('a folder in place of a configuration is an error, not a hang')
def _():
    expect_refused(halfpage('--config', ROOT / 'conf'), str(ROOT / 'conf'))


@tap.subtest('--set of a path that does not exist is named, with --set')
def _():
    expect_refused(halfpage('--config', QUICKSTART, '--set', 'measure.bulkk=8'), '--set', 'measure.bulkk', 'bulk')


@tap.subtest('--check accepts a good configuration without starting EAL')
def _():
    for conf in sorted((ROOT / 'conf').rglob('*.yaml')):
        expect_accepted(halfpage('--config', conf, '--check'))


@tap.subtest('--check behind EAL arguments works too')
def _():
    expect_accepted(halfpage('-l', '0', '--no-pci', '--no-huge', '-m', '512', '--', '--config', QUICKSTART, '--check'))


@tap.subtest('what --print-config prints is a configuration that prints the same')
def _():
    for conf in sorted((ROOT / 'conf').rglob('*.yaml')):
        first = halfpage('--config', conf, '--print-config')
        expect_accepted(first)
        with scratch() as folder:
            file = folder / 'printed.yaml'
            file.write_text(first.out)
            expect_accepted(halfpage('--config', file, '--check'))
            second = halfpage('--config', file, '--print-config')
        expect_accepted(second)
        tap.expect(first.out == second.out, f'{conf.name} changes when printed again', first.out, '--- then', second.out)


@tap.subtest('--print-config shows what options changed')
def _():
    ended = halfpage('--config', QUICKSTART, '--set', 'measure.bulk=8', '--print-config')
    expect_accepted(ended)
    tap.expect(re.search(r'^\s+bulk: 8\b', ended.out, re.MULTILINE), ended)


@tap.subtest('a configuration may come from stdin')
def _():
    text = QUICKSTART.read_text()
    expect_accepted(halfpage('--config', '-', '--check', stdin=text))
    expect_refused(halfpage('--config', '-', '--check', stdin=text.replace('bulk:', 'bulkk:')), 'bulkk', 'bulk')


@tap.subtest('an empty configuration and one of random bytes are refused with a reason')
def _():
    with scratch() as folder:
        for name, data in (('empty', b''), ('bytes', bytes(range(256)) * 8), ('deep', b'[' * 5000), ('tabs', b'a:\n\t- 1\n')):
            file = folder / f'{name}.yaml'
            file.write_bytes(data)
            expect_refused(halfpage('--config', file, '--check'), f'{name}.yaml')


@tap.subtest('there are at least ten broken configurations to refuse')
def _():
    tap.expect(len(BAD) >= 10, f'{len(BAD)} files in tests/config/bad')


def register_bad_configurations():
    for file in BAD:
        name = file.relative_to(ROOT)

        @tap.subtest(f'{name} is refused, by --check and by a run alike, with every word it expects')
        def _(name=name, file=file):
            expected = re.findall(r'^# expect: (.*?)\s*$', file.read_text(errors='replace'), re.MULTILINE)
            tap.expect(expected, f'{name} has no line "# expect: WORDS"')
            with nothing_left():
                checked = halfpage('--config', name, '--check', cwd=ROOT)
                ran = halfpage('--config', name, cwd=ROOT)  # an option could replace the value that is wrong
            expect_refused(checked, *expected)
            expect_refused(ran, *expected)
            tap.expect(checked.err == ran.err, '--check and a run say different things', checked, ran)


register_bad_configurations()

if __name__ == '__main__':
    sys.exit(tap.main())
