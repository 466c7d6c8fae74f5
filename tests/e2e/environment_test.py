#!/usr/bin/python3
"""PAGE_FRAG_* variables reach an unmodified dpdk-testpmd: it forwards every byte with each value, and refuses a bad one."""

import sys

import captures
import launch
import stock
import tap
from stock import NO_HUGE

GOOD = (
    ({'PAGE_FRAG_PAGE_SIZE': '4096'}, 1856),  # two buffers a page
    ({'PAGE_FRAG_PAGE_SIZE': '4096'}, 3648),  # one, without any slack to colour by
    ({'PAGE_FRAG_PAGE_SIZE': '65536'}, 2176),
    ({'PAGE_FRAG_PAGE_SIZE': '131072'}, 9216),
    ({'PAGE_FRAG_PAGE_SIZE': '0'}, 2176),
    ({'PAGE_FRAG_RECYCLE': 'lifo'}, 2176),
    ({'PAGE_FRAG_RECYCLE': 'ring'}, 2176),
    ({'PAGE_FRAG_RECYCLE': 'off'}, 2176),
    ({'PAGE_FRAG_COLOUR': '0'}, 2176),
    ({'PAGE_FRAG_PAGE_SIZE': '4096', 'PAGE_FRAG_RECYCLE': 'ring', 'PAGE_FRAG_COLOUR': '0'}, 1856),
)
# What is wrong, the room it is asked for, and the word that must be in the refusal.
BAD = (
    ({'PAGE_FRAG_PAGE_SIZE': '5000'}, 2176, '5000'),
    ({'PAGE_FRAG_PAGE_SIZE': '262144'}, 2176, '262144'),
    ({'PAGE_FRAG_PAGE_SIZE': '4KiB'}, 2176, 'PAGE_FRAG_PAGE_SIZE'),
    ({'PAGE_FRAG_PAGE_SIZE': '4096'}, 9216, '4096'),
    ({'PAGE_FRAG_RECYCLE': 'fifo'}, 2176, 'PAGE_FRAG_RECYCLE'),
    ({'PAGE_FRAG_COLOUR': 'yes'}, 2176, 'PAGE_FRAG_COLOUR'),
)


def spelt(settings, room):
    return ' '.join(f'{name}={value}' for name, value in settings.items()) + f' and --mbuf-size={room}'


def register():
    for settings, room in GOOD:

        @tap.subtest(f'testpmd with {spelt(settings, room)} hands every byte on')
        def _(settings=settings, room=room):
            frames = captures.made_up([*range(60, 1515, 13)] * 4)
            for port, out in enumerate(stock.forward_frames(NO_HUGE, frames, 'io', f'--mbuf-size={room}', settings=settings)):
                tap.expect(out == frames, f'what left port {port} is not what went in')

    for settings, room, word in BAD:

        @tap.subtest(f'testpmd with {spelt(settings, room)} gets no pool, and a line that says why')
        def _(settings=settings, room=room, word=word):
            ended = stock.testpmd(NO_HUGE, ['net_null0'], [f'--mbuf-size={room}'], 0, settings)
            tap.expect(ended.code > 0, 'it started, or a signal ended it', ended)
            lines = [line for line in (ended.out + ended.err).splitlines() if line.startswith('page_frag: ')]
            tap.expect(any(word in line for line in lines), f'no line of page_frag names {word}', ended)

    @tap.subtest('settings are for page_frag only: another handler takes no notice of a bad one')
    def _():
        load, environment = stock.handler('ring_mp_mc')
        with stock.file_prefix() as prefix:
            ended = launch.run([stock.program('dpdk-testpmd'), *launch.lcores(2), '--no-pci', *NO_HUGE, *prefix, *load, '--vdev',
                                'net_null0', '--', '--auto-start', '--total-num-mbufs=4096'],
                               env={**environment, 'PAGE_FRAG_PAGE_SIZE': '5000'}, stdin='\n', cwd='/')
        tap.expect(ended.code == 0, ended)


register()

if __name__ == '__main__':
    sys.exit(tap.main())
