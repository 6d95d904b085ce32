# SPDX-License-Identifier: BSD-2-Clause
"""Ethernet links: pause frames, loss, marks, and DCQCN against what is published about it."""
import heapq
import json
import math
import os
import random
import subprocess

ADAPTER = 'roce40'
PATIENCE = 100
GBPS = 5.0  # bytes per ns, of the link
PACKET = 1024 + 82
ACK = 86
PAUSE_FRAME = 84
NO_DCQCN = 'dcqcn.enabled=no;ecn.kmax=0B'
LOSSY = 'pfc.xoff=0B;pfc.xon=0B;pfc.headroom=0B'

# settings, expected message
REFUSED = [
    ('link.layer=infiniband', 'pfc.xoff needs link.layer = ethernet'),
    ('pfc.xon=600KB', 'pfc.xon exceeds pfc.xoff'),
    ('pfc.xoff=1KB;pfc.xon=0B;pfc.headroom=0B', 'pfc.xoff and pfc.headroom hold less than one packet'),
    ('ecn.kmax=4KB', 'ecn.kmax is below ecn.kmin'),
    ('ecn.kmax=0B', 'dcqcn.enabled = yes needs ecn.kmax'),
    ('ecn.pmax=1.5', 'ecn.pmax must be from 0 to 1'),
    ('dcqcn.g=1', 'dcqcn.g is not between 0 and 1'),
    ('dcqcn.timer=0us', 'dcqcn.timer is below 1 ns'),
    (NO_DCQCN + ';' + LOSSY + ';fabric.output_buffer=1KB', 'fabric.output_buffer holds less than one packet'),
]


class Run:
    """One experiment on the model of a RoCE fabric: its results and the statistics of the model."""

    def __init__(self, verbena, scratch, words, settings=None):
        results, stats = os.path.join(scratch, 'results.json'), os.path.join(scratch, 'stats.json')
        done = subprocess.run([verbena, 'bench', *words, '--adapter', ADAPTER, '-o', results,
                               '--stats-file', stats, *(['--set', settings] if settings else [])],
                              text=True, stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=PATIENCE, check=False)
        self.output = done.stdout + done.stderr
        self.failed = done.returncode != 0
        if self.failed:
            return
        with open(results, encoding='utf-8') as file:
            [self.experiment] = json.load(file)['experiments']
        with open(stats, encoding='utf-8') as file:
            self.stats = json.load(file)

    def curve(self, name):
        [series] = [series for series in self.experiment['series'] if series['name'] == name]
        return {point['x']: point['median'] for point in series['points']}

    def ports(self, direction):
        return [adapter['ports'][0][direction] for adapter in self.stats['adapters']]

    def total(self, direction, counter):
        return sum(port[counter] for port in self.ports(direction))

    def sent_again(self):
        return self.stats['transport']['resent']


def fixed_point(flows, kmin=5 * 1024, kmax=200 * 1024, pmax=0.01):
    """Where the fluid model of DCQCN rests (SIGCOMM 2015): (probability of a mark,
    alpha, queue). With all rates C/n, eliminating the target rate from dRT/dt = dRC/dt = 0 leaves
    alpha a^2 = tau^2 RAI RC (b + d)(c + e); its left side grows with p, its right side falls."""
    tau, tau_alpha, timer = 50e3, 55e3, 55e3
    rate, rai, counter, f = GBPS / flows / PACKET, 0.005 / PACKET, (10 << 20) / PACKET, 5

    def excess(p):
        log = math.log1p(-p)
        a, alpha = -math.expm1(log * tau * rate), -math.expm1(log * tau_alpha * rate)
        b, d = p / math.expm1(-log * counter), p / math.expm1(-log * timer * rate)
        c, e = math.exp(log * f * counter) * b, math.exp(log * f * timer * rate) * d
        return alpha * a * a - tau ** 2 * rai * rate * (b + d) * (c + e)

    low, high = 1e-7, 0.05
    for _ in range(100):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if excess(middle) > 0 else (middle, high)
    alpha = -math.expm1(math.log1p(-low) * tau_alpha * rate)
    return low, alpha, kmin + low * (kmax - kmin) / pmax


class Sender:
    """A flow of DCQCN at its sender (SIGCOMM 2015, equations 1 to 4); times in ns, rates in bytes per ns."""

    def __init__(self, rate, now):
        self.rate = self.target = rate
        self.alpha = 0.12
        self.alpha_at = self.timer_at = now
        self.bytes = self.timeouts = self.counts = 0
        self.last_cnp = -math.inf

    def step(self):
        both = min(self.timeouts, self.counts)
        self.target += (both - 5) * 0.05 if both > 5 else 0.005 if max(self.timeouts, self.counts) > 5 else 0
        self.target = min(self.target, GBPS)
        self.rate = (self.target + self.rate) / 2

    def advance(self, now):
        while self.alpha_at <= now:
            self.alpha *= 1 - 1 / 256
            self.alpha_at += 55e3
        while self.timer_at <= now:
            self.timeouts += 1
            self.timer_at += 55e3
            self.step()

    def sent(self):
        self.bytes += PACKET
        if self.bytes >= 10 << 20:
            self.bytes -= 10 << 20
            self.counts += 1
            self.step()

    def cut(self, now):
        self.target, self.rate = self.rate, self.rate * (1 - self.alpha / 2)
        self.alpha += (1 - self.alpha) / 256
        self.alpha_at = self.timer_at = now + 55e3
        self.bytes = self.timeouts = self.counts = 0


def by_packets(flows, milliseconds=500, kmin=5 * 1024, kmax=200 * 1024, pmax=0.01):
    """(alpha, CNPs of a flow per second, mean queue) where the fluid model's equations hold for packets: each is marked
    with the probability that its queue has, so rates jump and the queue moves. The first 100 ms do not count."""
    chance = random.Random(1)
    senders = [Sender(GBPS / flows, chance.random() * 55e3) for _ in range(flows)]
    events = [(chance.random() * 1000, 'send', i) for i in range(flows)]
    queue = then = cnps = alphas = queues = packets = now = 0
    while now < milliseconds * 1e6:
        now, kind, i = heapq.heappop(events)
        sender, counts = senders[i], now > 100e6
        sender.advance(now)
        if kind == 'CNP':
            cnps, alphas = cnps + counts, alphas + counts * sender.alpha
            sender.cut(now)
            continue
        queue, then = max(queue - (now - then) * GBPS, 0), now
        packets, queues = packets + counts, queues + counts * queue
        marked = queue >= kmax or queue > kmin and chance.random() < pmax * (queue - kmin) / (kmax - kmin)
        queue += PACKET
        arrival = now + queue / GBPS + 1250  # the way to the receiver; the CNP takes as long back
        if marked and arrival - sender.last_cnp >= 50e3:
            sender.last_cnp = arrival
            heapq.heappush(events, (arrival + 1250, 'CNP', i))
        sender.sent()
        heapq.heappush(events, (now + PACKET / sender.rate, 'send', i))
    return alphas / cnps, cnps / (milliseconds - 100) * 1e3 / flows, queues / packets


def headroom_needed():
    """Bytes that arrive after the threshold is passed: until the pause frame has been sent, behind an
    acknowledgement, has arrived and is obeyed, what was sent meanwhile is on the way through link and switch, and a
    packet that had begun ends."""
    ns = (ACK + PAUSE_FRAME) / GBPS + 500 + 768 + 500 + 500
    return ns * GBPS + 2 * PACKET


def tests(verbena, require, close):
    """{name: test}"""
    def run(scratch, *words, settings=None):
        done = Run(verbena, scratch, words, settings)
        require(not done.failed, done.output[-1500:])
        return done

    def incast(scratch, settings, *words):
        return run(scratch, 'incast', '--nodes', '4', '--sizes', '64K', '--iterations', '200',
                   '--window', '16', '--repetitions', '1', *words, settings=settings)

    payload_rate = GBPS * 1000 * 1024 / PACKET

    def pfc_loses_nothing(scratch):
        done = incast(scratch, NO_DCQCN)
        total = done.curve('total')[4]
        require(close(total, payload_rate, 1), f'{total} MB/s, not {payload_rate:.0f}')
        require(done.total('to_switch', 'pauses') > 0, 'no pause frame')
        require(done.total('to_switch', 'dropped') == 0 and done.sent_again() == 0, done.output)
        most = done.ports('from_switch')[0]['queue_max']
        bound = 4 * (512 * 1024 + headroom_needed())
        require(3 * 512 * 1024 < most <= bound, f'a queue of {most} bytes, at most {bound:.0f} expected')

    def pfc_needs_headroom(scratch):
        """What arrives after the threshold is at most what follows from the link; without headroom it is lost."""
        enough = incast(scratch, f'{NO_DCQCN};pfc.headroom={math.ceil(headroom_needed())}B')
        used = max(port['buffer_max'] for port in enough.ports('to_switch')) - 512 * 1024
        require(enough.total('to_switch', 'dropped') == 0, 'loss in spite of the headroom')
        require(headroom_needed() / 2 < used <= headroom_needed(),
                f'{used} bytes of headroom used, at most {headroom_needed():.0f} needed')
        none = incast(scratch, f'{NO_DCQCN};pfc.headroom=0B', '--verify')
        require(none.total('to_switch', 'dropped') > 0 and none.sent_again() > 0, 'no loss without headroom')

    def lossy_goes_back(scratch):
        """Without PFC a switch drops; RC goes back and every byte arrives."""
        done = incast(scratch, f'{NO_DCQCN};{LOSSY};fabric.output_buffer=64KB', '--verify')
        require(done.total('from_switch', 'dropped') > 0 and done.sent_again() > 0, 'nothing was lost')
        require(done.ports('from_switch')[0]['queue_max'] <= 64 * 1024, 'a longer queue than allowed')
        require(done.total('to_switch', 'pauses') == 0, 'pause frames without PFC')

    def dcqcn_keeps_queues_short(scratch):
        without, with_it = incast(scratch, NO_DCQCN), incast(scratch, None)
        require(with_it.stats['dcqcn']['cnps'] > 0, 'no CNP')
        before, after = (done.ports('from_switch')[0]['queue_mean'] for done in (without, with_it))
        require(after < before / 2, f'mean queue {before} bytes without, {after} with DCQCN')

    def steady_state(scratch, flows):
        """(alpha, CNPs of a flow per second, mean queue, Jain's index) of long flows: what a run has more than one of a
        quarter of its length, which leaves out how the flows begin, and how they end one by one."""
        few, more = (run(scratch, 'incast', '--nodes', str(flows), '--sizes', '64K', '--window', str(messages // flows),
                         '--iterations', str(messages // flows), '--repetitions', '1')
                     for messages in (1600, 6400))
        seconds = more.stats['seconds'] - few.stats['seconds']
        [(few_cnps, few_alpha), (cnps, alpha)] = [(done.stats['dcqcn']['cnps'], done.stats['dcqcn']['alpha'])
                                                  for done in (few, more)]
        before, after = (done.ports('from_switch')[0] for done in (few, more))
        added = after['packets'] - before['packets']
        queue = (after['queue_mean'] * after['packets'] - before['queue_mean'] * before['packets']) / added
        return ((alpha * cnps - few_alpha * few_cnps) / (cnps - few_cnps), (cnps - few_cnps) / seconds / flows,
                queue, more.curve("Jain's index")[flows])

    def agree(what, state, expected, percent):
        for name, seen, wanted, limit in zip(('alpha', 'CNPs per second', 'queue'), state, expected, percent):
            require(close(seen, wanted, limit), f'{what}: {name} {seen:.5g}, not {wanted:.5g}')

    def dcqcn_fixed_point(scratch):
        """Long flows share the link, and are where the equations of DCQCN lead if packets are marked at random. With two
        flows, whose queue stays far below Kmax, that is near the fixed point of the fluid model."""
        mark, alpha, queue = fixed_point(2)
        cnps = -math.expm1(math.log1p(-mark) * 50e3 * GBPS / 2 / PACKET) / 50e-6
        agree('packets, 2 flows', by_packets(2), (alpha, cnps, queue), (5, 15, 30))
        for flows in 2, 4, 8:
            *state, jain = steady_state(scratch, flows)
            require(jain > 0.99, f"{flows} flows: Jain's index {jain}")
            agree(f'{flows} flows', state, by_packets(flows), (5, 10, 20))

    def dcqcn_shares(scratch):
        """A flow that begins late gets its share: C/n each, over the last quarter of the run."""
        done = run(scratch, 'fairness', '--nodes', '2', '--iterations', '2000')
        for flow in 'flow 1', 'flow 2':
            last = sorted(done.curve(flow).items())[-5:]
            rate = sum(value for _, value in last) / len(last)
            require(close(rate, payload_rate / 2, 10), f'{flow}: {rate:.0f} MB/s of {payload_rate:.0f}')

    def pfc_blocks_a_victim(scratch):
        """Two others and the source share the busy node. With PFC the source is paused as a whole, and its flow to the
        free node gets no more than a third, too; DCQCN leaves it the rest of the source's link."""
        words = ['victim', '--nodes', '2', '--iterations', '200', '--repetitions', '1']
        paused, controlled = (run(scratch, *words, settings=settings).curve('to the free node')[2]
                              for settings in (NO_DCQCN, None))
        require(close(paused, payload_rate / 3, 5), f'{paused} MB/s beside pauses')
        require(controlled > 0.95 * payload_rate * 2 / 3, f'{controlled} MB/s with DCQCN')

    def refused(scratch):
        for settings, expected in REFUSED:
            done = Run(verbena, scratch, ['latency', '--quick'], settings)
            require(done.failed and expected in done.output, f'{settings}: {done.output}')

    return {'pfc-loses-nothing': pfc_loses_nothing, 'pfc-needs-headroom': pfc_needs_headroom,
            'lossy-goes-back': lossy_goes_back, 'dcqcn-keeps-queues-short': dcqcn_keeps_queues_short,
            'dcqcn-fixed-point': dcqcn_fixed_point, 'dcqcn-shares': dcqcn_shares,
            'pfc-blocks-a-victim': pfc_blocks_a_victim, 'ethernet-refused': refused}
