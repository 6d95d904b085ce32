# SPDX-License-Identifier: BSD-2-Clause
"""Runs of the suite on modelled adapters, and the values in them."""
import functools
import glob
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, 'tests', 'common'))
import processes

BUILD = os.environ.get('VERBENA_BUILD', os.path.join(ROOT, 'build'))
VERBENA = os.path.join(BUILD, 'verbena')
SECONDS = 400


class Failed(Exception):
    pass


def verbena(words, statuses=(0,)):
    """Runs the command; fails unless it ends with one of the statuses."""
    process = subprocess.Popen([VERBENA, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    try:
        out, errors = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        doing = processes.doing(process.pid)
        process.kill()
        process.communicate()
        raise Failed(f'{words[0]}: not ready after {SECONDS} s: {doing}') from None
    if process.returncode not in statuses:
        wrong = [line.strip() for line in out.splitlines() if 'FAILED' in line]
        raise Failed('; '.join(wrong) or errors.strip() or f'status {process.returncode}')
    return subprocess.CompletedProcess(words, process.returncode, out, errors)


def document(path):
    with open(path, encoding='utf-8') as file:
        return json.load(file)


PAPERS = [document(path) for path in sorted(glob.glob(os.path.join(ROOT, 'papers', '*.json')))]


def run_line(paper, run):
    """The arguments of a run of papers/PAPER.json, with the points that rows need."""
    papers = next(one for one in PAPERS if one['name'] == paper)
    line = papers['runs'][run]
    command, *words = line['command'].split()
    return command, *papers['common'].split(), *words, *line.get('quick', '').split()


def bench(words, adapter, settings=None):
    """The document that a run of the suite writes."""
    with tempfile.TemporaryDirectory() as directory:
        output = os.path.join(directory, 'results.json')
        change = ['--set', settings] if settings else []
        verbena([*words, '--adapter', adapter, *change, '-o', output])
        return document(output)


@functools.cache
def run(paper, name, adapter, settings=None):
    """The document of a run of a paper, which is made once."""
    return bench(run_line(paper, name), adapter, settings)


def place_of(text):
    """Quantity, name and x of a point as the papers' files have it."""
    quantity, name, x = text.split('/')
    return quantity, name, float(x[:-1]) * 2 ** 20 if x.endswith('M') else float(x)


def point(results, quantity, name, x):
    for series in results['experiments'][0]['series']:
        if series['quantity'] == quantity and series['name'] == name:
            for place in series['points']:
                if place['x'] == x:
                    return place['median']
    raise Failed(f'no curve "{name}" of {quantity} with a point at {x}')
