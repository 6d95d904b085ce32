# SPDX-License-Identifier: BSD-2-Clause
"""A connection manager made by hand: CM datagrams on a UDP socket of host b."""
import ctypes
import ipaddress
import os
import socket
import struct
import time
import zlib

PORT = 4791
QP1, QKEY, PKEY = 1, 0x80010000, 0xffff
REQ, MRA, REJ, REP, RTU, DREQ, DREP, SIDR_REQ, SIDR_REP = range(0x10, 0x19)
CLONE_NEWNET = 0x40000000
TCP_SERVICE = 0x01060000


def mapped(address):
    return b'\0' * 10 + b'\xff\xff' + ipaddress.ip_address(address).packed


def open_in(namespace_of, address):
    """A socket in the network namespace of a process."""
    libc = ctypes.CDLL(None, use_errno=True)
    own = os.open('/proc/self/ns/net', os.O_RDONLY)
    other = os.open(f'/proc/{namespace_of}/ns/net', os.O_RDONLY)
    try:
        if libc.setns(other, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), 'setns')
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        libc.setns(own, CLONE_NEWNET)
    finally:
        os.close(own)
        os.close(other)
    made.setsockopt(socket.IPPROTO_IP, 10, 2)  # IP_MTU_DISCOVER, IP_PMTUDISC_DO: identification 0
    made.bind((address, PORT))
    return made


class Peer:
    """Sends and receives datagrams between `own`, in that namespace, and `other`."""

    def __init__(self, namespace_of, own, other):
        self.own, self.other = own, other
        self.socket = open_in(namespace_of, own)

    def close(self):
        self.socket.close()

    def packet(self, mad):
        bth = struct.pack('>BBHII', 0x64, 0, PKEY, QP1, 0) + struct.pack('>II', QKEY, QP1)
        body = bth + mad
        length = len(body) + 4 + 8
        ip = struct.pack('>BBHHHBBH4s4s', 0x45, 0xff, length + 20, 0, 0x4000, 0xff, 17, 0xffff,
                         ipaddress.ip_address(self.own).packed, ipaddress.ip_address(self.other).packed)
        udp = struct.pack('>HHHH', PORT, PORT, length, 0xffff)
        covered = bytearray(b'\xff' * 8 + ip + udp + body)
        covered[8 + 20 + 8 + 4] = 0xff
        return body + struct.pack('<I', zlib.crc32(bytes(covered)))

    def throw(self, mad):
        self.socket.sendto(self.packet(mad), (self.other, PORT))

    def send(self, attribute, fields, transaction=7):
        body = bytearray(232)
        for offset, value in fields.items():
            body[offset:offset + len(value)] = value
        self.throw(struct.pack('>BBBBHHQHHI', 1, 7, 2, 3, 0, 0, transaction, attribute, 0, 0) + bytes(body))

    def receive(self, seconds=5):
        """The next CM message: attribute and body. None: nothing came."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.socket.settimeout(max(0.01, deadline - time.monotonic()))
            try:
                data = self.socket.recv(70000)
            except TimeoutError:
                return None
            if len(data) == 12 + 8 + 256 + 4 and data[0] == 0x64:
                return struct.unpack('>H', data[36:38])[0], data[44:276]
        return None

    def expect(self, attribute, seconds=5):
        """The body of the next message of that kind; other kinds are passed over."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            message = self.receive(left)
            if message and message[0] == attribute:
                return message[1]
        return None

    # ---- messages ----

    def request(self, port, comm_id, qpn, mtu=3, retries=15, timeout=20, source=None, greeting=b'hello\0'):
        private = struct.pack('>BBH', 0, 0x40, 12345) + b'\0' * 12 + ipaddress.ip_address(source or self.own).packed
        private += b'\0' * 12 + ipaddress.ip_address(self.other).packed + greeting
        self.send(REQ, {0: struct.pack('>I', comm_id), 8: struct.pack('>Q', TCP_SERVICE + port),
                        32: struct.pack('>I', qpn << 8 | 1), 39: b'\1', 43: bytes([timeout << 3]),
                        44: struct.pack('>I', 0x123456 << 8 | timeout << 3 | 7), 48: b'\xff\xff',
                        50: bytes([mtu << 4 | 7, retries << 4]), 56: mapped(source or self.own), 72: mapped(self.other),
                        93: b'\x40', 95: bytes([17 << 3]), 140: private})

    def reply(self, comm_id, remote_id, qpn):
        self.send(REP, {0: struct.pack('>II', comm_id, remote_id), 12: struct.pack('>I', qpn << 8),
                        20: struct.pack('>I', 0x654321 << 8), 24: b'\2\3', 27: bytes([7 << 5]), 36: b'welcome\0'})

    def ready(self, comm_id, remote_id):
        self.send(RTU, {0: struct.pack('>II', comm_id, remote_id)})

    def disconnect(self, comm_id, remote_id, qpn):
        self.send(DREQ, {0: struct.pack('>II', comm_id, remote_id), 8: struct.pack('>I', qpn << 8)})


def id_of(body):
    return struct.unpack('>I', body[:4])[0]


def reason_of(body):
    return struct.unpack('>H', body[10:12])[0]
