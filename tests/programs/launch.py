# SPDX-License-Identifier: BSD-2-Clause
"""Starts and supervises programs on the software adapter."""

import atexit
import functools
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'tests' / 'common'))
import preload
import tcp

BUILD = pathlib.Path(os.environ.get('VERBENA_BUILD', ROOT / 'build')).resolve()
SHM_DIR = os.environ.get('VERBENA_SHM_DIR', '/dev/shm')
ORDINARY_USER = 65534


def as_ordinary_user():
    return ['setpriv', f'--reuid={ORDINARY_USER}', f'--regid={ORDINARY_USER}', '--clear-groups',
            '--inh-caps=-all']


@functools.lru_cache(maxsize=None)
def command_for_everybody():
    """The command where an ordinary user can execute it: a project in root's home is installed elsewhere."""
    own = BUILD / 'verbena'
    if subprocess.run([*as_ordinary_user(), 'test', '-x', own, '-a', '-r', BUILD / 'lib'],
                      check=False).returncode == 0:
        return own
    stage = tempfile.mkdtemp(prefix='verbena-install-')
    atexit.register(shutil.rmtree, stage, ignore_errors=True)
    os.chmod(stage, 0o755)
    subprocess.run(['meson', 'install', '-C', BUILD, '--no-rebuild', '--quiet', '--destdir', stage],
                   check=True, stdout=subprocess.DEVNULL)
    return next(pathlib.Path(stage).rglob('bin/verbena'))


def prefix(fabric, nodes=1, node=0, devices=1, ports=1, copy='auto', ordinary_user=False):
    """The command that runs a program on the adapter; the caller appends the program."""
    settings = {'fabric': fabric, 'nodes': nodes, 'node': node, 'devices': devices,
                'ports': ports, 'copy': copy}
    ordinary_user = ordinary_user and os.geteuid() == 0
    if (BUILD / 'verbena').exists():
        verbena = command_for_everybody() if ordinary_user else BUILD / 'verbena'
        command = [str(verbena), 'run']
        for name, value in settings.items():
            command += [f'--{name}', str(value)]
        command.append('--')
    else:
        command = ['env', *(f'{name}={value}' for name, value in
                            preload.variables(BUILD / 'lib' / 'libverbena.so').items())]
        command += [f'VERBENA_{name.upper()}={value}' for name, value in settings.items()]
    return as_ordinary_user() + command if ordinary_user else command


def clean_up_when_terminated():
    """Turns SIGTERM into an exception, so that children are ended on exit."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))


def library_missing():
    library = BUILD / 'lib' / 'libverbena.so'
    return None if library.exists() else f'{library} is not built'


def missing_program(argv):
    return None if shutil.which(argv[0]) else f'{argv[0]} is not installed'


def segments(fabric):
    return [name for name in os.listdir(SHM_DIR)
            if re.fullmatch(rf'verbena-\d+-{re.escape(fabric)}.*', name)]


class Program:
    """A child in its own process group, with its output in a file."""

    def __init__(self, argv, env=None, cwd=None):
        self.argv = argv
        self.output_file = tempfile.TemporaryFile()
        self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=self.output_file,
                                        stderr=subprocess.STDOUT, start_new_session=True,
                                        env={**os.environ, **(env or {})}, cwd=cwd)

    def running(self):
        return self.process.poll() is None

    def wait(self, deadline):
        """The exit status, or None if the deadline passes first."""
        try:
            return self.process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            return None

    def stop(self):
        """Ends a server that does not end by itself."""
        os.killpg(self.process.pid, signal.SIGTERM)
        self.wait(time.monotonic() + 5)

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()

    def output(self):
        self.output_file.seek(0)
        return self.output_file.read().decode(errors='replace')


def wait_for_listener(server, port, fabric, by_tcp, deadline):
    """Waits until a client can connect: by TCP, or through the adapter's segment."""
    while server.running() and time.monotonic() < deadline:
        if by_tcp and tcp.is_listening(port):
            return
        if not by_tcp and segments(fabric):
            time.sleep(0.4)
            return
        time.sleep(0.01)
