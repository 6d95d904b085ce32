# SPDX-License-Identifier: BSD-2-Clause
"""The long tests: they build the packages and the image, and use them in a fresh Debian. They need root, a mirror
of Debian and minutes. The packages stay in build-deb/, what is kept between runs in build-packages/."""
import glob
import os
import re
import shutil

import yaml

import fresh
from common import ROOT, call, require, text_of, version

DEB = os.path.join(ROOT, 'build-deb')
KEPT = os.path.join(ROOT, 'build-packages')
BASE = os.path.join(KEPT, 'base.tar')
OURS = ['libverbena', 'verbena', 'verbena-openmpi', 'libverbena-dev', 'verbena-doc']
PROGRAMS = 'perftest ucx-utils ibverbs-utils' # what a user may have installed besides
USER = 'tester'

# Each starts a server and a client, and shows what the client prints. $! is the server.
PAIR = ('verbena run -- {server} >/tmp/server.log 2>&1 & sleep 2; '
        'timeout 60 verbena run -- {client}; status=$?; '
        'timeout 20 tail --pid=$! -f /dev/null || kill $!; exit $status')
PERFTEST = PAIR.format(server='timeout 60 ib_send_lat', client='ib_send_lat localhost')
UCX = PAIR.format(server='timeout 60 ucx_perftest', client='ucx_perftest localhost -t tag_lat -n 1000')


def files_of(*packages):
    found = [glob.glob(f'{DEB}/{package}_{version()}_*.deb') for package in packages]
    for package, paths in zip(packages, found):
        require(len(paths) == 1, f'{package}: {len(paths)} files in build-deb/')
    return [paths[0] for paths in found]


def fresh_root(scratch):
    os.makedirs(KEPT, exist_ok=True)
    return fresh.FreshRoot(BASE, os.path.join(scratch, 'root'))


def install(root):
    """Installs the packages as a user does, with what apt finds they need."""
    folder = os.path.join(root.path, 'packages')
    os.makedirs(folder, exist_ok=True)
    for path in files_of(*OURS):
        shutil.copy(path, folder)
    root.must('apt-get -q -y install --no-install-recommends /packages/*.deb', network=True)


def purge(root):
    root.must(f'apt-get -q -y purge {" ".join(OURS)}')


# ---- the packages ----

def test_packages_are_built(_):
    said = call('make', '--no-print-directory', 'deb', cwd=ROOT, patience=1500)
    for path in files_of(*OURS):
        require(os.path.basename(path) in said, f'{path} is not reported')


def test_lintian(_):
    if not shutil.which('lintian'):
        return 'lintian is not installed'
    changes = glob.glob(f'{DEB}/verbena_{version()}_*.changes')
    require(changes, 'no .changes file in build-deb/')
    call('lintian', '--allow-root', '--fail-on', 'error', *changes, patience=600)
    return None


def compile_ring(root):
    """An MPI program that was built elsewhere, like any user's."""
    target = os.path.join(root.path, 'usr/local/bin/mpi_ring')
    call('mpicc.openmpi', '-o', target, os.path.join(ROOT, 'tests/programs/mpi_ring.c'))


def check_programs(root):
    """perftest, UCX, MPI and the suite, as an ordinary user on a machine without other networks."""
    def run(command, **environment):
        return root.must(command, user=USER, directory=f'/home/{USER}', environment=environment, patience=180)
    require(run('verbena --version') == f'verbena {version()}\n', 'verbena --version')
    require('The software adapter runs on this machine' in run('verbena doctor'), 'verbena doctor')
    require(re.search(r'^ 2\s+1000\s+[\d.]+', run(PERFTEST), re.M), 'ib_send_lat printed no latency')
    ucx = run(UCX, UCX_TLS='rc_v', UCX_NET_DEVICES='verbena0:1')
    require(re.search(r'^Final:\s+1000\s+[\d.]+', ucx, re.M), f'ucx_perftest: {ucx[-300:]}')
    ring = run('verbena mpirun -n 2 --nodes 2 --qps 2 -- mpi_ring', OMPI_MCA_mtl_verbena_report='1')
    carried = sum(map(int, re.findall(r'rail_bytes (\d+)', ring)))
    require('ring ok' in ring and carried > 1 << 20, f'mpi_ring, {carried} bytes over rails: {ring[-300:]}')
    require('verif' in run('verbena nas is --class S -n 2').lower(), 'verbena nas')
    run('verbena bench latency --quick --adapter mt25208 -o a.json && verbena report a.json -o a.html')
    page = os.path.join(root.path, f'home/{USER}/a.html')
    require(os.path.getsize(page) > 10000, 'verbena report wrote no page')


def test_packages_in_a_fresh_debian(scratch):
    why_not = fresh.reason_why_not()
    if why_not:
        return why_not
    root = fresh_root(scratch)
    root.must('apt-get -q update && apt-get -q -y install --no-install-recommends ' + PROGRAMS, network=True)
    root.must(f'useradd --create-home {USER}')
    compile_ring(root)
    # The first time apt also brings what the packages depend on; these stay.
    install(root)
    purge(root)
    before = root.files()
    install(root)
    check_programs(root)
    purge(root)
    home = f'/home/{USER}/'
    left = {path for path in root.files() - before if not path.startswith(home)}
    require(not left, f'purging leaves {sorted(left)[:5]}')
    lost = before - root.files()
    require(not lost, f'purging takes {sorted(lost)[:5]} along')
    return None


# ---- the image ----

def buildah(*words, patience=1800):
    return call('buildah', '--root', os.path.join(KEPT, 'images'), '--runroot', os.path.join(KEPT, 'run'),
                '--storage-driver', 'vfs', *words, patience=patience)


def test_image(scratch):
    why_not = fresh.reason_why_not() or (None if shutil.which('buildah') else 'buildah is not installed')
    if why_not:
        return why_not
    root = fresh_root(scratch)
    base = re.search(r'^FROM (\S+)', text_of('Containerfile'), re.M).group(1)
    try:
        container = buildah('from', 'scratch').split()[-1]
        buildah('add', '--quiet', container, root.path, '/')
        buildah('commit', '--quiet', container, base)
        buildah('rm', container)
        buildah('build', '--isolation', 'chroot', '--pull=never', '--network', 'host', '--tag', 'verbena',
                '--file', os.path.join(ROOT, 'Containerfile'), ROOT)
        used = buildah('from', '--pull-never', 'verbena').split()[-1]
        shown = buildah('run', '--isolation', 'chroot', used, '--', 'sh', '-c',
                        'verbena --version && VERBENA_SHM_DIR=/tmp verbena run -- ibv_devinfo && ls -A / && du -xsm /')
    finally:
        shutil.rmtree(KEPT + '/images', ignore_errors=True)
        shutil.rmtree(KEPT + '/run', ignore_errors=True)
    require(f'verbena {version()}' in shown and 'verbena0' in shown, f'it prints {shown[-300:]}')
    require('src' not in shown.split(), 'the sources are in the image')
    return None


# ---- the action ----

def test_action_in_a_fresh_debian(scratch):
    """The steps of action.yml as the runner carries them out in a container job."""
    why_not = fresh.reason_why_not()
    if why_not:
        return why_not
    root = fresh_root(scratch)
    root.must('apt-get -q update && apt-get -q -y install --no-install-recommends ibverbs-utils', network=True)
    call('git', 'clone', '-q', ROOT, os.path.join(root.path, 'action'))
    path = fresh.PATH
    for step in yaml.safe_load(text_of('action.yml'))['runs']['steps']:
        with open(os.path.join(root.path, 'step.sh'), 'w', encoding='utf-8') as file:
            file.write(step['run'])
        root.must('bash -e -o pipefail /step.sh', network=True, patience=1200, environment={
            'GITHUB_ACTION_PATH': '/action', 'GITHUB_PATH': '/github-path', 'PATH': path})
        with open(os.path.join(root.path, 'github-path'), encoding='utf-8') as file:
            path = ':'.join(file.read().split() + [fresh.PATH])
    shown = root.must('verbena run -- ibv_devinfo', environment={'PATH': path})
    require('verbena0' in shown, f'after the action: {shown[-300:]}')
    return None


TESTS = [test_packages_are_built, test_lintian, test_packages_in_a_fresh_debian, test_image,
         test_action_in_a_fresh_debian]
