#!/usr/bin/env python3
"""What runs inside the virtual machine: guest.py TASK[=ARGUMENT]...

Prints lines as tests/run wants them, "table NAME JSON" for what documents are made of, and "end"
last: without it the machine did not get that far."""
import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get('VERBENA_BUILD', os.path.join(ROOT, 'build'))
VERBENA = os.path.join(BUILD, 'verbena')
DEVICE = 'rxe0'
PATIENCE = 120

# An emulated processor is slow: few rounds, small windows. The tests check function, not speed.
TINY = ['--quick', '--iterations', '10', '--warmup', '2', '--repetitions', '2', '--window', '16',
        '--timeout', '60']
FEW = ['--sizes', '8,4K', '--iterations', '5', '--qps', '1,8', '--depths', '16,256',
       '--regions', '1,8', '--nodes', '1,2', '--threads', '1,2', '--segments', '1,4',
       '--strides', '1,8', '--blocks', '8,256', '--work', '0,50', '--levels', '0,1']
SUITE_SECONDS = 420
PAIR_SECONDS = 240
CORE = ['qp-connect', 'mr-reg', 'mw-bind', 'latency', 'bw', 'service', 'event', 'srq']

# What two hosts measure with each other.
HOSTS = ['10.0.1.1', '10.0.1.2']
PAIR = ['latency', 'bw', 'mtu', 'service']
BENCH_PORT = 18590
DONE_PORT = 18600

# The same values by three programs.
ADDRESS = '10.0.0.1'
GID_INDEX = '1'
ROUNDS = '200'
TOOL_PORT = 18515 # of perftest's programs and of rdma-core's
RPING_PORT = 7174
FIGURE_SIZES = [8, 4096]
BULK = 65536
LATENCY_COLUMN = 4 # t_typical
BANDWIDTH_COLUMN = 3 # average


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
    """Wait for the addresses of a new interface, which the GID table follows."""
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
        bring_up('veth0', f'{ADDRESS}/24', 9000)
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


def experiment_names():
    listed = json.loads(must(VERBENA, 'list', 'experiments', '--json'))
    return [entry['name'] for entry in listed]


def task_suite():
    """Every experiment. One that is skipped names what the device lacks."""
    def test():
        names = experiment_names()
        results = measure('suite', names, *FEW, patience=SUITE_SECONDS)
        measured = {entry['name'] for entry in results['experiments']}
        require(measured == set(names), f'not begun: {", ".join(set(names) - measured)}')
        for entry in results['experiments']:
            say('\t'.join(['row', 'suite', entry['name'],
                           f'refused: {entry["skipped"].split(";")[0]}' if entry['skipped']
                           else 'measured']))
    attempt('suite complete', test)


def task_sweep(path):
    """The results of a sweep, line by line."""
    def test():
        with tempfile.TemporaryDirectory() as scratch:
            target = os.path.join(scratch, 'results.json')
            must(VERBENA, 'bench', path, '--timeout', '60', '-o', target, patience=SUITE_SECONDS)
            with open(target, encoding='utf-8') as file:
                for line in file.read().splitlines():
                    say(f'results\t{line}')
    attempt(f'sweep {os.path.basename(path)}', test)


# ---- the wire engine at the other end ----

WIRE_ADDRESS = '10.0.0.2'
WIRE_ROUNDS = '10'
EXCHANGE_PORT = '18700'
ON_WIRE = ['ip', 'netns', 'exec', 'wire']
VERBENA_END = [*ON_WIRE, VERBENA, 'run', '--wire', 'veth1', '--']
ENDS = {'kernel': ([], ADDRESS, GID_INDEX), 'verbena': (VERBENA_END, WIRE_ADDRESS, '0')}


def await_listener(prefix, port):
    """Until a socket listens there, in the listener's network namespace."""
    deadline = time.monotonic() + PATIENCE
    while not re.search(f':{int(port):04X} [0-9A-F]+:0000 0A', run(*prefix, 'cat', '/proc/net/tcp', '/proc/net/tcp6')[1]):
        require(time.monotonic() < deadline, 'the listener does not listen')
        time.sleep(0.2)


def between(listener, caller, port, words_of):
    """A program at both ends, one of them on the kernel's device: `words_of` takes a GID index."""
    prefix, address, gid = ENDS[listener]
    with subprocess.Popen([*prefix, *words_of(gid)], stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            await_listener(ON_WIRE if prefix else [], port)
            prefix, _, gid = ENDS[caller]
            must(*prefix, *words_of(gid), address)
            output, _ = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    require(process.returncode == 0, f'the listener ended with {process.returncode}: {last_line(output)}')


def wire_programs():
    exchange = os.path.join(BUILD, 'tests', 'wire', 'wire-exchange')
    yield 'exchange', EXCHANGE_PORT, lambda gid: [exchange, EXCHANGE_PORT, gid, '1', WIRE_ROUNDS]
    for service in ('rc', 'uc', 'ud'):
        yield f'{service}_pingpong', TOOL_PORT, lambda gid, service=service: [f'ibv_{service}_pingpong', '-g', gid, '-n', '50']
    for tool in ('ib_send_bw', 'ib_write_bw', 'ib_read_bw', 'ib_atomic_bw', 'ib_send_lat'):
        yield tool, TOOL_PORT, lambda gid, tool=tool: [tool, '-x', gid, '-n', '50', '-u', '18', '-F']


NOT_LISTENING = r'RDMA_CM_EVENT_(REJECTED[,;] error:? 8|UNREACHABLE[,;] error:? 1)\b'


def call(words, listener):
    """A client of a listener that may not listen yet."""
    deadline = time.monotonic() + PATIENCE
    while True:
        status, output = run(*words)
        if status == 0:
            return
        said = ' / '.join(output.strip().splitlines()[-4:])
        require(re.search(NOT_LISTENING, output) and time.monotonic() < deadline and listener.poll() is None,
                f'{" ".join(words)}: status {status}: {said}')
        time.sleep(0.5)


def await_cm_listener(process):
    deadline = time.monotonic() + PATIENCE
    while 'LISTEN' not in run('rdma', 'resource', 'show', 'cm_id')[1]:
        require(process.poll() is None and time.monotonic() < deadline, 'the listener does not listen')
        time.sleep(0.2)


def by_manager(listener, caller, listen, connect):
    """Programs that connect by rdma_cm; `connect` takes the listener's address."""
    prefix, address, _ = ENDS[listener]
    with subprocess.Popen([*prefix, *listen], stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            if listener == 'kernel':
                await_cm_listener(process)
            call([*ENDS[caller][0], *connect(address)], process)
            output, _ = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired as error:
            raise Failure('the listener does not end') from error
        finally:
            process.kill()
    require(process.returncode == 0, f'the listener ended with {process.returncode}: {last_line(output)}')


def manager_programs():
    yield 'rping', ['rping', '-s', '-C', '5', '-V'], lambda to: ['rping', '-c', '-a', to, '-C', '5', '-V', '-v']
    yield 'ucmatose', ['ucmatose', '-c', '2'], lambda to: ['ucmatose', '-c', '2', '-s', to]
    yield 'udaddy', ['udaddy'], lambda to: ['udaddy', '-s', to]
    for tool in ('ib_send_lat', 'ib_write_bw'):
        words = [tool, '-R', '-n', '20', '-F']
        yield f'{tool} -R', words, lambda to, words=words: [*words, to]


def move(interface, namespace, address):
    """To a new network namespace."""
    must('ip', 'netns', 'add', namespace)
    must('ip', 'link', 'set', interface, 'netns', namespace)
    must('ip', '-n', namespace, 'address', 'add', f'{address}/24', 'dev', interface)
    must('ip', '-n', namespace, 'link', 'set', interface, 'mtu', '9000', 'up')
    must('ip', '-n', namespace, 'link', 'set', 'lo', 'up')


def task_wire():
    """Verbena on a UDP socket in a network namespace, the kernel's device outside: both roles."""
    attempt('wire comes up', lambda: move('veth1', 'wire', WIRE_ADDRESS))
    for name, port, words_of in wire_programs():
        for listener, caller in (('kernel', 'verbena'), ('verbena', 'kernel')):
            attempt(f'wire {name}, {caller} to {listener}',
                    lambda: between(listener, caller, port, words_of))
    for name, listen, connect in manager_programs():
        for listener, caller in (('kernel', 'verbena'), ('verbena', 'kernel')):
            attempt(f'wire {name}, {caller} to {listener}',
                    lambda: by_manager(listener, caller, listen, connect))


def is_listening(port):
    """Whether a socket listens on the port. Does not connect: the server would take that for its client."""
    wanted = f':{port:04X}'
    for path in ('/proc/net/tcp', '/proc/net/tcp6'):
        with open(path, encoding='ascii') as lines:
            for _, local, _, state, *_ in (line.split() for line in lines):
                if local.endswith(wanted) and state == '0A':
                    return True
    return False


def is_bound(port):
    """The same for rdma_cm."""
    return f':{port} ' in run('rdma', 'resource', 'show', 'cm_id')[1]


@contextlib.contextmanager
def server(ready, *words):
    """A server for the duration of the block; it has ended afterwards."""
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + PATIENCE
    try:
        while not ready():
            require(process.poll() is None, f'the server {words[0]} has ended')
            require(time.monotonic() < deadline, f'the server {words[0]} does not listen')
            time.sleep(0.2)
        yield process
        process.wait(timeout=PATIENCE)
    except subprocess.TimeoutExpired as error:
        raise Failure(f'the server {words[0]} does not end') from error
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def pair(*words):
    """Output of a client whose server is the same program."""
    with server(lambda: is_listening(TOOL_PORT), *words):
        return must(*words, ADDRESS)


def perftest(program, size, column):
    """A value of a perftest program: a column of its last row of numbers."""
    output = pair(program, '-d', DEVICE, '-x', GID_INDEX, '-F', '-n', ROUNDS, '-s', str(size))
    rows = [line.split() for line in output.splitlines() if re.match(rf'\s*{size}\s', line)]
    require(rows, f'{program}: no figures: {last_line(output)}')
    return float(rows[-1][column])


def pingpong(size):
    output = pair('ibv_rc_pingpong', '-d', DEVICE, '-g', GID_INDEX, '-n', ROUNDS, '-s', str(size))
    found = re.search(r'([\d.]+) usec/iter', output)
    require(found, f'ibv_rc_pingpong: no figures: {last_line(output)}')
    return float(found.group(1)) / 2


def ours(experiment, size, *words):
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, 'results.json')
        must(VERBENA, 'bench', experiment, '--sizes', str(size), '--iterations', ROUNDS,
             '--warmup', '20', *words, '-o', path)
        return read_results(path)['experiments'][0]['series'][0]['points'][0]['median']


def task_figures():
    """The programs of rdma-core and perftest and our own measure the same latency."""
    def test():
        for size in FIGURE_SIZES:
            figures = [ours('latency', size, '--ops', 'send', '--wait', 'poll'),
                       perftest('ib_send_lat', size, LATENCY_COLUMN), pingpong(size)]
            require(all(figure > 0 for figure in figures), f'{size} bytes: {figures}')
            say('\t'.join(['row', 'figures', f'send, {size} B, one way, us',
                           *(f'{figure:.1f}' for figure in figures)]))
        figures = [ours('bw', BULK, '--ops', 'write', '--style', 'refill', '--window', '16',
                        '--repetitions', '3'),
                   perftest('ib_write_bw', BULK, BANDWIDTH_COLUMN)]
        require(all(figure > 0 for figure in figures), f'bandwidth: {figures}')
        say('\t'.join(['row', 'figures', f'write, {BULK // 1024} KB, MB/s',
                       *(f'{figure:.1f}' for figure in figures), '']))
    attempt('figures side by side', test)


def task_programs():
    """Programs of rdma-core that use rdma_cm."""
    attempt('rping', lambda: None if pair_rping() else 'no answer')


def pair_rping():
    with server(lambda: is_bound(RPING_PORT), 'rping', '-s', '-a', ADDRESS, '-C', '5'):
        must('rping', '-c', '-a', ADDRESS, '-C', '5', '-v')
    return True


def task_manager():
    """Queue pairs connected by rdma_cm; what it cannot connect is refused."""
    def test():
        measure('rdma_cm', ['latency', 'multi-qp'], '--connect-by', 'rdma_cm', *FEW, '--verify')
        status, output = run(VERBENA, 'bench', 'latency', '--transport', 'ud', '--connect-by',
                             'rdma_cm', *TINY)
        require(status == 0 and 'skipped: rdma_cm connects RC only' in output, last_line(output))
    attempt('rdma_cm', test)


def task_mpi():
    """Two ranks of Open MPI over our component, on the device; not through shared memory."""
    program = os.path.join(BUILD, 'tests', 'mpi', 'mpi-conformance')
    component = os.path.join(BUILD, 'lib', 'openmpi')

    def test():
        if not os.path.exists(program):
            return 'the component was not built: libopenmpi-dev is missing'
        with open('/etc/hosts', 'a', encoding='ascii') as hosts:
            hosts.write(f'127.0.0.1 {socket.gethostname()}\n')
        output = must('mpirun.openmpi', '-n', '2', '--oversubscribe', program, env={
            **os.environ, 'OMPI_MCA_mca_base_component_path': f'{component}:SYSTEM_DEFAULT',
            'OMPI_MCA_pml': 'cm', 'OMPI_MCA_mtl': 'verbena', 'OMPI_MCA_mtl_verbena_shared_memory': '0',
            'OMPI_MCA_mtl_verbena_report': '1', 'OMPI_ALLOW_RUN_AS_ROOT': '1',
            'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1'})
        require(re.search(r'^all [1-9]', output, re.M), last_line(output))
        require(re.search(r'rail_messages [1-9]', output), 'nothing went over the device')
        return None
    attempt('mpi', test)


def task_limits():
    """Operations that fail, and their messages."""
    def locked_memory():
        words = ['sh', '-c', f'ulimit -l 64; exec {VERBENA} bench latency --quick --sizes 64K '
                             '--iterations 2 --timeout 20']
        # Without this capability the limit applies even to root.
        status, output = run('setpriv', '--bounding-set=-ipc_lock', *words)
        require(status == 1, f'status {status}: {last_line(output)}')
        require("may lock 64 KiB ('ulimit -l')" in output, last_line(output))

    def unknown_address():
        status, output = run(VERBENA, 'bench', 'latency', '--gid-index', '9', *TINY)
        require(status == 1 and 'port 1 has no GID of index 9' in output, output)

    def mtu_too_large():
        status, output = run('sh', '-c', f'ip link set veth0 mtu 1500 && {VERBENA} bench latency '
                                         '--mtu 4096 --quick; ip link set veth0 mtu 9000')
        require('--mtu 4096 exceeds the ports\' MTU of 1024' in output,
                last_line(output))

    attempt('locked memory', locked_memory)
    attempt('unknown address', unknown_address)
    attempt('mtu above the port', mtu_too_large)


def task_doctor():
    def test():
        output = must(VERBENA, 'doctor')
        for line in output.splitlines():
            say(f'| {line}')
        require(re.search(rf'real-devices +yes +{DEVICE} port 1: active, Ethernet', output),
                'the device is not named')
    attempt('doctor', test)


def task_listen():
    """One of two hosts: provides processes until the other one has finished."""
    bring_up('eth0', f'{HOSTS[0]}/24', 9000)
    process = subprocess.Popen([VERBENA, 'bench', '--listen'], stdin=subprocess.DEVNULL)
    say('listening')
    with socket.create_server((HOSTS[0], DONE_PORT)) as done:
        done.settimeout(PAIR_SECONDS)
        try:
            done.accept()[0].close()
        except TimeoutError:
            say('FAIL hosts listen: the other host never came to its end')
    process.terminate()
    process.wait()


def wait_for_host():
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection((HOSTS[0], BENCH_PORT), timeout=1).close()
            return
        except OSError:
            require(time.monotonic() < deadline, 'the other host cannot be reached')
            time.sleep(0.5)


def task_connect():
    """The other host. Its port has a smaller MTU than the listener's, which both must use."""
    def test():
        bring_up('eth0', f'{HOSTS[1]}/24', 1500)
        wait_for_host()
        results = measure('hosts', PAIR, '--connect', HOSTS[0], *FEW, '--verify',
                          patience=PAIR_SECONDS)
        measure('hosts, rdma_cm', ['latency'], '--connect', HOSTS[0], '--sizes', '8',
                '--connect-by', 'rdma_cm', patience=PAIR_SECONDS)
        for entry in results['experiments']:
            if entry['name'] == 'mtu':
                names = {series['name'] for series in entry['series']}
                require(any('1024' in name for name in names), 'no MTU of 1024 was measured')
                require(not any('4096' in name for name in names), 'an MTU of 4096 was measured')
    attempt('hosts bench', test)
    try:
        socket.create_connection((HOSTS[0], DONE_PORT), timeout=PATIENCE).close()
    except OSError:
        say('FAIL hosts end: the other host is gone')


# ---- the same programs on the kernel's device and on the wire engine, between two hosts or on one ----

COMPARED = [('ib_send_lat', 8, LATENCY_COLUMN, 200), ('ib_send_bw', BULK, BANDWIDTH_COLUMN, 200),
            ('ib_send_bw', 16 * BULK, BANDWIDTH_COLUMN, 20), ('ib_write_bw', 16 * BULK, BANDWIDTH_COLUMN, 20)]
COMPARE_ROUNDS = 3


def by_kernel(number):
    bring_up('eth0', f'{HOSTS[number]}/24', 9000)
    return [], ['-d', DEVICE, '-x', GID_INDEX]


def by_wire(number):
    """In a namespace, because the kernel's driver keeps its port in the first one."""
    must('rdma', 'link', 'delete', DEVICE)
    move('eth0', 'wire', HOSTS[number])
    return [*ON_WIRE, VERBENA, 'run', '--wire', 'eth0', '--'], ['-x', '0']


def compared(number, peer, use):
    """Runs each program with the other host, which does the same; `use` takes its row and the output."""
    for engine in (by_kernel, by_wire):
        prefix, options = engine(number)
        for row in COMPARED:
            program, size, _, count = row
            for _ in range(COMPARE_ROUNDS):
                words = [*prefix, program, *options, '-F', '-s', str(size), '-n', str(count), *peer]
                deadline = time.monotonic() + PATIENCE
                while (done := run(*words))[0] and peer and time.monotonic() < deadline:
                    time.sleep(0.5) # the server does not listen yet
                require(done[0] == 0, f'{program}: status {done[0]}: {last_line(done[1])}')
                use(engine.__name__[3:], row, done[1])


class Speeds:
    """What clients print, by program and engine."""

    def __init__(self):
        self.found = {}

    def use(self, engine, row, output):
        program, size, column, _ = row
        lines = [line.split() for line in output.splitlines() if re.match(rf'\s*{size}\s', line)]
        require(lines, f'{program}: no figures: {last_line(output)}')
        self.found.setdefault((program, size, column), {}).setdefault(engine, []).append(float(lines[-1][column]))

    def tell(self):
        """Medians."""
        for (program, size, column), by in self.found.items():
            if len(by) < 2:
                continue
            kernel, wire = (sorted(by[engine])[len(by[engine]) // 2] for engine in ('kernel', 'wire'))
            ratio = kernel / wire if column == LATENCY_COLUMN else wire / kernel
            unit = 'us' if column == LATENCY_COLUMN else 'MB/s'
            say(f'{program} {size} B: wire {wire:.1f}, kernel {kernel:.1f} {unit}: {ratio:.2f} times as fast')


def task_serve():
    attempt('speed, the server', lambda: compared(0, [], lambda *_: None))


def task_compare():
    speeds = Speeds()
    attempt('speed, the client', lambda: compared(1, HOSTS[:1], speeds.use))
    speeds.tell()


def program_with_itself(server_prefix, client_prefix, words, address):
    """Output of the client."""
    with subprocess.Popen([*server_prefix, *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as process:
        try:
            await_listener(ON_WIRE if server_prefix else [], TOOL_PORT)
            output = must(*client_prefix, *words, address)
            process.wait(timeout=PATIENCE)
        finally:
            process.kill()
    return output


def client_end():
    """In a namespace, too."""
    must('rdma', 'link', 'delete', DEVICE)
    move('veth0', 'client', ADDRESS)
    return ['ip', 'netns', 'exec', 'client', VERBENA, 'run', '--wire', 'veth0', '--']


def task_here():
    """The kernel's device with itself, which needs no network; the wire between two namespaces."""
    speeds = Speeds()

    def measure_all(engine, *way, address, options):
        for row in COMPARED:
            program, size, _, count = row
            for _ in range(COMPARE_ROUNDS):
                words = [program, *options, '-F', '-s', str(size), '-n', str(count)]
                speeds.use(engine, row, program_with_itself(*way, words, address))

    attempt('speed of the kernel', lambda: measure_all('kernel', [], [], address=ADDRESS,
                                                       options=['-d', DEVICE, '-x', GID_INDEX]))
    attempt('wire comes up', lambda: move('veth1', 'wire', WIRE_ADDRESS))
    attempt('speed of the wire', lambda: measure_all('wire', VERBENA_END, client_end(), address=WIRE_ADDRESS,
                                                     options=['-x', '0']))
    speeds.tell()


TASKS = {name[5:]: function for name, function in list(globals().items())
         if name.startswith('task_')}


def main():
    for word in sys.argv[1:]:
        name, *arguments = word.split('=', 1)
        start = time.monotonic()
        TASKS[name](*arguments)
        say(f'task {name} took {time.monotonic() - start:.0f} s')
    say('end')


if __name__ == '__main__':
    main()
