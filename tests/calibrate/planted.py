# SPDX-License-Identifier: BSD-2-Clause
"""Planted adapters: variants of a known one, and what the suite measures on them, with noise."""
import json
import random
import subprocess

NOISE = 0.02
SPREAD = 1.6  # a planted value differs from START's by up to this factor

# What varies. The factors are drawn in this order, so a seed always plants the same adapter.
TIMES = ['host.post_send', 'host.post_recv', 'host.poll_hit', 'host.poll_empty', 'host.wake_recv',
         'host.reg_mr', 'host.reg_mr_page', 'bus.doorbell_latency', 'bus.write_latency',
         'bus.read_latency', 'hca.wqe_time', 'hca.recv_time', 'hca.sge_time', 'hca.read_response',
         'icm.access_time', 'link.latency', 'fabric.latency']
RATES = ['bus.rate', 'link.rate', 'host.copy_rate']
CACHES = {'icm.qpc_entries': (12, 100), 'icm.mtt_entries': (24, 400)}

UNITS = {'s': 1e9, 'ms': 1e6, 'us': 1e3, 'ns': 1,
         'GB/s': 1, 'MB/s': 1e-3, 'Gbit/s': 0.125, 'Mbit/s': 125e-6}


def number(text):
    """A value of an adapter file in ns, GB/s, or as it is."""
    value, *unit = text.split()
    return float(value) * (UNITS[unit[0]] if unit else 1)


def parameters(path, find):
    """key -> text, of an adapter file and of those it is based on."""
    found = {}
    with open(path, encoding='utf-8') as file:
        for line in file:
            key, equals, value = line.split('#')[0].partition('=')
            if not equals:
                continue
            if key.strip() == 'based-on':
                found = parameters(find(value.strip()), find)
            found[key.strip()] = value.strip()
    return found


def plant(start, values, seed, path):
    """Write the variant of adapter START that belongs to the seed; returns its changed values."""
    chance = random.Random(seed)
    planted = {}
    for key in TIMES + RATES:
        factor = SPREAD ** chance.uniform(-1, 1)
        if key in values and number(values[key]) > 0:
            unit = 'GB/s' if key in RATES else 'ns'
            planted[key] = (number(values[key]) * factor, unit)
    for key, (least, most) in CACHES.items():
        planted[key] = (round(least * (most / least) ** chance.random()), '')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(f'based-on = {start}\ntitle = planted {seed}\n')
        for key, (value, unit) in planted.items():
            file.write(f'{key} = {value:.6f} {unit}\n' if unit else f'{key} = {value}\n')
    return {key: value for key, (value, _) in planted.items()}


def add_noise(source, target, seed):
    """Copy a result file, with noise on every point."""
    chance = random.Random(1000 + seed)
    with open(source, encoding='utf-8') as file:
        document = json.load(file)
    for experiment in document['experiments']:
        for series in experiment['series']:
            for point in series['points']:
                factor = 1 + chance.gauss(0, NOISE)
                for name in ('min', 'median', 'mean', 'p99', 'p999', 'max', 'stddev', 'ci_low', 'ci_high'):
                    point[name] *= factor
    with open(target, 'w', encoding='utf-8') as file:
        json.dump(document, file)


def measure(verbena, adapter, sweep, target, patience):
    """Run a sweep on a modelled adapter."""
    subprocess.run([verbena, 'bench', sweep, '--adapter', adapter, '-o', target], check=True,
                   stdout=subprocess.DEVNULL, timeout=patience)
