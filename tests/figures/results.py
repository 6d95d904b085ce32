"""Runs of the suite on modelled adapters, and the figures in them."""
import json
import os
import subprocess
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get('VERBENA_BUILD', os.path.join(ROOT, 'build'))
VERBENA = os.path.join(BUILD, 'verbena')
SECONDS = 200
# Virtual time has no noise: a few iterations say what many would.
COUNTS = ['--warmup', '8', '--repetitions', '1']
ITERATIONS = '--iterations 20\n'


class Failed(Exception):
    pass


class Results:
    """Figures of one adapter, by line of the sweep."""

    def __init__(self, adapter, lines, settings=None):
        self.adapter = adapter
        self.lines = list(dict.fromkeys(lines))
        self.document = self._run(settings)
        self.experiments = dict(zip(self.lines, self.document['experiments']))

    def _run(self, settings):
        with tempfile.TemporaryDirectory() as directory:
            sweep = os.path.join(directory, 'sweep.txt')
            output = os.path.join(directory, 'results.json')
            with open(sweep, 'w', encoding='ascii') as file:
                file.write(ITERATIONS + ''.join(line + '\n' for line in self.lines))
            command = [VERBENA, 'bench', sweep, '--adapter', self.adapter, '-o', output, *COUNTS]
            if settings:
                command += ['--set', settings]
            try:
                done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True,
                                      text=True, timeout=SECONDS, check=False)
            except subprocess.TimeoutExpired:
                raise Failed(f'{self.adapter}: not ready after {SECONDS} s') from None
            if done.returncode:
                wrong = [line.strip() for line in done.stdout.splitlines() if 'FAILED' in line]
                raise Failed(f'{self.adapter}: {"; ".join(wrong) or done.stderr.strip()}')
            with open(output, encoding='utf-8') as file:
                return json.load(file)

    def curve(self, line, quantity, name):
        """{x: median}"""
        for series in self.experiments[line]['series']:
            if series['quantity'] == quantity and series['name'] == name:
                return {point['x']: point['median'] for point in series['points']}
        raise Failed(f'{self.adapter}: {line} has no curve "{name}" of {quantity}')

    def point(self, line, quantity, name, x):
        curve = self.curve(line, quantity, name)
        if x not in curve:
            raise Failed(f'{self.adapter}: {line}: "{name}" has no point at {x}')
        return curve[x]
