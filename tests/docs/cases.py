# SPDX-License-Identifier: BSD-2-Clause
"""What the pages leave unsaid about their commands.

A command that is in no table runs as it is written, and must succeed and print what the page shows below it.
"""
import dataclasses
import os
import re
import shutil
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


@dataclasses.dataclass
class Case:
    prints: tuple = ()  # regular expressions; besides what the page shows
    instead: str = ''   # what another release of a foreign program prints in place of what the page shows
    statuses: tuple = (0,)
    skip: str = ''      # why it is never run
    long: str = ''      # why only "make test-long" runs it
    add: str = ''       # options that make it shorter without changing the form of its output
    needs: tuple = ()   # programs
    possible: str = ''  # a command that must succeed
    endless: bool = False # a server that is stopped when the rest of its block is done
    without_rdma: bool = False # on machines only whose kernel has no RDMA devices
    exact: bool = False # the page's numbers are those of every run


def skip(reason):
    return Case(skip=reason)


def prints(*patterns, **settings):
    return Case(prints=patterns, **settings)


def unseen(status, **settings):
    """A program that finds no RDMA device."""
    return Case(statuses=(status,), without_rdma=True, **settings)


# Open MPI 5, of a PML that it cannot use
NO_PML = r'No components were able to be opened in the pml framework'
STOPPED = Case(prints=(r'',), statuses=(143,), endless=True)
MEASURED = r'[1-9]\d* measured, \d+ skipped, 0 failed'
MATCH = r'of \d+ independent values \d+ are predicted within 5%'


def headline():
    """What README.md says of all values is what the command prints."""
    with open(os.path.join(ROOT, 'README.md'), encoding='utf-8') as file:
        return re.search(r'Of (\d+ independent values \d+ are predicted within 5%, \d+ within 10%)', file.read())[1]


HEADLINE = headline()
RING = r'ring ok: \d+ ranks'
VERIFIED = r'^Verification: successful'
EXCHANGED = r'^exchange +verified'
LIMITS = (0, 3)  # a busy machine exceeds limits of the live adapter
TINY = '--iterations 20 --warmup 2 --repetitions 2'
FEW = TINY + ' --sizes 8,64K'

# What kinds of commands print, if the page does not show it: the first row that applies counts.
KINDS = [
    (r'> /dev/null &$', prints(r'\A\Z')),
    (r'\./program', prints(RING)),
    (r'^verbena check', prints(r'no bug found')),
    (r'ibv_rc_pingpong', prints(r'\d+ iters in [\d.]+ seconds')),
    (r'ib_send_lat', prints(r'^ 2 +1000 +[\d.]+')),
    (r'^verbena bench', prints(MEASURED)),
    (r'verbena nas ', prints(VERIFIED)),
    (r'^verbena reproduce', prints(MATCH)),
    (r'^verbena goal .*-o ', prints(r'\A\Z')),
    (r'^verbena sweep', prints(r'^ +\d+ +[\d.]+$')),
    (r'verbena replay', prints(r'^total time |^rank,finish_ns')),
    (r'^verbena doctor$', prints(r'^library +yes', r'^The software adapter runs on this machine\.')),
]

NESTED = 'it would run this test'
BUILDS = '"make test" has built it'
REPRODUCES = 'takes minutes'
KERNEL = 'takes half a minute on two cores'
TOUR = 'the quick tour takes a minute or two'

TWO_HOSTS = 'needs another host; tests/wire does it between network namespaces'
CALIBRATES = 'tests/calibrate does it, on a smaller set'
RUNNER = 'for a runner; tests/packages runs the steps in a fresh Debian'

CASES = {
    'README.md': {
        'make && export PATH=$PWD/build:$PATH': skip(BUILDS),
        'make run': Case(long=TOUR, prints=(MEASURED, r'build/tour\.html')),
        'make test': skip(NESTED),
        'verbena run --fabric ci-17 -- ./my_rdma_test': prints(EXCHANGED),
        'verbena run --explain-errors --sanitize -- ./my_rdma_test': prints(EXCHANGED),
        'verbena run --wire lo -- ibv_devinfo -v': prints(r'link_layer:\s+Ethernet', r'RoCE v2'),
        'verbena bench': Case(long=TOUR, prints=(MEASURED,)),
        # Of a busy machine no advice may follow.
        'verbena bench latency bw --quick --rounds 8 -o a.json': prints(MEASURED, add=TINY + ' --adapter hdr100'),
        'verbena compare a.json b.json': prints(r'latency', r'bw'),
        'verbena advise a.json': prints(r'^poll-or-block: '),
        'verbena list adapters': prints(r'^\s*mt25208\s', r'^\s*ibm12x\s', r'^\s*hdr100\s'),
        'verbena bench latency --quick --adapter mt23108 --explain': prints(r'doorbell', r'bus read', MEASURED),
        'verbena bench latency --sizes 4K --iterations 10 --adapter hdr100 --stats --trace t.json --pcap t.pcap':
            prints(MEASURED, r'Model of hdr100', r'packets +out \d+'),
        'verbena bench bw --quick --adapter mt25208 --verify --faults drop=1e-2,seed=7': prints(MEASURED),
        'verbena bench victim --quick --adapter roce40': prints(MEASURED),
        'verbena replay doubling.goal --adapter ndr400': prints(r'ranks +1024 on 1024 nodes', r'total time'),
        'verbena reproduce': Case(long=REPRODUCES, prints=(HEADLINE,)),
        'verbena reproduce pcie --set link.rate=2GB/s': Case(long=REPRODUCES, prints=(r'BEFORE', MATCH)),
        'verbena report a.json b.json': prints(r'report\.html'),
        'make install prefix=/usr DESTDIR=/tmp/stage': skip('tests/install does it'),
    },
    'CONTRIBUTING.md': {
        'make deps': skip('installs packages'),
        'make': skip(BUILDS),
        'build/verbena run -- ibv_devinfo': prints(r'hca_id:\s+verbena0', r'PORT_ACTIVE'),
        'tests/run --list': prints(r'^docs ', r'^unit '),
        'tests/run layers unit cli': skip('"make test" runs them'),
        'make asan && build-asan/verbena run -- build-asan/examples/exchange':
            skip('tests/unit builds with sanitizers'),
    },
    'docs/adapters.md': {
        "echo 'link.mtu = 1500 B' >> mine.adapter": prints(r'\A\Z'),
        'verbena bench latency --quick --adapter ./mine.adapter': Case(statuses=(2,)),
    },
    'docs/calibrate.md': {
        'verbena bench examples/sweeps/calibrate.txt -o measured.json': skip(CALIBRATES),
        'verbena calibrate measured.json --start hdr100 -o mine.adapter --hold-out inline,bibw --page mine.html':
            skip(CALIBRATES),
        'verbena bench bw --adapter ./mine.adapter --set link.rate=25GB/s': skip(CALIBRATES),
        'verbena calibrate --paper miba': prints(r'bus\.\w+ = .*# fitted, ', r'FITTED'),
        'verbena calibrate --paper pcie,mem,miba': Case(long='takes minutes', prints=(r'# mt25208.adapter', r'FITTED')),
        'verbena calibrate --paper mem,pcie --leave-one-out --refit mem.f3b.scatter': Case(long='takes minutes', prints=(r'REFITTED',)),
        'verbena calibrate --paper clan --leave-one-out --rows clan.t1.sr-poll.p,clan.t1.wr-poll.p,clan.f2.bw.p3':
            Case(long='takes minutes', prints=(r'left out of its fit', r'REFITTED')),
    },
    'docs/ci.md': {
        'git clone --depth 1 https://github.com/OWNER/verbena /tmp/verbena': skip(RUNNER),
        '/tmp/verbena/tools/setup build && make -C /tmp/verbena': skip(RUNNER),
        'export PATH=/tmp/verbena/build:$PATH': skip(RUNNER),
        'verbena run -- ./my_rdma_test': skip(RUNNER),
        'export VERBENA_FABRIC=ci-$$': skip(RUNNER),
        'verbena run -- ./server &': skip(RUNNER),
        'verbena run -- ./client localhost': skip(RUNNER),
    },
    'docs/clusters.md': {
        'make install prefix=/shared/verbena': skip('tests/install does it'),
        'export OMPI_MCA_mca_base_component_path=$PWD/build/lib/openmpi:SYSTEM_DEFAULT': prints(r'\A\Z'),
        'mpirun --hostfile hosts -n 4 --map-by node --mca pml cm --mca mtl verbena ./program':
            skip('needs two hosts'),
    },
    'docs/inside.md': {
        'verbena run --adapter mt25208 --faults reorder=0.05,duplicate=0.01 -- ./program': prints(EXCHANGED),
        'tshark -r a.pcap --disable-protocol rpcordma --disable-protocol infiniband.eoib':
            prints(r'InfiniBand +\d+ RC Send Only', needs=('tshark',)),
        'tshark -r b.pcap --disable-protocol rpcordma --disable-protocol infiniband.eoib':
            prints(r'RRoCE +\d+ RC Send Only', needs=('tshark',)),
    },
    'docs/scale.md': {
        "printf 'num_ranks 2; rank 0 { l1: recv 8b from 1 } rank 1 { l1: recv 8b from 0 }' > waits.goal": prints(r'\A\Z'),
        'verbena replay waits.goal': Case(statuses=(1,), exact=True),
        'verbena sweep docs/scale.sweep -o scale.json': Case(long='takes minutes', prints=(r'^ +1024 ',)),
        'verbena report scale.json -o scale.html': Case(long='shows what the sweep before it has written', prints=(r'scale\.html',)),
    },
    'docs/mpi.md': {
        'export OMPI_MCA_mca_base_component_path=$PWD/build/lib/openmpi:SYSTEM_DEFAULT': prints(r'\A\Z'),
        'ompi_info --param mtl verbena --level 9': prints(r'mtl_verbena_policy', r'mtl_verbena_report'),
        'tests/mpi/run --all': skip('"make test-long" runs it as mpi-all'),
        'tests/mpi/run --seeds 1000 --first 1': skip('"make test-long" runs it as mpi-seeds'),
        'tests/mpi/run --seeds 240 --on ibm12x': skip('as mpi-seeds of "make test-long", for longer'),
    },
    'docs/nas.md': {
        'verbena nas is --class B -n 8': Case(long=KERNEL, prints=(VERIFIED,)),
        'verbena nas ft --class A -n 4 -o ft.json': Case(long=KERNEL, prints=(VERIFIED,)),
        'mpirun -n 4 build/libexec/verbena-nas cg --class W': prints(VERIFIED),
        'verbena nas is --class B -n 4 --adapter mt25208 --ports 1': Case(long=KERNEL, prints=(VERIFIED,)),
        'verbena nas ft --class A -n 8 --ranks-per-node 2 --adapter mt23108 --ports 1':
            Case(long=KERNEL, prints=(VERIFIED,)),
        'verbena reproduce nas': Case(long=REPRODUCES, prints=(MATCH,)),
    },
    'docs/programs.md': {
        'verbena clean --dry-run': prints(r'nothing to clean up|Would remove \d+ stale segments'),
        'verbena clean': prints(r'nothing to clean up|Removed \d+ stale segments'),
    },
    'docs/rails.md': {
        'verbena bench mpi-bw --policies striping,epc,adaptive --qps 4': prints(MEASURED, add='--quick'),
    },
    'docs/real-adapters.md': {
        'verbena bench': Case(long=TOUR, prints=(MEASURED,)),
        'verbena bench latency bw --device mlx5_1 --port 1 -o here.json': skip('needs an RDMA adapter'),
    },
    'docs/report.md': {
        'verbena bench -o tour.json && verbena report tour.json': Case(long=TOUR, prints=(MEASURED, r'report\.html')),
        'verbena report a.json b.json -o compared.html': prints(r'compared\.html'),
        'verbena reproduce': Case(long=REPRODUCES, prints=(HEADLINE, r'reproduction')),
    },
    'docs/reproduce.md': {
        'verbena reproduce': Case(long=REPRODUCES, prints=(HEADLINE,)),
        'verbena reproduce --quick': Case(long=REPRODUCES, prints=(MATCH,)),
        'verbena reproduce pcie mem.f3a.icm': Case(long=REPRODUCES, prints=(MATCH,)),
        'verbena reproduce nas': Case(long=REPRODUCES, prints=(MATCH,)),
        'verbena reproduce clan.t1.sr-poll.p --quick --check-convergence': prints(MATCH, r'0 of 1 rows'),
        'verbena reproduce --strict': Case(long=REPRODUCES, statuses=(3,), prints=(MATCH,)),
        'for a in mem memfree; do verbena bench icm-qp icm-scatter --qps 1,64,128,256,512,1024 --sizes 1K '
        '--iterations 5 --warmup 2 --repetitions 1 --adapter mt25218-$a -o $a.json done':
            prints(r'model of mt25218-mem ', r'model of mt25218-memfree ', MEASURED),
        'verbena report mem.json memfree.json -o connections.html': prints(r'connections\.html'),
        'VERBENA_PAPERS=mine verbena reproduce mine': prints(MATCH),
        'verbena reproduce mem --set link.rate=2GB/s -o faster': Case(long=REPRODUCES, exact=True),
    },
    'docs/results.md': {
        'verbena bench latency bw --quick --rounds 8 -o a.json': prints(MEASURED, add=TINY),
        'verbena bench latency bw --quick --rounds 8 -o b.json': prints(MEASURED, add=TINY),
        'verbena compare a.json b.json': prints(r'DETECTABLE', r'\d+ better, \d+ worse'),
    },
    'docs/wire.md': {
        'verbena run --wire eth0 -- ib_write_bw -x 0': skip(TWO_HOSTS),
        'verbena run --wire eth0 -- ib_write_bw -x 0 hostA': skip(TWO_HOSTS),
        'verbena run --wire eth0 -- rping -s -C 10': skip(TWO_HOSTS),
        'verbena run --wire eth0 -- rping -c -a hostA -C 10': skip(TWO_HOSTS),
        'verbena run --wire 10.0.0.7 -- ibv_rc_pingpong -g 0': skip(TWO_HOSTS),
        'verbena run --wire 10.0.0.0/24 -- ibv_devinfo': skip(TWO_HOSTS),
        "bench/wire --rounds 1 --only 'veth: send latency'":
            prints(r'send latency 8 B : UDP|not measured: no network namespaces'),
        'verbena bench --wire eth0 --listen': skip(TWO_HOSTS),
        'verbena bench latency bw --wire eth0 --connect hostA': skip(TWO_HOSTS),
        'verbena mpirun --wire 10.0.0.0/24 --hostfile hosts -n 8 -- ./program': skip(TWO_HOSTS),
        'verbena run --wire lo -- ibv_devinfo -v': prints(r'link_layer:\s+Ethernet', r'RoCE v2'),
    },
    'docs/suite.md': {
        'verbena bench latency --sizes 8 --adapter mt25208 -o - 2> /dev/null | python3 -m json.tool | head':
            prints(r'"schema": "verbena-results/1"'),
        'verbena bench': Case(long=TOUR, prints=(MEASURED,)),
        'verbena list experiments': prints(r'latency', r'mpi-barrier', r'MIBA figure 5a'),
        'verbena bench latency bw -o results.json': prints(MEASURED, r'results: results\.json', add=FEW),
        "verbena bench latency bw --fail-if 'latency.send poll.p99[8]>10us; bw.send[64K]<5GB/s'":
            prints(r'2 measured', statuses=LIMITS, add=FEW),
    },
    'docs/troubleshooting.md': {
        'verbena run -- ibv_devinfo': prints(r'hca_id:\s+verbena0', r'PORT_ACTIVE'),
        'ibv_devices': unseen(1),
        'ib_send_lat': unseen(1),
        'rping -s': unseen(19),
        'fi_info -p verbs': unseen(61),
        """/usr/bin/python3 -c 'import pyverbs.device as d; d.Context(name="verbena0")'""":
            unseen(1, possible='/usr/bin/python3 -c "import pyverbs"'),
        'UCX_TLS=rc_v,self UCX_NET_DEVICES=verbena0:1 ucx_info -e -u t': unseen(0),
        'mpirun -n 2 --mca pml ucx -x UCX_TLS=rc_v,self ./program': unseen(1, instead=NO_PML),
        'mpirun -n 2 --mca mca_base_component_path $PWD/build/lib/openmpi:SYSTEM_DEFAULT '
        '--mca pml cm --mca mtl verbena ./program': unseen(1),
        'mpirun -n 2 --mca pml cm --mca mtl verbena ./program': Case(statuses=(1,), instead=NO_PML),
        "verbena run -- sh -c 'ucx_perftest > /dev/null & sleep 2; ucx_perftest localhost -t tag_lat -n 1000; wait'":
            Case(possible='! ldd "$(command -v ucx_perftest)" | grep libmpi'),
        'verbena run -- ib_send_lat -d mlx5_0': Case(statuses=(1,)),
        'verbena run -- busybox true': Case(possible='ldd /usr/bin/busybox 2>&1 | grep "not a dynamic"'),
        'verbena run --fabric one -- ibv_rc_pingpong > /dev/null &': STOPPED,
        'verbena run --fabric two -- ibv_rc_pingpong localhost': Case(statuses=(1,)),
        'verbena run --fabric two -- rping -c -a 127.0.0.1 -C 1': Case(statuses=(255,)),
        'verbena run --fabric three -- rping -s > /dev/null &': STOPPED,
        'verbena run --fabric three --nodes 2 --node 1 -- ibv_devices': Case(statuses=(1,)),
        'VERBENA_SHM_DIR=/nowhere verbena run -- ibv_devices': Case(statuses=(1,)),
        "unshare -rm sh -c 'mount -t tmpfs -o size=1m tmpfs /dev/shm && verbena run -- ibv_devices'":
            Case(statuses=(1,), possible='[ -z "$VERBENA_SHM_DIR" -o "$VERBENA_SHM_DIR" = /dev/shm ] && unshare -rm true'),
    },
    'man/verbena-run.1.in': {
        'verbena run --wire eth0 -- rping -s -C 10': skip(TWO_HOSTS),
        'verbena run --wire eth0 -- rping -c -a hostA -C 10': skip(TWO_HOSTS),
    },
    'man/verbena-bench.1.in': {
        'verbena bench': Case(long=TOUR, prints=(MEASURED,)),
        'verbena bench latency bw --sizes 8,64K -o results.json': prints(MEASURED, add=TINY),
        "verbena bench latency --fail-if 'latency.send.p99[8]>10us'": prints(r'1 measured', statuses=LIMITS, add=FEW),
        'verbena bench all --device mlx5_0 --connect node17 -o mlx5.json': skip('needs two hosts'),
    },
    'man/verbena-sweep.1.in': {
        "echo 'allreduce pattern=allreduce-ring,allreduce-doubling ranks=2..64 size=64K adapter=hdr100,ndr400' > s.sweep":
            prints(r'\A\Z'),
        'verbena report s.json -o s.html': prints(r's\.html'),
        "srun -n 4 sh -c 'verbena sweep s.sweep --part $((SLURM_PROCID + 1))/4 -o s-$SLURM_PROCID.json'":
            skip('needs a batch system'),
        'parallel -S host1,host2 verbena sweep $PWD/s.sweep --part {}/2 -o $PWD/s-{}.json ::: 1 2':
            skip('needs several hosts'),
    },
    'man/verbena-nas.1.in': {
        'verbena nas is --class B -n 8': Case(long=KERNEL, prints=(VERIFIED,)),
        'verbena nas ft --class A -n 4 -o ft.json': Case(long=KERNEL, prints=(VERIFIED,)),
    },
}


RING_SOURCE = os.path.join(ROOT, 'tests', 'programs', 'mpi_ring.c')


def compile_openmpi(path, _):
    subprocess.run(['mpicc.openmpi', '-O2', '-o', path, RING_SOURCE], check=True)


def compile_both(path, build):
    """A program for whichever MPI starts it."""
    compile_openmpi(path + '.openmpi', build)
    subprocess.run(['mpicc.mpich', '-O2', '-o', path + '.mpich', RING_SOURCE], check=True)
    with open(path, 'w', encoding='utf-8') as file:
        file.write(f'#!/bin/sh\nexec "{path}.${{OMPI_COMM_WORLD_SIZE:+openmpi}}${{PMI_SIZE:+mpich}}"\n')
    os.chmod(path, 0o755)


def copy_exchange(path, build):
    shutil.copy(os.path.join(build, 'examples', 'exchange'), path)


def measure(path, build):
    subprocess.run([os.path.join(build, 'verbena'), 'bench', 'latency', 'bw', '--sizes', '8,64K', '--adapter',
                    'mt25208', '--iterations', '20', '--repetitions', '3', '-o', path], check=True,
                   stdout=subprocess.DEVNULL)


FIXTURES = {'openmpi': compile_openmpi, 'either': compile_both, 'exchange': copy_exchange, 'results.json': measure}
# page -> file in its directory -> the fixture that it is a copy of
PROGRAM = {'program': 'openmpi'}
GIVEN = {
    'docs/clusters.md': PROGRAM,
    'README.md': {**PROGRAM, 'my_rdma_test': 'exchange', 'b.json': 'results.json'},
    'docs/inside.md': {'program': 'exchange'},
    'docs/mpi.md': PROGRAM,
    'docs/rails.md': PROGRAM,
    'docs/report.md': {'a.json': 'results.json', 'b.json': 'results.json'},
    'docs/troubleshooting.md': PROGRAM,
    'docs/virtual-time.md': {'program': 'either'},
    'man/verbena-mpirun.1.in': PROGRAM,
}


def find(page, command):
    case = CASES.get(page, {}).get(command.key)
    if case:
        return case
    short = TINY if page.startswith('docs/experiments/') and not is_modelled(command) else ''
    if command.shown:
        return Case(add=short)
    kind = next((kind for pattern, kind in KINDS if re.search(pattern, command.key)), Case())
    return dataclasses.replace(kind, add=short)


def is_modelled(command):
    return re.search(r'--adapter (?!live)', command.key)


def is_exact(case, command):
    return case.exact or bool(is_modelled(command))


def shorten(case, text):
    """The command with the options added, in front of its comment."""
    if not case.add:
        return text
    comment = re.search(r'\s+# .*$', text)
    end = comment.start() if comment else len(text)
    return f'{text[:end]} {case.add}{text[end:]}'
