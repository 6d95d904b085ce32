# SPDX-License-Identifier: BSD-2-Clause
"""Runs the conformance program on the software adapter, live and modelled."""
import os
import subprocess

import table

BUILD = os.environ.get('VERBENA_BUILD', os.path.join(table.ROOT, 'build'))
PROGRAM = os.path.join(BUILD, 'tests', 'conformance', 'conformance')
MODEL = 'mt25208'
PATIENCE = 120
ADAPTERS = {'live': [], 'modelled': ['--adapter', MODEL]}


def outcomes(column):
    command = [os.path.join(BUILD, 'verbena'), 'run', '--fabric', f'conformance-{os.getpid()}',
               *ADAPTERS[column], '--', PROGRAM]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=PATIENCE)
    if done.returncode:
        last = (done.stdout.strip().splitlines() or ['no output'])[-1]
        return None, f'status {done.returncode}, after: {last}'
    return table.read_cases(done.stdout.splitlines()), None
