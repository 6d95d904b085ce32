#!/usr/bin/env python3
"""What runs inside the virtual machine: guest.py TASK...

Prints lines as tests/run wants them, "table NAME JSON" for what documents are made of, and "end"
last: without it the machine did not get that far."""
import json
import os
import re
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get('VERBENA_BUILD', os.path.join(ROOT, 'build'))
VERBENA = os.path.join(BUILD, 'verbena')
DEVICE = 'rxe0'
PATIENCE = 120

# An emulated processor is slow: few rounds, small windows. What is checked is that it works.
TINY = ['--quick', '--iterations', '10', '--warmup', '2', '--repetitions', '2', '--window', '16',
        '--timeout', '60']
CORE = ['qp-connect', 'mr-reg', 'mw-bind', 'latency', 'bw', 'service', 'event', 'srq']


class Failure(Exception):
    pass


def require(condition, reason):
    if not condition:
        raise Failure(reason)


def say(*words):
    print(*words, flush=True)


def run(*words, patience=PATIENCE, **more):
    """Exit status and output of a program that must not hang."""
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=patience, **more)
    except subprocess.TimeoutExpired as error:
        raise Failure(f'{words[0]} still running after {patience} s') from error
    return done.returncode, done.stdout


def must(*words, **more):
    status, output = run(*words, **more)
    require(status == 0, f'{" ".join(words[:3])}: status {status}: {last_line(output)}')
    return output


def last_line(text):
    return (text.strip().splitlines() or ['no output'])[-1]


def attempt(name, test):
    try:
        reason = test()
    except Failure as failure:
        say(f'FAIL {name}: {failure}')
    else:
        say(f'skip {name}: {reason}' if reason else f'ok {name}')


def settle():
    """Addresses of a new interface take a moment: the GID table follows them."""
    deadline = time.monotonic() + PATIENCE
    while '::ffff:' not in run('ibv_devinfo', '-v')[1]:
        require(time.monotonic() < deadline, 'the device has no IPv4 address')
        time.sleep(0.2)


def bring_up(interface, address, mtu):
    must('ip', 'link', 'set', 'lo', 'up')
    must('ip', 'address', 'add', address, 'dev', interface)
    must('ip', 'link', 'set', interface, 'mtu', str(mtu), 'up')
    must('rdma', 'link', 'add', DEVICE, 'type', 'rxe', 'netdev', interface)
    settle()


def task_device():
    """A pair of virtual interfaces; the device on one of them reaches itself."""
    def test():
        must('ip', 'link', 'add', 'veth0', 'type', 'veth', 'peer', 'name', 'veth1')
        must('ip', 'link', 'set', 'veth1', 'mtu', '9000', 'up')
        bring_up('veth0', '10.0.0.1/24', 9000)
    attempt('rxe comes up', test)


def task_conformance():
    def test():
        program = os.path.join(BUILD, 'tests', 'conformance', 'conformance')
        for line in must(program).splitlines():
            say(f'case\t{line}')
    attempt('conformance program', test)


def read_results(path):
    with open(path, encoding='utf-8') as file:
        return json.load(file)


def check_experiment(entry):
    """Measured, or refused because the device lacks something; never failed."""
    def test():
        require(not entry.get('failed'), f'{entry.get("failed")}')
        if entry['skipped']:
            return entry['skipped'].split(';')[0]
        require(entry['series'], 'nothing was measured')
        for series in entry['series']:
            require(series['points'], f'series {series["name"]} has no point')
        return None
    return test


def measure(label, experiments, *words, patience=PATIENCE):
    """Runs experiments; one line of results for each."""
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, 'results.json')
        status, output = run(VERBENA, 'bench', *experiments, *TINY, *words, '-o', path,
                             patience=patience)
        require(os.path.exists(path), f'status {status}: {last_line(output)}')
        results = read_results(path)
    for entry in results['experiments']:
        attempt(f'{label} {entry["name"]}', check_experiment(entry))
    require(status == 0, f'status {status}: {last_line(output)}')
    return results


def task_core():
    def test():
        results = measure('suite', CORE, '--sizes', '8,4K')
        require(results['device']['link layer'] == 'Ethernet', 'the link layer is not told')
    attempt('suite core', test)


TASKS = {name[5:]: function for name, function in list(globals().items())
         if name.startswith('task_')}


def main():
    for name in sys.argv[1:]:
        start = time.monotonic()
        TASKS[name]()
        say(f'task {name} took {time.monotonic() - start:.0f} s')
    say('end')


if __name__ == '__main__':
    main()
