# SPDX-License-Identifier: BSD-2-Clause
"""verbena sweep: which replays a file stands for, and that they can be continued."""
import json
import os
import tempfile

CHARTS = '''# two charts
growth  pattern=barrier,allreduce-doubling ranks=2..8 size=1K adapter=hdr100
sizes   pattern=alltoall ranks=3 size=64,1K adapter=hdr100,ndr400 shape=torus:3
'''
COMBINATIONS = 2 * 3 + 2 * 2

# a line, what the message must contain
BAD = [
    ('x ranks=2 adapter=hdr100', 'a chart needs pattern, ranks and adapter'),
    ('x pattern=circle ranks=2 adapter=hdr100', "unknown pattern 'circle'"),
    ('x pattern=allreduce-doubling ranks=2,6 adapter=hdr100', 'allreduce-doubling with 6 ranks'),
    ('x pattern=barrier ranks=none adapter=hdr100', 'ranks'),
    ('x pattern=barrier ranks=2 adapter=', 'adapter has an empty value'),
    ('x pattern=barrier ranks=2 hosts=4', "'hosts' is none of pattern"),
    ('x barrier', "expected KEY=VALUE, not 'barrier'"),
    ('growth pattern=barrier ranks=2 adapter=hdr100', 'there is a chart growth already'),
    ('x pattern=barrier ranks=2 adapter=hdr100,none', "none"),
    ('x pattern=barrier ranks=2 adapter=hdr100 shape=ball:3', 'ball:3'),
    ('x pattern=barrier ranks=2 adapter=hdr100 ranks-per-node=0', 'ranks-per-node'),
]


def tests(verbena, replay, check):
    def points(path):
        """(chart, curve, x): microseconds."""
        with open(path, encoding='utf-8') as file:
            return {(chart['name'], curve['name'], point['x']): point['median'] for chart in json.load(file)['experiments']
                    for curve in chart['series'] for point in curve['points']}

    def in_folder(test):
        def run():
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, 'charts.sweep')
                with open(path, 'w', encoding='utf-8') as file:
                    file.write(CHARTS)
                test(path, lambda name: os.path.join(folder, name))
        return run

    def values(charts, name):
        """Each point is what a replay on its own takes."""
        out = name('all.json')
        verbena('sweep', charts, '-o', out)
        found = points(out)
        check(len(found) == COMBINATIONS, f'{len(found)} points')
        check(verbena('sweep', charts, '--list').count('\n') == COMBINATIONS, 'the list')
        schedule = verbena('goal', 'allreduce-doubling', '-n', '8', '--size', '1K')
        alone = json.loads(replay(schedule, '--json'))['total_ns'] / 1000
        check(found['growth', 'allreduce-doubling', 8] == alone, f'{found}, alone {alone}')
        schedule = verbena('goal', 'alltoall', '-n', '3', '--size', '64')
        alone = json.loads(replay(schedule, '--json', '--adapter', 'ndr400', '--fabric-shape', 'torus:3'))['total_ns'] / 1000
        check(found['sizes', 'ndr400', 64] == alone, f'{found}, alone {alone}')
        check('allreduce-doubling' in verbena('sweep', charts, '-o', out), 'the table')
        check(verbena('sweep', charts, '-o', out, '--csv').count('growth') == 6, 'CSV')

    def continued(charts, name):
        """What is done is kept, and not done again."""
        out, whole = name('some.json'), name('whole.json')
        verbena('sweep', charts, '-o', out, '--part', '1/2')
        check(len(points(out)) == COMBINATIONS // 2, f'half of the points: {len(points(out))}')
        with open(out, encoding='utf-8') as file:
            document = json.load(file)
        point = document['experiments'][0]['series'][0]['points'][0]
        for key, value in point.items():
            if key not in ('x', 'count') and isinstance(value, (int, float)):
                point[key] = 4711.0
        with open(out, 'w', encoding='utf-8') as file:
            json.dump(document, file)
        verbena('sweep', charts, '-o', out, '--jobs', '1')
        verbena('sweep', charts, '-o', whole)
        different = {key for key, value in points(whole).items() if points(out).get(key) != value}
        check(len(different) == 1, f'{different} differ: a point that was there was replayed, or one is missing')
        with open(charts, 'w', encoding='utf-8') as file:
            file.write(CHARTS.replace('size=1K', 'size=2K'))
        before = points(out)
        error = verbena('sweep', charts, '-o', out, status=2)
        check('chart growth was made from another line' in error and points(out) == before, error)

    def failures(charts, name):
        """A replay that fails is told and left out; the others are done."""
        with open(charts, 'a', encoding='utf-8') as file:
            file.write('full pattern=barrier ranks=4,16 adapter=hdr100 shape=fat-tree:2/4\n')
        error = verbena('sweep', charts, '-o', name('out.json'), status=1)
        check('full, barrier, 16 ranks' in error and 'at most 8 adapter ports' in error, error)
        check(len(points(name('out.json'))) == COMBINATIONS + 1, 'the others')
        for line, expected in BAD:
            with open(name('bad.sweep'), 'w', encoding='utf-8') as file:
                file.write(CHARTS + line + '\n')
            error = verbena('sweep', name('bad.sweep'), status=2)
            check('bad.sweep:4: ' in error and expected in error, f'{line}: {error}')
        check('K/N' in verbena('sweep', charts, '--part', '3/2', status=2), 'part 3 of 2')
        check('No such file' in verbena('sweep', name('none'), status=2), 'no file')
        check('/nowhere' in verbena('sweep', charts, '-o', '/nowhere/x.json', status=1), 'no folder')

    return {f'sweep-{name}': in_folder(test) for name, test in
            {'values': values, 'continued': continued, 'failures': failures}.items()}
