# SPDX-License-Identifier: BSD-2-Clause
"""Shapes of fabrics: what can be counted or computed by hand."""
import csv
import json
import os
import tempfile

LOOP = 'switch a\nswitch b\nswitch c\nswitch d\nswitch e\n' + ''.join(
    f'cable {x} {y}\n' for x, y in ('ab', 'bc', 'cd', 'de', 'ea')) + ''.join(f'host {i} {"abcde"[i]}\n' for i in range(5))

# shape, nodes; node: links between switches from node 0 to it
HOPS = [
    ('single', 8, {7: 0}),
    ('fat-tree:2/8', 16, {3: 0, 4: 2, 15: 2}),
    ('fat-tree:3/4', 16, {1: 0, 3: 2, 15: 4}),
    ('torus:5x4', 20, {2: 2, 4: 1, 10: 2, 13: 4}),
    ('torus:2x2x2', 8, {7: 3}),
    ('dragonfly:2/4/2', 72, {1: 0, 7: 1}),
]
ACK_BYTES = 30
TIGHT = 'link.receive_buffer=5KB'

# file, what the message must contain
BAD_FILES = [
    ('switch a\nswitch a\n', ':2: there is a switch a already'),
    ('switch a\ncable a b\n', ':2: there is no switch b above this line'),
    ('switch a\ncable a a\n', ':2: both ends'),
    ('switch a\n\n# b\nhosts 0 a\n', ":4: 'hosts' is none of switch, cable, host"),
    ('switch a\nhost 0\n', ':2: expected: host NODE[.PORT] SWITCH'),
    ('switch a\nhost -1 a\n', ":2: '-1' is no node"),
    ('switch a\nhost 0.0 a\n', ':2: '),
    ('switch a\nhost 0 a\nhost 0.1 a\n', ':3: port 1 of node 0 is on a already'),
    ('switch a"b\n', ':1: a name has'),
    ('switch a\nswitch b\nhost 0 a\nhost 1 b\n', ': no cable leads from a to b'),
    ('switch a\nhost 0 a\n', 'port 1 of node 1 is on no switch'),
    ('# nothing\n', ': no switch'),
]
BAD_SHAPES = [
    ('mesh', "'mesh' is none of single"), ('fat-tree:1/8', 'levels are 2 to 4'), ('fat-tree:2/7', 'cannot be divided 1:1'),
    ('fat-tree:3/9/2:1', '9 is odd'), ('fat-tree:2/8/x', 'oversubscription'), ('torus:4x', 'expected one to 5 sizes'),
    ('torus:4/0', 'adapter ports of a switch'), ('torus:300x300', '90000 switches'), ('dragonfly:2/4', 'expected hosts'),
    ('dragonfly:2/4/2/10', 'connect 2 to 9 groups'), ('./nowhere.shape', 'No such file'), ('single:0', 'single:RADIX'),
]


def tests(verbena, replay, ranks, check):
    def links(schedule, *words):
        """(from, to): row, of the links between switches."""
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, 'links.csv')
            replay(schedule, '--links', path, *words)
            with open(path, encoding='utf-8') as file:
                return {(row['from'], row['to']): row for row in csv.DictReader(file)
                        if not (row['from'] + row['to']).count('node')}

    def total(schedule, *words):
        return json.loads(replay(schedule, '--json', *words))['total_ns']

    def written(text):
        file = tempfile.NamedTemporaryFile('w', suffix='.shape')
        file.write(text)
        file.flush()
        return file

    def hops():
        """A message passes as many links as the shape says."""
        for shape, nodes, expected in HOPS:
            for node, count in expected.items():
                schedule = ranks(f'send 8b to {node}', *('calc 1' for _ in range(node - 1)), 'recv 8b from 0',
                                 *('calc 1' for _ in range(nodes - node - 1)))
                used = [row for row in links(schedule, '--fabric-shape', shape).values() if int(row['bytes']) > ACK_BYTES]
                check(len(used) == count, f'{shape}, node 0 to {node}: {len(used)} links, expected {count}')

    def bisection():
        """Four nodes of a leaf send to the four of another one. With half of the uplinks it takes twice as long."""
        flows = ranks(*(f'send 10000000b to {i + 4}' for i in range(4)), *(f'recv 10000000b from {i}' for i in range(4)))
        one, full, half, quarter = (total(flows, '--fabric-shape', shape) for shape in
                                    ('single', 'fat-tree:2/8', 'fat-tree:2/6/2:1', 'fat-tree:2/5/4:1'))
        check(full < 1.01 * one, f'a full tree takes {full} ns, one switch {one} ns')
        for times, expected in (half / full, 2), (quarter / full, 4):
            check(abs(times / expected - 1) < 0.02, f'{expected}:1 takes {times:.3f} times as long as 1:1')

    def same_bytes():
        schedule = verbena('goal', 'alltoall', '-n', '18', '--size', '9000')
        for shape in 'fat-tree:2/6', 'torus:3x3/2', 'dragonfly:3/2/1':
            for routing in 'deterministic', 'ecmp', 'adaptive':
                words = ['--json', '--fabric-shape', shape, '--set', f'fabric.routing={routing};{TIGHT}']
                check(replay(schedule, *words) == replay(schedule, *words), f'{shape} {routing}: two replays differ')

    def routing():
        """Destinations 4 and 6 use one of two spines by destination, and both where routing looks at queues."""
        flows = ranks('send 4000000b to 4', 'send 4000000b to 6', 'calc 1', 'calc 1', 'recv 4000000b from 0', 'calc 1',
                      'recv 4000000b from 1', 'calc 1')
        fixed, adaptive = (total(flows, '--fabric-shape', 'fat-tree:2/6/2:1', '--set', f'fabric.routing={name}')
                           for name in ('deterministic', 'adaptive'))
        check(1.8 < fixed / adaptive < 2.1, f'{fixed} ns by destination, {adaptive} ns adaptive')
        many = verbena('goal', 'alltoall', '-n', '16', '--size', '9000')
        used = links(many, '--fabric-shape', 'fat-tree:2/8', '--set', 'fabric.routing=ecmp')
        check(all(int(row['packets']) for row in used.values()), 'ECMP leaves links idle')

    def no_deadlock():
        """Buffers of little more than a packet, all nodes to all nodes, where minimal routes run in circles."""
        with written(LOOP) as file:
            for shape, nodes in (('torus:6', 6), ('torus:5x5', 25), ('torus:4x4x3', 48), ('dragonfly:1/4/2', 36),
                                 (file.name, 5)):
                schedule = verbena('goal', 'alltoall', '-n', str(nodes), '--size', '20000')
                replay(schedule, '--fabric-shape', shape, '--set', TIGHT)

    def failure():
        """What a failed link carried is lost, sent again, and takes another way; without one, connections fail."""
        flows = ranks(*(f'send 10000000b to {i + 4}' for i in range(4)), *(f'recv 10000000b from {i}' for i in range(4)))
        words = ['--fabric-shape', 'fat-tree:2/8', '--set', 'fabric.failures=leaf0 spine1 100 us']
        result = json.loads(replay(flows, '--json', *words))
        check(result['lost'] > 0, 'no packet was lost')
        before, after = links(flows, *words[:2]), links(flows, *words)
        failed = {name for name, row in after.items() if row['failed'] == '1'}
        check(failed == {('leaf0', 'spine1'), ('spine1', 'leaf0')}, f'failed: {failed}')
        carried = [int(found['leaf0', 'spine1']['bytes']) for found in (before, after)]
        check(0 < carried[1] < 0.2 * carried[0], f'{carried} bytes without and with the failure')
        check(sum(int(row['bytes']) for row in after.values()) > sum(int(row['bytes']) for row in before.values()),
              'lost packets were not sent again')
        many = verbena('goal', 'alltoall', '-n', '36', '--size', '20000')
        for shape, cable in ('torus:6x6', 's0.0 s1.0'), ('dragonfly:1/4/2', 'g0.s0 g1.s3'):
            replay(many, '--fabric-shape', shape, '--set', f'fabric.failures={cable} 20us;{TIGHT}')
        pair = ranks('send 8000000b to 1', 'recv 8000000b from 0')
        error = replay(pair, '--fabric-shape', 'torus:2', '--set', 'fabric.failures=s0 s1 50us', status=1)
        check('from rank 0 to rank 1 failed' in error and 'retries exceeded' in error, error)
        error = replay(pair, '--fabric-shape', 'torus:2', '--set', 'fabric.failures=s0 s2 50us', status=1)
        check('no cable leads from s0 to s2' in error, error)

    def files():
        """The file of a tree is that tree; mistakes are told with their lines."""
        tree = ''.join(f'switch {name}\n' for name in ('leaf0', 'leaf1', 'spine0', 'spine1'))
        tree += ''.join(f'cable leaf{i} spine{k}\n' for i in range(2) for k in range(2))
        tree += ''.join(f'host {i} leaf{i // 2}\n' for i in range(4))
        schedule = verbena('goal', 'alltoall', '-n', '4', '--size', '50000')
        with written(tree) as file:
            check(replay(schedule, '--csv', '--fabric-shape', file.name) ==
                  replay(schedule, '--csv', '--fabric-shape', 'fat-tree:2/4'), 'the file of a tree is another tree')
        pair = ranks('send 8b to 1', 'recv 8b from 0')
        for text, expected in BAD_FILES:
            with written(text) as file:
                status = 1 if 'port 1 of node' in expected else 2
                with tempfile.NamedTemporaryFile('w', suffix='.goal') as goal:
                    goal.write(pair)
                    goal.flush()
                    error = verbena('replay', goal.name, '--fabric-shape', file.name, status=status)
                check(expected in error, f'{text!r}: {error}')
        for shape, expected in BAD_SHAPES:
            error = replay(pair, '--fabric-shape', shape, status=2)
            check(expected in error, f'{shape}: {error}')
        check('at most 8 adapter ports; this fabric has 16' in
              replay(verbena('goal', 'barrier', '-n', '16'), '--fabric-shape', 'fat-tree:2/4', status=1), 'a small tree')
        check('needs 2 VLs' in replay(pair, '--fabric-shape', 'torus:2', '--set', 'link.vls=5', status=1), 'VLs')

    def pages():
        """The statistics of links in each form."""
        schedule = verbena('goal', 'alltoall', '-n', '8', '--size', '9000')
        with tempfile.TemporaryDirectory() as directory:
            for ending in 'txt', 'json', 'html':
                path = os.path.join(directory, f'links.{ending}')
                replay(schedule, '--fabric-shape', 'torus:4x2', '--links', path)
                with open(path, encoding='utf-8') as file:
                    text = file.read()
                check('s0.0' in text and 'node7' in text, f'{ending}: {text[:200]}')
                if ending == 'json':
                    row = next(row for row in json.loads(text) if row['from'] == 's0.0' and row['to'] == 's1.0')
                    check(row['bytes'] > 0 and 0 < row['busy'] < 1 and row['queue_max_bytes'] > 0, str(row))
                if ending == 'html':
                    check(text.count('<tr>') == text.count('</tr>') == 16 and 'busy' in text, 'a line for each switch and node')
                    check(text.index('<th>s3.1</th>') < text.index('<th>node0</th>'), 'switches come first')
        check('must end in' in replay(schedule, '--links', 'links.xml', status=2), 'an unknown form')
        check('/nowhere/links.csv' in replay(schedule, '--links', '/nowhere/links.csv', status=1), 'no such folder')

    return {f'shape-{name.replace("_", "-")}': test for name, test in {
        'hops': hops, 'bisection': bisection, 'same_bytes': same_bytes, 'routing': routing, 'no_deadlock': no_deadlock,
        'failure': failure, 'files': files, 'pages': pages}.items()}
