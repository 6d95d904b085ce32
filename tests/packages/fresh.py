# SPDX-License-Identifier: BSD-2-Clause
"""A fresh Debian in a directory: what a user has who installs the packages on a new machine.

Needs root and debootstrap. Each command runs in mount and process namespaces of its own, so nothing stays
mounted and no process stays alive after it, whatever it did.
"""
import glob
import os
import shutil
import subprocess

from common import Failure

DEFAULT_MIRROR = 'http://deb.debian.org/debian'
PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
# What lets this machine reach mirrors and npm's registry: name servers, proxies, certificates.
SETTINGS = ['/etc/resolv.conf', '/etc/hosts', '/etc/npmrc', '/root/.npmrc', '/etc/ssl/certs',
            '/usr/share/ca-certificates', '/usr/local/share/ca-certificates']
PASSED_ON = ['http_proxy', 'https_proxy', 'no_proxy', 'NODE_EXTRA_CA_CERTS']
# Mounts inside the root, then becomes the command. $1 is the root, $2 "lo" for a network of its own.
ENTER = '''set -e
mount -t proc proc "$1/proc"
mount -t sysfs sys "$1/sys"
mount --rbind /dev "$1/dev"
mount -t tmpfs -o size=1g tmpfs "$1/dev/shm"
[ "$2" != lo ] || ip link set lo up
root=$1
shift 2
exec chroot "$root" "$@"
'''


def reason_why_not():
    """Why this machine cannot make a fresh root; None if it can."""
    if os.geteuid():
        return 'only root can make a fresh root'
    if not shutil.which('debootstrap'):
        return 'debootstrap is not installed'
    return None


def suite():
    with open('/etc/os-release', encoding='utf-8') as file:
        rows = dict(line.strip().split('=', 1) for line in file if '=' in line)
    return rows.get('VERSION_CODENAME', 'stable').strip('"')


def mirror():
    """The mirror of this machine's sources."""
    for path in glob.glob('/etc/apt/sources.list.d/*.sources'):
        with open(path, encoding='utf-8') as file:
            for line in file:
                words = line.split()
                if words[:1] == ['URIs:'] and words[1].rstrip('/').endswith('/debian'):
                    return words[1]
    return DEFAULT_MIRROR


def copy_settings(root):
    for path in SETTINGS:
        target = root + path
        if os.path.isdir(path):
            shutil.copytree(path, target, symlinks=True, dirs_exist_ok=True)
        elif os.path.exists(path):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copyfile(path, target)


def make_base(archive):
    """Debian's smallest installation as a tar file; made once and kept."""
    if os.path.exists(archive):
        return
    tree = archive + '.tree'
    shutil.rmtree(tree, ignore_errors=True)
    with open(archive + '.log', 'w', encoding='utf-8') as log:
        done = subprocess.run(['debootstrap', '--variant=minbase', suite(), tree, mirror()], stdout=log,
                              stderr=subprocess.STDOUT, timeout=1200)
    if done.returncode:
        with open(archive + '.log', encoding='utf-8') as log:
            raise Failure(f'debootstrap: {log.read()[-300:]}')
    subprocess.run(['tar', '-C', tree, '-cf', archive + '.new', '.'], check=True)
    os.rename(archive + '.new', archive)
    shutil.rmtree(tree)


class FreshRoot:
    """One fresh Debian, below `path`."""

    def __init__(self, archive, path):
        make_base(archive)
        self.path = path
        os.makedirs(path)
        subprocess.run(['tar', '-C', path, '-xf', archive], check=True)
        copy_settings(path)
        # Nobody needs this root after a crash, and waiting for the disk is most of what dpkg does.
        with open(os.path.join(path, 'etc/dpkg/dpkg.cfg.d/unsafe-io'), 'w', encoding='ascii') as file:
            file.write('force-unsafe-io\n')

    def run(self, command, *, network=False, user='root', directory='/', environment=None, patience=600):
        """Run a shell command; returns its status and output."""
        settings = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        settings |= {'PATH': PATH, 'HOME': '/root' if user == 'root' else f'/home/{user}',
                     'LANG': 'C.UTF-8', 'TERM': 'dumb', 'DEBIAN_FRONTEND': 'noninteractive'}
        settings |= environment or {}
        words = ['unshare', '--mount', '--pid', '--fork', '--kill-child', '--propagation', 'private']
        words += [] if network else ['--net']
        words += ['sh', '-c', ENTER, 'enter', self.path, 'host' if network else 'lo']
        words += ['setpriv', f'--reuid={user}', f'--regid={user}', '--init-groups', 'env', '-i']
        words += [f'{name}={value}' for name, value in settings.items()]
        words += ['sh', '-c', f'cd {directory} && {command}']
        done = subprocess.run(words, text=True, errors='replace', stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=patience)
        return done.returncode, done.stdout

    def must(self, command, **options):
        status, output = self.run(command, **options)
        if status:
            raise Failure(f'{command}: status {status}: {output[-400:]}')
        return output

    def files(self):
        """Every path, but for places where programs leave logs and caches."""
        skipped = {f'{self.path}{name}' for name in (
            '/proc', '/sys', '/dev', '/run', '/tmp', '/packages', '/var/log', '/var/cache', '/var/lib/apt',
            '/var/lib/dpkg/updates', '/var/lib/dpkg/triggers')}
        found = set()
        for where, folders, names in os.walk(self.path):
            folders[:] = [name for name in folders if os.path.join(where, name) not in skipped]
            found.update(os.path.join(where, name)[len(self.path):] for name in folders + names)
        return {path for path in found if not path.endswith('-old')}
