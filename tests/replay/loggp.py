# SPDX-License-Identifier: BSD-2-Clause
"""Schedules without contention against the formula of LogGP: each step of them takes o_s + L + o_r + size G, long
messages twice o_s + L + o_r more, for RTS and CTS. This is the formula, not the program LogGOPSim."""
import json
import os
import tempfile

# LogGP knows no caches: every context and translation fits.
SETTINGS = 'icm.qpc_entries=0;icm.mtt_entries=0'
SIZES = [8, 64, 4096, 65536, 1 << 20]
MPI = ['mpi-latency', '--sizes', '8..1M', '--iterations', '10', '--warmup', '2', '--repetitions', '1']
MEASURE = ['latency', 'post-send', 'post-recv', 'poll-hit', 'msg-rate', '--ops', 'send', '--wait', 'poll', '--sizes',
           '8,64K,256K,1M', '--iterations', '10', '--warmup', '2', '--repetitions', '1']
LIBRARY_NS = 50 + 50  # mpi.send and mpi.receive of hdr100
PERCENT = 5
LONG = 1 << 20


def chain(operations):
    """Each requires the one before it."""
    return '\n'.join(f'o{i}: {operation}' + (f'\no{i} requires o{i - 1}' if i else '')
                     for i, operation in enumerate(operations))


def pingpong(size, rounds=10):
    return 2 * rounds, [chain([f'send {size}b to 1', f'recv {size}b from 1'] * rounds),
                        chain([f'recv {size}b from 0', f'send {size}b to 0'] * rounds)]


def ring(size, count=8, rounds=4):
    """A token goes around."""
    first = [f'send {size}b to 1', f'recv {size}b from {count - 1}']
    return count * rounds, [chain((first if not i else [f'recv {size}b from {i - 1}', f'send {size}b to {(i + 1) % count}'])
                                  * rounds) for i in range(count)]


def binomial(size, levels=4):
    """A broadcast."""
    operations = [[] for _ in range(1 << levels)]
    for level in range(levels):
        for i in range(1 << level):
            operations[i].append(f'send {size}b to {i + (1 << level)}')
            operations[i + (1 << level)].append(f'recv {size}b from {i}')
    return levels, [chain(own) for own in operations]


def dissemination(size, levels=3, rounds=4):
    def rank(number):
        lines, count = [], 1 << levels
        for step in range(levels * rounds):
            distance = 1 << step % levels
            lines += [f'r{step}: recv {size}b from {(number - distance) % count} tag {step}',
                      f's{step}: send {size}b to {(number + distance) % count} tag {step}']
            lines += [f'{new}{step} requires {old}{step - 1}' for new in 'rs' for old in 'rs' if step]
        return '\n'.join(lines)
    return levels * rounds, [rank(i) for i in range(1 << levels)]


def step_of(found, size):
    """What the formula says for a message of this size, in ns: that of its regime."""
    regime = next(i for i in range(1, 5) if size <= found[f'to_{i}']['value'])
    return found[f'step_{regime}']['value'] * 1000 + size * found[f'G_{regime}']['value']


def tests(verbena, replay, ranks, check, mpi_built):
    def per_step(schedule, size):
        steps, operations = schedule(size)
        return json.loads(replay(ranks(*operations), '--json', '--set', SETTINGS))['total_ns'] / steps

    def advised(name, words):
        """What advise finds in measurements on hdr100."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'results.json')
            verbena('bench', *words, '--adapter', 'hdr100', '--set', SETTINGS, '-o', path)
            advice = json.loads(verbena('advise', path, '--json'))
        return next(row for row in advice if row['name'] == name)['found']

    def schedules():
        """With the parameters of a ping-pong, every other schedule takes what the formula says."""
        for size in 8, 4096, 65536, LONG:
            step = per_step(pingpong, size)
            for schedule in ring, binomial, dissemination:
                off = 100 * (per_step(schedule, size) / step - 1)
                check(abs(off) < PERCENT, f'{schedule.__name__}, {size} bytes: {off:+.1f}%')

    def advice():
        """With the parameters that advise finds on the adapter, long messages take what the formula says."""
        found = advised('loggp', MEASURE)
        short = sum(found[name]['value'] for name in ('L', 'o_s', 'o_r')) * 1000
        expected = 3 * short + LONG * found['G']['value'] + LIBRARY_NS
        for schedule in pingpong, ring, binomial, dissemination:
            off = 100 * (per_step(schedule, LONG) / expected - 1)
            check(abs(off) < PERCENT, f'{schedule.__name__}: {off:+.1f}% off {expected:.0f} ns')

    def mpi():
        """With the parameters that advise finds for MPI messages, those of any size do."""
        if not mpi_built:
            return 'built without MPI'
        found = advised('loggp-mpi', MPI)
        for size in SIZES:
            for schedule in pingpong, ring, binomial, dissemination:
                off = 100 * (per_step(schedule, size) / step_of(found, size) - 1)
                check(abs(off) < PERCENT, f'{schedule.__name__}, {size} bytes: {off:+.1f}% off {step_of(found, size):.0f} ns')
        return None

    return {'loggp-schedules': schedules, 'loggp-advice': advice, 'loggp-mpi': mpi}
