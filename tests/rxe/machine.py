"""Virtual machines that see the host's files and run one command on them."""
import os
import pathlib
import selectors
import shutil
import subprocess
import tempfile
import time

import kernel

HERE = pathlib.Path(__file__).resolve().parent
QEMU = 'qemu-system-x86_64'
MEMORY = '1G'
WIRE_MTU = 9000
LAST_LINES = 6


def newc(archive, name, content, mode):
    """One member of an initial RAM file system."""
    path = name.encode() + b'\0'
    fields = [newc.number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(path), 0]
    newc.number += 1
    header = b'070701' + b''.join(b'%08X' % field for field in fields)
    archive.write(header + path + b'\0' * (-(len(header) + len(path)) % 4))
    archive.write(content + b'\0' * (-len(content) % 4))


newc.number = 1


def write_initramfs(path, boot, command, hostname):
    busybox = shutil.which('busybox')
    modules = boot.wanted_modules()
    with open(path, 'wb') as archive:
        for directory in ('bin', 'modules'):
            newc(archive, directory, b'', 0o040755)
        newc(archive, 'bin/busybox', pathlib.Path(busybox).read_bytes(), 0o100755)
        newc(archive, 'init', (HERE / 'init').read_bytes(), 0o100755)
        newc(archive, 'command', command.encode(), 0o100644)
        newc(archive, 'hostname', hostname.encode(), 0o100644)
        newc(archive, 'modules/order', ''.join(f'{m.name}\n' for m in modules).encode(), 0o100644)
        for module in modules:
            newc(archive, f'modules/{module.name}', kernel.unsigned(module.read_bytes()), 0o100644)
        newc(archive, 'TRAILER!!!', b'', 0)


def network(number, wire):
    """Options for an interface, eth0, at one end of a wire."""
    return ['-netdev', f'socket,id=wire,fd={wire.fileno()}', '-device',
            f'virtio-net-pci,netdev=wire,mac=52:54:00:00:00:{number:02x},host_mtu={WIRE_MTU}']


class Machine:
    """One virtual machine; with a wire, the one of that number at it."""

    def __init__(self, boot, command, hostname='verbena-vm', number=0, wire=None):
        self.directory = tempfile.TemporaryDirectory(prefix='verbena-vm-')
        place = pathlib.Path(self.directory.name)
        self.log = place / 'console'
        write_initramfs(place / 'initramfs', boot, command, hostname)
        self.process = subprocess.Popen(
            [QEMU, '-nodefaults', '-no-user-config', '-display', 'none', '-no-reboot',
             '-accel', 'tcg,thread=multi', '-cpu', 'max', '-smp', '1' if wire else '2',
             '-m', MEMORY,
             '-kernel', str(boot.image), '-initrd', str(place / 'initramfs'),
             '-append', 'console=ttyS0 quiet panic=-1 mitigations=off nokaslr tsc=reliable '
                        'no_timer_check random.trust_cpu=on cryptomgr.notests',
             '-serial', f'file:{self.log}',
             '-fsdev', 'local,id=host,path=/,security_model=none,readonly=on,multidevs=remap',
             '-device', 'virtio-9p-pci,fsdev=host,mount_tag=host',
             '-device', 'virtio-serial-pci', '-chardev', 'stdio,id=out,signal=off',
             '-device', 'virtconsole,chardev=out', *(network(number, wire) if wire else [])],
            pass_fds=[wire.fileno()] if wire else [], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def lines(self, deadline):
        """What the command prints, until it ends; TimeoutError at the deadline."""
        selector = selectors.DefaultSelector()
        selector.register(self.process.stdout, selectors.EVENT_READ)
        pending = b''
        while True:
            if not selector.select(max(0, deadline - time.monotonic())):
                raise TimeoutError
            piece = os.read(self.process.stdout.fileno(), 65536)
            if not piece:
                break
            *whole, pending = (pending + piece).split(b'\n')
            for line in whole:
                yield line.decode(errors='replace').rstrip('\r')
        if pending:
            yield pending.decode(errors='replace').rstrip('\r')

    def last_words(self):
        """The end of the kernel's log, to explain missing output."""
        if not self.log.exists():
            return []
        return self.log.read_text(errors='replace').splitlines()[-LAST_LINES:]

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.directory.cleanup()


def missing():
    """Why no machine can be started here, or None."""
    for program in (QEMU, 'busybox'):
        if not shutil.which(program):
            return f'{program} is not installed'
    return None
