# SPDX-License-Identifier: BSD-2-Clause
"""Synthetic results, with or without an effect to find, and noise from a seed."""
import random

SIZES = [2 ** power for power in range(1, 23)]
POWERS = [2 ** power for power in range(0, 11)]
DENSE = list(range(4, 321, 4))


class Planter:
    """A run of experiments whose points have random relative errors."""

    def __init__(self, seed, noise, rounds=0):
        self.random = random.Random(seed)
        self.noise = noise
        self.rounds = rounds
        self.experiments = {}

    def point(self, x, true):
        median = true * max(0.5, self.random.gauss(1, self.noise))
        spread = median * self.noise
        rounds = [true * self.random.gauss(1, self.noise) for _ in range(self.rounds)]
        return {**({'rounds': rounds} if rounds else {}),
                'x': x, 'count': 1000, 'min': median - 2 * spread, 'median': median,
                'mean': median, 'p99': median + 3 * spread, 'p999': median + 4 * spread,
                'max': median + 5 * spread, 'stddev': spread, 'ci_low': median - spread,
                'ci_high': median + spread}

    def plant(self, experiment, name, quantity, axis, places, curve, unit=None):
        units = {'latency': 'us', 'time': 'us', 'bandwidth': 'MB/s', 'rate': 'M/s'}
        better = 'higher' if quantity in ('bandwidth', 'rate') else 'lower'
        series = self.experiments.setdefault(experiment, [])
        series.append({'name': name, 'quantity': quantity, 'unit': unit or units[quantity],
                       'axis': axis, 'axis_unit': 'B' if axis in ('size', 'block') else '',
                       'better': better, 'points': [self.point(x, curve(x)) for x in places]})

    def document(self):
        return {'schema': 'verbena-results/1', 'version': '0', 'date': '2026-01-01T00:00:00Z',
                'command': 'planted', 'interrupted': False, 'machine': {}, 'device': {},
                'experiments': [
                    {'name': name, 'group': 'planted', 'title': '', 'source': '', 'skipped': None,
                     'failed': None, 'settings': {}, 'notes': {}, 'series': series}
                    for name, series in self.experiments.items()]}


def transfer(overhead, bandwidth):
    """Time of a message in us; MB/s are bytes per us."""
    return lambda size: overhead + size / bandwidth


def rate(time):
    return lambda size: size / time(size)


def step(low, high, last):
    """Using more contexts than the cache holds, in cyclic order, misses every time."""
    return lambda count: low if count <= last else high


def slope(low, high, last):
    """Using more than the cache holds, in random order, misses in proportion to what does not fit."""
    return lambda count: low if count <= last else low + (high - low) * (1 - last / count)


def blocking(planter, poll, cost):
    for name, extra in (('poll', 0), ('block', cost)):
        planter.plant('event', name, 'latency', 'size', SIZES, transfer(poll + extra, 900))


def inline(planter, limit, gain, cost):
    """Inline saves the fetch, and costs time per byte to write."""
    sizes = [size for size in SIZES if size <= 1024]
    planter.plant('inline', 'copied', 'latency', 'size', sizes, lambda size: 4 + size / 900)
    planter.plant('inline', 'inline', 'latency', 'size', sizes,
                  lambda size: 4 + size / 900 - gain + gain * size / limit * cost)


def registration(planter, base, page, copy, wire=900):
    planter.plant('registration-cache', 'copy', 'time', 'size', SIZES,
                  lambda size: 4 + size / copy + size / wire)
    planter.plant('registration-cache', 'register', 'time', 'size', SIZES,
                  lambda size: 4 + base + size / 4096 * page + size / wire)
    return base / (1 / copy - page / 4096)


def striping(planter, single, both, cost):
    """The second half costs 'cost' us; returns the size from which on two ports gain more than that."""
    planter.plant('two-port', 'one process binding', 'bandwidth', 'size', SIZES,
                  rate(transfer(3, single)))
    planter.plant('two-port', 'one process striping', 'bandwidth', 'size', SIZES,
                  rate(transfer(3 + cost, both)))
    return cost / (1 / single - 1 / both)


def scattering(planter, per_block, copy, wire=900, total=65536):
    """The adapter pays for each block, the processor for each byte."""
    blocks = [2 ** power for power in range(3, 15)]
    planter.plant('scatter', 'adapter', 'bandwidth', 'block', blocks,
                  lambda block: total / (total / wire + total / block * per_block))
    planter.plant('scatter', 'copy', 'bandwidth', 'block', blocks,
                  lambda block: total / (total / wire + total / copy))
    return per_block * copy


def completion(planter, queue_cost, look_cost):
    """Polling in turn visits half of the queues before it finds a completion."""
    planter.plant('multi-vi', 'completion queue', 'bandwidth', 'connections', POWERS,
                  lambda count: 2048 / (10 + queue_cost))
    planter.plant('multi-vi', 'round robin', 'bandwidth', 'connections', POWERS,
                  lambda count: 2048 / (10 + look_cost * count / 2))
    return 2 * queue_cost / look_cost


def window(planter, experiment, name, axis, quantity, enough, peak):
    planter.plant(experiment, name, quantity, axis, POWERS[:9],
                  lambda count: peak * min(1, 1.03 * count / enough))


def mtus(planter, best, gain):
    for mtu in (256, 512, 1024, 2048):
        planter.plant('mtu', f'mtu {mtu}', 'bandwidth', 'size', SIZES,
                      rate(transfer(3, 800 * (gain if mtu == best else 1))))


def loggp(planter, latency, send, receive, poll, gap, per_byte):
    planter.plant('latency', 'send poll', 'latency', 'size', SIZES,
                  lambda size: latency + size * per_byte)
    for name, time in (('post-send', send), ('post-recv', receive), ('poll-hit', poll)):
        planter.plant(name, name, 'time', 'size', [8, 64], lambda size, time=time: 1000 * time,
                      'ns')
    planter.plant('msg-rate', 'send', 'rate', 'size', [8, 64], lambda size: 1 / gap)
