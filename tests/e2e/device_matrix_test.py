#!/usr/bin/python3
"""Every verdict x copy policy x frame size through a run: all of it balances, and nothing is left in flight.

FRAMES=100000 for so many judged by each policy and verdict, all sizes mixed.
"""

import json
import os
import sys

import launch
import tap

FRAMES = int(os.environ.get('FRAMES', '600' if os.environ.get('SANITIZED') == '1' else '3000'))
SIZES = [64, 65, 300, 1472, 1473, 1514, 3520, 3521, 9014, 36350, 65535]
VERDICTS = {'pass': 'kind: pass', 'drop': 'kind: drop', 'aborted': 'kind: aborted', 'tx': 'kind: tx',
            'redirect': 'kind: redirect, target: out0', 'adjust': 'kind: adjust, push: 16, grow: 16, metadata: 8'}
POLICIES = {'stock': 'pools: [packets]', 'classes': 'pools: [packets, short]', 'whole': 'page_size: 4KiB',
            'half': 'page_size: 4KiB', 'fixed': 'size: 700', 'exact': 'recycle: ring', 'kernel': 'recycle: "off"'}


def configuration(policy, mode):
    ends = ''.join(f'''
  - name: {verdict}
    mode: {mode}
    ring: 64
    ends:
      - name: {verdict}0
        program: {verdict}
        mtu: 65535
        copy: {{when: always, policy: {policy}, {POLICIES[policy]}}}
      - {{name: {verdict}1, mtu: 65535, gro: true}}''' for verdict in VERDICTS)
    programs = ''.join(f'\n  - {{name: {verdict}, frags: true, {what}}}' for verdict, what in VERDICTS.items())
    traffic = ''.join(f'''
  - {{name: {verdict}, into: {verdict}1, pool: packets, count: {FRAMES}, sizes: {SIZES}}}''' for verdict in VERDICTS)
    return f'''version: 1
eal: {{preset: lab, memory: 1GiB}}
pools:
  - {{name: packets, data_room: 16KiB, size: 12288, cache: 64}}
  - {{name: short, data_room: 512, size: 4096, cache: 64}}
programs: {programs}
veth: {ends}
  - {{name: out, mode: {mode}, ring: 64, ends: [{{name: out0, mtu: 65535}}, {{name: out1, mtu: 65535, gro: true}}]}}
traffic: {traffic}
'''


def expect_sums(report):
    """What the rules say of each device, from counters of different hands."""
    devices = {device['name']: device for device in report['devices']}
    for verdict in VERDICTS:
        device = devices[f'{verdict}0']
        refused = sum(device['refused'].values())
        stats = device['xstats']
        copied = device['copies']['buffers_copied']
        judged = sum(device['verdicts'].values())
        tap.expect(judged >= FRAMES, f'{verdict}0 judged {judged} of {FRAMES} frames, refused {device["refused"]}')
        tap.expect(sum(copied.values()) >= device['received'] - refused, f'{verdict}0: fewer copies than frames: {copied}')
        tap.expect(stats['rx_queue_0_xdp_packets'] == device['received'], f'{verdict}0: {stats}')
        tap.expect(judged + refused == device['received'], f'{verdict}0: {device}')
    tx, redirect = devices['tx0']['xstats'], devices['redirect0']['xstats']
    tap.expect(tx['rx_queue_0_xdp_tx'] + tx['rx_queue_0_xdp_tx_errors'] == devices['tx0']['verdicts']['tx'], f'{tx}')
    xmit = devices['out0']['xstats']
    tap.expect(xmit['tx_queue_0_xdp_xmit'] + xmit['tx_queue_0_xdp_xmit_errors'] == redirect['rx_queue_0_xdp_redirect'],
               f'{xmit}', f'{redirect}')
    tap.expect(xmit['tx_queue_0_xdp_xmit'] == devices['out1']['received'], f'{xmit}')
    if devices['adjust0']['verdicts']['pass'] == 0:
        tap.expect(False, f'nothing was adjusted: {devices["adjust0"]}')


def register(policy, mode):
    @tap.subtest(f'copies of policy {policy}, mode {mode}: every verdict and frame size balances')
    def _():
        with launch.scratch() as folder, launch.nothing_left():
            (folder / 'matrix.yaml').write_text(configuration(policy, mode))
            ended = launch.halfpage('--config', folder / 'matrix.yaml', '--json', folder / 'report.json', cwd=folder)
            launch.expect_good(ended)
            expect_sums(json.loads((folder / 'report.json').read_text()))


for one in POLICIES:
    # In mode kernel sizes below a page would not admit 65535 bytes.
    for whose in ('halfpage', 'kernel') if one in ('kernel', 'exact') else ('halfpage',):
        register(one, whose)

sys.exit(tap.main())
