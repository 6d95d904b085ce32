# SPDX-License-Identifier: BSD-2-Clause
"""The programs that must run, one row each.

In a command, {port} is a free TCP port, {tmp} a scratch directory and {ring} the MPI program built
by the MPI the row names. Every expectation is a regular expression that must be found.
"""

import dataclasses
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'common'))
import openmpi
import ucx_program

HOST = '127.0.0.1'
# Programs that open an XRC domain leave these files behind.
XRC_DOMAIN_FILES = '/tmp/xrc_domain', '/tmp/xrc_domain_client', '/tmp/xrc_domain_server'


@dataclasses.dataclass
class Case:
    name: str
    server: str
    client: str = ''
    client_expect: tuple = ()
    server_expect: tuple = ()
    env: dict = dataclasses.field(default_factory=dict)
    by_tcp: bool = True
    server_ends: bool = True
    mpi: str = ''
    component: tuple = ()  # of Open MPI: its framework and name
    timeout: float = 120.0  # seconds, against hangs
    nodes: int = 1
    devices: int = 1
    ports: int = 1
    copy: str = 'auto'
    ordinary_user: bool = False
    litter: tuple = ()


def tool_cases():
    yield Case('ibv_devices', 'ibv_devices', server_expect=(r'^\s+verbena0\s+[0-9a-f]{16}$',))
    yield Case('ibv_devinfo', 'ibv_devinfo', server_expect=(
        r'hca_id:\s+verbena0', r'state:\s+PORT_ACTIVE', r'link_layer:\s+InfiniBand',
        r'board_id:\s+verbena-live'))
    yield Case('ibv_devinfo -v', 'ibv_devinfo -v', server_expect=(
        r'atomic_cap:\s+ATOMIC_HCA', r'GID\[\s*0\]:\s+fe80:', r'max_srq:\s+[1-9]',
        r'max_mcast_grp:\s+[1-9]', r'active_width:\s+\d+X', r'phys_state:\s+LINK_UP'))
    yield Case('ibv_devinfo, two devices of two ports', 'ibv_devinfo', devices=2, ports=2,
               server_expect=(r'hca_id:\s+verbena1', r'port:\s+2'))


def file_cases():
    """Files that the preloaded library provides in place of a kernel driver."""
    yield Case('ls /sys/class/infiniband', 'ls /sys/class/infiniband', devices=2,
               server_expect=(r'\Averbena0\nverbena1\n\Z',))
    yield Case('ls /sys/class/infiniband/verbena0/device/net/',
               'ls /sys/class/infiniband/verbena0/device/net/', server_expect=(r'\Alo\n\Z',))
    yield Case('ls -l /dev/infiniband', 'ls -l /dev/infiniband/uverbs0',
               server_expect=(r'^crw-rw-rw- .* 231, 192 ',))
    yield Case('cat a port state', 'cat /sys/class/infiniband/verbena0//ports/2/state', ports=2,
               server_expect=(r'\A4: ACTIVE\n\Z',))
    yield Case('ls an absent device', 'sh -c "! ls /sys/class/infiniband/verbena1"',
               server_expect=(r'No such file',))
    yield Case('ls elsewhere', 'ls -d /sys/class/net /dev/null',
               server_expect=(r'\A/dev/null\n/sys/class/net\n\Z',))


def pingpong(transport, options='', expect=r'\d+ iters in [\d.]+ seconds', name='', **settings):
    program = f'ibv_{transport}_pingpong -p {{port}} {options}'
    return Case(name or f'ibv_{transport}_pingpong {options}'.strip(), program,
                f'{program} {HOST}', client_expect=(expect,), server_expect=(expect,), **settings)


def pingpong_cases():
    for options in ('', '-c', '-e', '-c -e', '-t', '-N', '-N -c', '-j -c', '-j -N',
                    '-g 0 -c', '-o -c', '-O -c', '-o -P -c', '-n 20000 -s 64',
                    '-s 1048576 -n 100 -c', '-m 4096'):
        yield pingpong('rc', options)
    for options in ('-c', '-e', '-g 0', '-s 262144 -n 200 -c'):
        yield pingpong('uc', options)
    for options in ('-c', '-e', '-g 0 -c', '-s 64 -n 10000'):
        yield pingpong('ud', options)
    for options in ('-c', '-e', '-o', '-q 64 -n 200', '-g 0 -c'):
        yield pingpong('srq', options)
    for options in ('', '-e', '-o', '-n 100'):
        yield pingpong('xsrq', options, expect=r'remote.*SRQN', litter=XRC_DOMAIN_FILES)


def perftest(program, options='', size=None, iters=1000, **settings):
    size = size or (8 if 'atomic' in program else 2 if program.endswith('_lat') else 65536)
    words = options.split()
    sizing = '' if '-a' in words or 'atomic' in program else f'-s {size}'
    count = '' if '-D' in words else f'-n {iters}'
    command = f'{program} -F -p {{port}} {sizing} {count} {options}'
    queue_pairs = int(words[words.index('-q') + 1]) if '-q' in words else 1
    counted = r'\d+' if '-D' in words else str(iters * queue_pairs)
    figures = rf'^\s*{size}\s+{counted}\s+[\d.]+\s+[\d.]*[1-9]'
    settings.setdefault('by_tcp', '-R' not in words)
    if 'XRC' in words:
        settings['litter'] = XRC_DOMAIN_FILES
    return Case(f'{program} {options}'.strip(), command, f'{command} {HOST}',
                client_expect=(r'Device\s+: verbena0', figures), **settings)


def perftest_cases():
    largest = 1 << 23
    for transport in ('RC', 'UC', 'UD', 'XRC'):
        for program in ('ib_send_lat', 'ib_send_bw'):
            small = 4096 if transport == 'UD' and program == 'ib_send_bw' else None
            yield perftest(program, f'-c {transport}', size=small)
    for transport in ('RC', 'UC', 'XRC'):
        yield perftest('ib_write_lat', f'-c {transport}')
        yield perftest('ib_write_bw', f'-c {transport}')
    for transport in ('RC', 'XRC'):
        yield perftest('ib_read_lat', f'-c {transport}')
        yield perftest('ib_read_bw', f'-c {transport}')
    for kind in ('FETCH_AND_ADD', 'CMP_AND_SWAP'):
        yield perftest('ib_atomic_lat', f'-A {kind}')
        yield perftest('ib_atomic_bw', f'-A {kind}')
    yield perftest('ib_atomic_lat', '-c XRC')
    yield perftest('ib_atomic_bw', '-c XRC')
    for program in ('ib_send_lat', 'ib_send_bw'):
        yield perftest(program, '--use-srq')
        yield perftest(program, '-e')
        yield perftest(program, '-c UD -e', size=1024)
    for program in ('ib_read_lat', 'ib_read_bw', 'ib_atomic_lat', 'ib_atomic_bw'):
        yield perftest(program, '-e')
    for program in ('ib_send_bw', 'ib_write_bw', 'ib_read_bw', 'ib_atomic_bw'):
        yield perftest(program, '-b')
        yield perftest(program, '-q 8')
        yield perftest(program, '-b -q 4')
    for program in ('ib_send_bw', 'ib_write_bw', 'ib_read_bw'):
        yield perftest(program, '-l 10', size=64)
    yield perftest('ib_send_bw', '-b -c UD', size=2048)
    yield perftest('ib_send_bw', '-q 8 --use-srq', size=512)
    yield perftest('ib_send_bw', '--use_old_post_send', size=64)
    yield perftest('ib_write_lat', '--use_old_post_send')
    yield perftest('ib_write_lat', '-I 0', size=64)
    yield perftest('ib_send_lat', '-I 64', size=64)
    yield perftest('ib_write_bw', '-I 128', size=128)
    yield perftest('ib_send_bw', '-x 0', size=4096)
    yield perftest('ib_send_lat', '-c UD -x 0', size=16)
    yield perftest('ib_write_bw', '--odp', size=4096)
    yield perftest('ib_send_bw', '-D 1 -f 0')
    yield perftest('ib_read_lat', '-D 1 -f 0')
    for program in ('ib_send_lat', 'ib_write_lat', 'ib_read_lat', 'ib_send_bw', 'ib_write_bw',
                    'ib_read_bw'):
        yield perftest(program, '-a', size=largest, iters=20)
    for program in ('ib_send_lat', 'ib_send_bw', 'ib_write_lat', 'ib_write_bw', 'ib_read_lat',
                    'ib_read_bw', 'ib_atomic_lat', 'ib_atomic_bw'):
        yield perftest(program, '-R')
    yield perftest('ib_send_lat', '-R -c UD', size=64)
    yield perftest('ib_send_bw', '-R -q 4')


def qperf_cases():
    groups = {
        'send': 'rc_lat rc_bw rc_bi_bw uc_lat uc_bw uc_bi_bw ud_lat ud_bw ud_bi_bw',
        'rdma': 'rc_rdma_read_lat rc_rdma_read_bw rc_rdma_write_lat rc_rdma_write_bw'
                ' rc_rdma_write_poll_lat uc_rdma_write_lat uc_rdma_write_bw'
                ' uc_rdma_write_poll_lat',
        'atomics': 'rc_compare_swap_mr rc_fetch_add_mr ver_rc_compare_swap ver_rc_fetch_add',
    }
    for group, tests in groups.items():
        figures = tuple(rf'^{test}:\n\s+\S+\s+=\s+[\d.]*[1-9]' for test in tests.split())
        yield Case(f'qperf {group}', 'qperf -lp {port}',
                   f'qperf {HOST} -lp {{port}} -t 1 {tests} quit', client_expect=figures)


def rdmacm_cases():
    cm = {'by_tcp': False}
    rping = f'rping -a {HOST} -p {{port}} -v'
    for options in ('-C 20', '-C 20 -V', '-C 50 -V -S 4096', '-C 10 -q'):
        yield Case(f'rping {options}', f'{rping} {options} -s', f'{rping} {options} -c',
                   client_expect=(r'ping data: rdma-ping-',), **cm)
    for options in ('', '-c 8 -C 20', '-S 65536 -C 5', '-c 2 -a 18'):
        yield Case(f'ucmatose {options}'.strip(), f'ucmatose -p {{port}} {options}',
                   f'ucmatose -p {{port}} -s {HOST} {options}',
                   client_expect=(r'test complete', r'return status 0'),
                   server_expect=(r'return status 0',), **cm)
    for options in ('', '-c 4 -C 20', '-S 1024'):
        yield Case(f'udaddy {options}'.strip(), f'udaddy {options}',
                   f'udaddy -s {HOST} {options}', client_expect=(r'return status 0',),
                   server_expect=(r'return status 0',), **cm)
    for options in ('', '-c 2 -C 20', '-p 0x2'):
        mckey = f'mckey -m 239.1.2.3 -b {HOST} {options}'
        yield Case(f'mckey {options}'.strip(), mckey, f'{mckey} -s',
                   client_expect=(r'return status 0',),
                   server_expect=(r'return status 0',), **cm)
    yield Case('rdma_client', 'rdma_server -p {port}', f'rdma_client -s {HOST} -p {{port}}',
               client_expect=(r'end 0',), server_expect=(r'end 0',), **cm)
    for kind in ('r', 'x'):
        yield Case(f'rdma_xclient -c {kind}', f'rdma_xserver -p {{port}} -c {kind}',
                   f'rdma_xclient -s {HOST} -p {{port}} -c {kind}',
                   client_expect=(r'end 0',), server_expect=(r'end 0',), **cm)
    # Newer ones count the connections on both sides, and name the step "cm connect".
    yield Case('cmtime', 'cmtime -p {port} -c 50', f'cmtime -s {HOST} -p {{port}} -c 50',
               client_expect=(r'^(cm )?connect\s',), server_ends=False, **cm)


def ucx_environment(transport):
    return {'UCX_TLS': f'{transport},self', 'UCX_NET_DEVICES': 'verbena0:1',
            'UCX_LOG_LEVEL': 'info'}


OPEN_MPI = 'mpirun.openmpi --allow-run-as-root --oversubscribe -n 2'
ONE_ON_EACH_NODE = {'VERBENA_RANKS_PER_NODE': '1'}


def ucx_pair(name, options, env, expect):
    """A server and its client, or both started by mpirun, if only that is possible."""
    name = f'ucx_perftest {name}'
    if ucx_program.started_by_mpi():
        return Case(name, f'{OPEN_MPI} --mca pml ob1 ucx_perftest {options}', env={**env, **ONE_ON_EACH_NODE},
                    server_expect=expect)
    return Case(name, f'ucx_perftest -p {{port}} {options}', f'ucx_perftest {HOST} -p {{port}} {options}', env=env,
                client_expect=expect)


def ucx_perftest(test, transport, shown):
    return ucx_pair(f'{test} over {shown}', f'-t {test} -n 500 -w 50', ucx_environment(transport),
                    (rf'{shown}/verbena0:1', r'^Final:\s+500\s+[\d.]+'))


def ucx_cases():
    tests = ('tag_lat -s 8', 'tag_bw -s 65536', 'tag_lat -s 1048576', 'ucp_put_lat -s 64',
             'ucp_put_bw -s 262144', 'ucp_get -s 4096', 'ucp_am_lat -s 1024', 'ucp_fadd -s 8',
             'stream_lat -s 256')
    for transport, shown in (('rc_v', 'rc_verbs'), ('ud_v', 'ud_verbs')):
        for test in tests:
            yield ucx_perftest(test, transport, shown)
    for test in ('am_lat', 'put_lat', 'fadd'):
        yield ucx_pair(f'{test} over uct rc_verbs', f'-x rc_verbs -d verbena0:1 -t {test} -n 1000 -w 50', {},
                       (r'^Final:\s+1000\s+[\d.]+',))
    yield Case('ucx_info', 'ucx_info -d', env={'UCX_TLS': 'rc_v'}, server_expect=('verbena0:1',))


def libfabric_cases():
    yield Case('fi_info -p verbs', 'fi_info -p verbs',
               server_expect=(r'provider: verbs', r'domain: verbena0', r'FI_EP_MSG'))
    for provider, kind, domain in (('verbs', 'msg', 'verbena0'),
                                   ('verbs;ofi_rxm', 'rdm', 'verbena0'),
                                   ('verbs', 'dgram', 'verbena0-dgram')):
        command = f"fi_pingpong -p '{provider}' -e {kind} -d {domain} -I 100 -c"
        yield Case(f'fi_pingpong -p {provider} -e {kind}', f'{command} -B {{port}}',
                   f'{command} -P {{port}} {HOST}',
                   client_expect=(r'^64\s+100\s',))


def mpi_cases():
    ring = (r'ring ok: 2 ranks',)
    for transport, shown in (('rc_v', 'rc_verbs'), ('ud_v', 'ud_verbs')):
        yield Case(f'Open MPI, pml ucx over {shown}',
                   f'{OPEN_MPI} --mca pml ucx --mca osc ucx --mca btl ^openib,ofi {{ring}}',
                   env=ucx_environment(transport), mpi='openmpi',
                   server_expect=ring + (rf'{shown}/verbena0:1',))
        yield Case(f'MPICH over {shown}', 'mpirun.mpich -n 2 {ring}', mpi='mpich',
                   env={**ucx_environment(transport), 'MPIR_CVAR_NOLOCAL': '1'},
                   server_expect=ring + (rf'{shown}/verbena0:1',))
    yield Case('Open MPI, btl openib',
               f'{OPEN_MPI} --mca pml ob1 --mca btl openib,self --mca btl_openib_allow_ib 1'
               ' --mca btl_openib_warn_no_device_params_found 0 --mca osc pt2pt {ring}',
               mpi='openmpi', component=('btl', 'openib'), server_expect=ring)
    # Open MPI 5 has windows over a BTL only.
    program = '{ring} two-sided' if openmpi.lacks('osc', 'pt2pt') else '--mca osc pt2pt {ring}'
    yield Case('Open MPI, mtl ofi',
               f'{OPEN_MPI} --mca pml cm --mca mtl ofi --mca btl self'
               f" --mca mtl_ofi_provider_include 'verbs;ofi_rxm' {program}",
               mpi='openmpi', component=('mtl', 'ofi'), server_expect=ring)


def representative():
    """A few rows to repeat under other conditions."""
    yield pingpong('rc', '-c')
    yield pingpong('ud', '-c -e')
    yield pingpong('srq', '-c')
    yield perftest('ib_send_lat', '-c RC')
    yield perftest('ib_write_bw', '-c RC')
    yield perftest('ib_read_lat', '-c RC')
    yield perftest('ib_atomic_lat', '-A FETCH_AND_ADD')
    yield perftest('ib_send_bw', '-R')
    yield Case('rping -V', f'rping -a {HOST} -p {{port}} -v -C 20 -V -s',
               f'rping -a {HOST} -p {{port}} -v -C 20 -V -c',
               client_expect=(r'ping data: rdma-ping-',), by_tcp=False)
    yield ucx_perftest('tag_bw -s 262144', 'rc_v', 'rc_verbs')


def conditions():
    for case in representative():
        yield dataclasses.replace(case, name=f'{case.name} [ordinary user]', ordinary_user=True)
        yield dataclasses.replace(case, name=f'{case.name} [copy by the owner]', copy='agent')
        yield dataclasses.replace(case, name=f'{case.name} [two nodes]', nodes=2)


def all_cases():
    for group in (file_cases, tool_cases, pingpong_cases, perftest_cases, qperf_cases, rdmacm_cases,
                  ucx_cases, libfabric_cases, mpi_cases, conditions):
        yield from group()
