# SPDX-License-Identifier: BSD-2-Clause
"""Adapter files made up here, each with an effect that follows from its parameters: the suite measures
them in virtual time, and "verbena advise" must find the effect."""
from collections import namedtuple

PAGE = 4096
MTU, HEADER = 1024, 26
PORTS = 2

# adapter file, experiments, and {(adviser, what it finds): what was planted}
Unseen = namedtuple('Unseen', 'name lines words wanted')


def cache(contexts):
    """Messages use all queues in turn: with one more than fit, every context must be fetched."""
    return Unseen(f'cache of {contexts}',
                  ['based-on = mt25218-mem', f'icm.qpc_entries = {contexts}'],
                  'icm-qp --iterations 3 --warmup 1',
                  {('qps-before-spill', 'fits'): contexts})


def registration(call, page, copy):
    """In us and MB/s. All translations are cached, so that only these calls differ."""
    drop_call, drop_page = call / 2, page / 4
    break_even = (call + drop_call) / (1 / copy - (page + drop_page) / PAGE)
    return Unseen(f'registration {call:g} us',
                  ['based-on = mt25208', 'icm.mtt_entries = 0',
                   f'host.reg_mr = {call} us', f'host.reg_mr_page = {page} us',
                   f'host.dereg_mr = {drop_call} us',
                   f'host.dereg_mr_page = {drop_page} us', f'host.copy_rate = {copy} MB/s'],
                  'registration-cache mr-reg mr-dereg --iterations 3 --warmup 1 --sizes 4K..1M',
                  {('copy-or-register', 'break_even'): break_even,
                   ('registration-cost', 'register_call'): call,
                   ('registration-cost', 'register_page'): page,
                   ('registration-cost', 'deregister_call'): drop_call,
                   ('registration-cost', 'deregister_page'): drop_page})


def blocking(wake):
    return Unseen(f'waking {wake} us', ['based-on = mt25208', f'host.wake_recv = {wake} us'],
                  'event --iterations 3 --warmup 1 --sizes 4,8,16',
                  {('poll-or-block', 'blocking_cost'): wake})


def striping(post, poll):
    """In us. Each half needs a write, the send that announces it, and a completion. Two ports start to win
    where this takes the processor as long as one port needs for the whole message."""
    processor = PORTS * (2 * post + poll)
    return Unseen(f'posting {post} us',
                  ['based-on = mt25208', f'host.post_send = {post} us', f'host.poll_hit = {poll} us',
                   'hca.drain = no', 'hca.wait_for_ack = no'],
                  'two-port --stripe 0 --sizes 2K..128K --iterations 128 --repetitions 1',
                  {('striping-threshold', 'threshold'): processor * 1000 * MTU / (MTU + HEADER)})


UNSEEN = [cache(32), cache(96), cache(200), registration(12, 0.3, 1000), registration(70, 0.8, 2500),
          blocking(5), blocking(40), striping(3, 0.35), striping(9, 0.5)]
