# SPDX-License-Identifier: BSD-2-Clause
"""Runs the commands of a block in one shell, as a user who types them."""
import os
import shlex
import signal
import subprocess

# A server in the background gets time to listen before the next command, its client, starts.
PRELUDE = '''
listening() { cat /proc/net/tcp /proc/net/tcp6 | grep -c ' 0A '; }
wait_for_listener() {
    for _ in {1..50}; do
        [ "$(listening)" -gt "$1" ] && return
        kill -0 "$2" 2>/dev/null || return
        sleep 0.1
    done
}
'''


def script(commands, endless, log):
    log = shlex.quote(log)
    yield PRELUDE
    background = []
    for number, text in enumerate(commands):
        yield f'listeners=$(listening); exec >{log}/{number}.out 2>&1'
        yield text
        if text.rstrip().endswith('&'):
            background.append(number)
            yield f'job{number}=$!; wait_for_listener "$listeners" "$job{number}"'
        else:
            yield f'echo $? >{log}/{number}.status'
    for number in background:
        if number in endless:
            yield f'kill "$job{number}"'
        yield f'wait "$job{number}"; echo $? >{log}/{number}.status'


def read(path):
    try:
        with open(path, encoding='utf-8', errors='replace') as file:
            return file.read()
    except FileNotFoundError:
        return ''


def run(commands, endless, directory, log, environment, seconds):
    """(status, output) of each command; the status is None if the command was not done in time.

    The endless ones are the numbers of servers to stop when all others are done.
    """
    os.makedirs(log)
    shell = subprocess.Popen(['bash', '-c', '\n'.join(script(commands, endless, log))], cwd=directory, env=environment,
                             stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        shell.wait(seconds)
    except subprocess.TimeoutExpired:
        pass
    finally:
        try:
            os.killpg(shell.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        shell.wait()
    results = []
    for number in range(len(commands)):
        status = read(f'{log}/{number}.status')
        results.append((int(status) if status else None, read(f'{log}/{number}.out')))
    return results
