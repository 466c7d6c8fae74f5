#!/usr/bin/python3
"""What `meson install` puts where, and that programs built from that alone with gcc, g++ and pkg-config run."""

import contextlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import launch
import tap

BUILD = pathlib.Path(os.environ.get('BUILD_ROOT') or launch.ROOT / 'build')
EXAMPLES = launch.ROOT / 'mempool' / 'examples'
SO = 'librte_mempool_page_frag.so'
COMPILER = 'libhalfpage_bpf_llvm.so'
NO_HUGE = ['--no-huge', '--no-shconf', '--no-telemetry', '--no-pci', '-m', '128']
HEADERS = ('page_frag.h', 'page_frag_settings.h', 'pktmbuf_pool.h')


class Installed:
    """The tree below a DESTDIR: `prefix` is where <prefix> of the configured build lies in it."""

    def __init__(self, folder):
        self.folder = folder
        library, = folder.rglob('librte_mempool_page_frag_static.a')
        self.libdir = library.parent
        self.prefix = next(parent for parent in library.parents if (parent / 'include').is_dir())

    def flags(self, package):
        """What pkg-config says with the tree's files in front of the system's."""
        done = subprocess.run(['pkg-config', '--cflags', '--libs', package], capture_output=True, text=True,
                              env={**os.environ, 'PKG_CONFIG_PATH': str(self.libdir / 'pkgconfig')})
        tap.expect(done.returncode == 0, done.stderr)
        return done.stdout.split()

    def compiled(self, source, package):
        """Path of the program that `source` becomes with the flags of `package`."""
        made = self.folder / f'{source.stem}-{package}'
        compiler = ['gcc'] if source.suffix == '.c' else ['g++', '-std=c++17']
        ended = launch.run([*compiler, '-Wall', '-Werror', source, '-o', made, *self.flags(package)], seconds=120)
        tap.expect(ended.code == 0, f'{source.name} does not compile with {package}', ended)
        return made

    def run(self, program, *eal):
        path = ':'.join(filter(None, [str(self.libdir), os.environ.get('LD_LIBRARY_PATH')]))
        return launch.run([program, *launch.lcores(1), *NO_HUGE, *eal], env={**os.environ, 'LD_LIBRARY_PATH': path}, cwd='/')


def needed(program):
    """Names of the shared libraries that `program` itself asks for."""
    return re.findall(r'NEEDED\s+(\S+)', subprocess.check_output(['objdump', '-p', program], text=True))


@contextlib.contextmanager
def installed():
    """An install of the build, in the build's own folder: EAL trusts no library below /tmp."""
    with tempfile.TemporaryDirectory(prefix='installed-', dir=BUILD) as folder:
        os.chmod(folder, 0o755)
        ended = launch.run(['meson', 'install', '-C', BUILD, '--no-rebuild', '--quiet', '--destdir', folder], seconds=60)
        tap.expect(ended.code == 0, ended)
        yield Installed(pathlib.Path(folder))


def need_trusted(path):
    if launch.world_writable_above(path):
        raise tap.Skip(f'EAL loads nothing by path from below a folder that everybody may write to: {path}')


def expect_plugin_works(ended):
    tap.expect(ended.code == 0, ended)
    tap.expect(ended.out.splitlines() == ['handler: page_frag', 'packets: 32000', 'in use: 0'], ended)


def expect_linked_works(ended):
    tap.expect(ended.code == 0, ended)
    tap.expect(ended.out.splitlines() == ['buffers: 32 on 16 pages of 4096 bytes', 'pages in flight: 0'], ended)


@tap.subtest('an install holds program, plug-in where EAL looks, static library, headers and pkg-config files, and no more')
def _():
    with installed() as tree:
        there = {str(path.relative_to(tree.prefix)) for path in tree.prefix.rglob('*') if not path.is_dir()}
        libdir = tree.libdir.relative_to(tree.prefix)
        wanted = {'bin/halfpage', 'share/man/man1/halfpage.1',
                  f'{libdir}/{SO}', f'{libdir}/librte_mempool_page_frag_static.a',
                  f'{libdir}/pkgconfig/halfpage-page-frag.pc', f'{libdir}/pkgconfig/halfpage-page-frag-static.pc',
                  *(f'include/halfpage/mempool/{header}' for header in HEADERS)}
        if (BUILD / 'xdp_emul' / 'bpf' / COMPILER).exists():  # not in a build without LLVM
            wanted.add(f'{libdir}/halfpage/{COMPILER}')
        tap.expect(wanted <= there, f'missing: {", ".join(sorted(wanted - there))}')
        links = there - wanted
        tap.expect(len(links) == 1 and re.fullmatch(rf'{libdir}/dpdk/pmds-[\d.]+/{SO}', *links), f'besides: {sorted(links)}')
        link = tree.prefix / links.pop()
        tap.expect(link.resolve() == (tree.libdir / SO).resolve(), f'{link} leads to {link.resolve()}')
        drivers = [path.name for path in pathlib.Path('/usr/lib').glob('*/dpdk/pmds-*')]
        tap.expect(link.parent.name in drivers, f'{link.parent.name} is not what DPDK calls its own folder: {drivers}')


@tap.subtest('the plug-in example, compiled with gcc and nothing of ours, uses page_frag by -d LIBRARY')
def _():
    with installed() as tree:
        need_trusted(tree.libdir)
        expect_plugin_works(tree.run(tree.compiled(EXAMPLES / 'plugin.c', 'libdpdk'), '-d', tree.libdir / SO))


@tap.subtest('the plug-in example uses page_frag by -d LIBRARY without a path, found through LD_LIBRARY_PATH')
def _():
    with installed() as tree:
        expect_plugin_works(tree.run(tree.compiled(EXAMPLES / 'plugin.c', 'libdpdk'), '-d', SO))


@tap.subtest('the plug-in example uses page_frag by -d FOLDER, the folder of drivers that was installed')
def _():
    with installed() as tree:
        need_trusted(tree.libdir)
        folder, = {link.parent for link in tree.prefix.rglob(SO) if link.is_symlink()}
        expect_plugin_works(tree.run(tree.compiled(EXAMPLES / 'plugin.c', 'libdpdk'), '-d', folder))


@tap.subtest('the plug-in example without the plug-in gets no pool and says what to load')
def _():
    with installed() as tree:
        ended = tree.run(tree.compiled(EXAMPLES / 'plugin.c', 'libdpdk'))
        tap.expect(ended.code == 1 and f'-d {SO}' in ended.err, ended)


@tap.subtest('a program linked with halfpage-page-frag keeps the library though it names nothing of it, and needs no -d')
def _():
    with installed() as tree:
        program = tree.compiled(EXAMPLES / 'plugin.c', 'halfpage-page-frag')
        tap.expect(SO in needed(program), f'the linker dropped {SO}')
        expect_plugin_works(tree.run(program))


@tap.subtest('the linked example works with halfpage-page-frag-static, and the shared library is not in it')
def _():
    with installed() as tree:
        program = tree.compiled(EXAMPLES / 'linked.cc', 'halfpage-page-frag-static')
        (tree.libdir / SO).unlink()
        tap.expect(SO not in needed(program), f'it needs {SO}')
        expect_linked_works(tree.run(program))


@tap.subtest('the linked example works with halfpage-page-frag, and once more with -d of the same library')
def _():
    with installed() as tree:
        program = tree.compiled(EXAMPLES / 'linked.cc', 'halfpage-page-frag')
        tap.expect(SO in needed(program), f'it does not need {SO}')
        expect_linked_works(tree.run(program))
        expect_linked_works(tree.run(program, '-d', SO))


@tap.subtest('the static library without the call is no handler: the linker leaves its constructor out')
def _():
    with installed() as tree:
        ended = tree.run(tree.compiled(EXAMPLES / 'plugin.c', 'halfpage-page-frag-static'))
        tap.expect(ended.code == 1 and 'no pool' in ended.err, ended)


@tap.subtest('each installed header compiles by itself')
def _():
    with installed() as tree:
        for header in HEADERS:
            ended = launch.run(['g++', '-std=c++17', '-Wall', '-Werror', '-fsyntax-only', *tree.flags('halfpage-page-frag'),
                                '-x', 'c++', '-'], stdin=f'#include "mempool/{header}"\n')
            tap.expect(ended.code == 0, ended)


@tap.subtest('the installed program runs without the build that it came from')
def _():
    with installed() as tree:
        path = ':'.join(filter(None, [str(tree.libdir), os.environ.get('LD_LIBRARY_PATH')]))
        ended = launch.run([tree.prefix / 'bin' / 'halfpage', '--config', launch.QUICKSTART, '--duration', '200ms'], cwd='/',
                           env={**os.environ, 'LD_LIBRARY_PATH': path})
        launch.expect_good(ended)


if __name__ == '__main__':
    sys.exit(tap.main())
