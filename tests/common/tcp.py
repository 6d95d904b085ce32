# SPDX-License-Identifier: BSD-2-Clause
"""TCP ports of the programs under test."""
import socket

LISTEN = '0A'


def free_port():
    """The kernel chooses: a port that was used a moment ago can be refused to a server for a minute (TIME_WAIT)."""
    with socket.socket() as probe:
        probe.bind(('', 0))
        return probe.getsockname()[1]


def is_listening(port):
    for table in ('/proc/net/tcp', '/proc/net/tcp6'):
        with open(table, encoding='ascii') as lines:
            for line in lines:
                fields = line.split()
                if fields[1].endswith(f':{port:04X}') and fields[3] == LISTEN:
                    return True
    return False
