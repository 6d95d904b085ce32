"""Debian's kernel, taken out of its package: nothing is installed, and the host boots as before."""
import lzma
import os
import pathlib
import re
import shutil
import subprocess

META_PACKAGE = 'linux-image-amd64'
APT_SECONDS = 240

# Modules for the root file system, the console and RDMA, in load order.
MODULES = ['virtio_pci', 'virtio_console', '9p', '9pnet_virtio', 'overlay', 'virtio_net', 'veth',
           'crc32_generic', 'crc32c_generic', 'rdma_rxe', 'rdma_ucm', 'ib_uverbs']


XZ = b'\xfd7zXZ\0'
SIGNATURE_MARK = b'~Module signature appended~\n'
SIGNATURE_INFO = 12 # bytes in front of the mark; the last four are the signature's length


class Unavailable(Exception):
    """Why no virtual machine can run here, or None."""


def run(*words, cwd=None):
    done = subprocess.run(words, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=APT_SECONDS)
    if done.returncode:
        last = (done.stdout.strip().splitlines() or ['no output'])[-1]
        raise Unavailable(f'{" ".join(words[:2])}: {last}')
    return done.stdout


def package_name():
    found = re.search(r'Depends: (linux-image-\d\S+)', run('apt-cache', 'depends', META_PACKAGE))
    if not found:
        raise Unavailable(f'apt knows no {META_PACKAGE}: run apt-get update')
    return found.group(1)


def download(package, directory):
    try:
        run('apt-get', 'download', package, cwd=directory)
    except Unavailable:
        if os.geteuid():
            raise
        # The lists name a version that the archive no longer has.
        run('apt-get', '-q', 'update')
        run('apt-get', 'download', package, cwd=directory)
    return next(directory.glob('*.deb'))


def release_of(directory):
    return next(directory.glob('boot/vmlinuz-*')).name.removeprefix('vmlinuz-')


def unpack_image(directory):
    """Avoid what is slowest on an emulated processor."""
    packed = next(directory.glob('boot/vmlinuz-*')).read_bytes()
    start = packed.find(XZ)
    if start < 0:
        raise Unavailable("the kernel's image is not compressed with xz")
    (directory / 'vmlinux').write_bytes(lzma.LZMADecompressor().decompress(packed[start:]))


def unsigned(module):
    """A module without its signature, which is optional and slow to check."""
    if not module.endswith(SIGNATURE_MARK):
        return module
    end = len(module) - len(SIGNATURE_MARK)
    length = int.from_bytes(module[end - 4:end], 'big')
    return module[:end - SIGNATURE_INFO - length]


class Kernel:
    """The unpacked package: its image, and those of its modules that are wanted."""

    def __init__(self, directory):
        self.image = directory / 'vmlinux'
        self.release = release_of(directory)
        self.modules = directory / 'lib' / 'modules' / self.release

    def wanted_modules(self):
        """Paths of modules, each after those it depends on."""
        depends = {}
        for line in (self.modules / 'modules.dep').read_text().splitlines():
            path, _, others = line.partition(':')
            depends[path] = others.split()
        by_name = {pathlib.PurePath(path).name.split('.')[0].replace('-', '_'): path
                   for path in depends}
        order = []

        def add(path):
            if path not in order:
                for other in reversed(depends[path]):
                    add(other)
                order.append(path)

        for name in MODULES:
            if name in by_name:
                add(by_name[name])
        return [self.modules / path for path in order]


def obtain(cache):
    """The kernel of the running Debian release, from the cache or from the archive."""
    package = package_name()
    place = cache / package
    if not place.exists():
        part = cache / f'{package}.{os.getpid()}'
        part.mkdir(parents=True)
        try:
            archive = download(package, part)
            run('dpkg-deb', '-x', str(archive), str(part))
            archive.unlink()
            run('busybox', 'depmod', '-b', str(part), release_of(part))
            unpack_image(part)
            part.rename(place)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return Kernel(place)
