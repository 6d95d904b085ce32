# SPDX-License-Identifier: BSD-2-Clause
"""Ethernet links: pause frames, loss, marks, and DCQCN against what is published about it."""
import json
import math
import os
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
    ('ecn.kmax=4KB', 'ecn.kmax is below ecn.kmin'),
    ('ecn.kmax=0B', 'dcqcn.enabled = yes needs ecn.kmax'),
    ('ecn.pmax=1.5', 'ecn.pmax exceeds 1'),
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
    """Where the fluid model of DCQCN rests (SIGCOMM 2015, section 5.1, equations 5 to 9): (probability of a mark,
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
        """(alpha, CNPs of a flow per second, mean queue, smallest Jain's index) of long flows: what three more
        repetitions add to a run, which leaves out how the flows begin."""
        few, more = (run(scratch, 'incast', '--nodes', str(flows), '--sizes', '64K', '--window', str(1600 // flows),
                         '--iterations', str(1600 // flows), '--repetitions', repetitions)
                     for repetitions in ('1', '4'))
        seconds = more.stats['seconds'] - few.stats['seconds']
        [(few_cnps, few_alpha), (cnps, alpha)] = [(done.stats['dcqcn']['cnps'], done.stats['dcqcn']['alpha'])
                                                  for done in (few, more)]
        before, after = (done.ports('from_switch')[0] for done in (few, more))
        added = after['packets'] - before['packets']
        queue = (after['queue_mean'] * after['packets'] - before['queue_mean'] * before['packets']) / added
        return ((alpha * cnps - few_alpha * few_cnps) / (cnps - few_cnps), (cnps - few_cnps) / seconds / flows,
                queue, more.curve("Jain's index")[flows])

    def dcqcn_fixed_point(scratch):
        """Long flows come to rest where the fluid model does: equal rates, its alpha, its CNPs, nearly its queue."""
        for flows in 2, 4:
            mark, expected_alpha, expected_queue = fixed_point(flows)
            expected_cnps = -math.expm1(math.log1p(-mark) * 50e3 * GBPS / flows / PACKET) / 50e-6
            alpha, cnps, queue, jain = steady_state(scratch, flows)
            require(jain > 0.99, f"{flows} flows: Jain's index {jain}")
            require(close(alpha, expected_alpha, 5), f'{flows} flows: alpha {alpha:.4f}, not {expected_alpha:.4f}')
            require(close(cnps, expected_cnps, 10), f'{flows} flows: {cnps:.0f} CNPs per second, not {expected_cnps:.0f}')
            require(close(queue, expected_queue, 30), f'{flows} flows: queue {queue:.0f}, not {expected_queue:.0f}')

    def refused(scratch):
        for settings, expected in REFUSED:
            done = Run(verbena, scratch, ['latency', '--quick'], settings)
            require(done.failed and expected in done.output, f'{settings}: {done.output}')

    return {'pfc-loses-nothing': pfc_loses_nothing, 'pfc-needs-headroom': pfc_needs_headroom,
            'lossy-goes-back': lossy_goes_back, 'dcqcn-keeps-queues-short': dcqcn_keeps_queues_short,
            'dcqcn-fixed-point': dcqcn_fixed_point, 'ethernet-refused': refused}
