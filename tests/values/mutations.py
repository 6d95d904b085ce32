# SPDX-License-Identifier: BSD-2-Clause
"""Changes of an adapter's parameters, to which values must respond: in the right direction, and by a
plausible amount."""
from collections import namedtuple

# The value with the change divided by the value without it must be between 'least' and 'most'. 'run'
# names a run of papers/PAPER.json.
Mutation = namedtuple('Mutation', 'name adapter change paper run quantity series x least most')

MUTATIONS = [
    Mutation('twice the link', 'mt25208', 'link.rate=2GB/s', 'pcie', 'bw',
             'bandwidth', 'write refill', 1 << 20, 1.4, 2.0),
    Mutation('half the link', 'mt25208', 'link.rate=500MB/s', 'pcie', 'bw',
             'bandwidth', 'write refill', 1 << 20, 0.47, 0.53),
    Mutation('half the bus', 'mt25208', 'bus.rate=1GB/s', 'pcie', 'bibw',
             'bandwidth', 'write refill', 1 << 20, 0.6, 0.98),
    Mutation('half the bus, both ways', 'mt23108', 'bus.rate=533MB/s', 'pcie', 'bibw',
             'bandwidth', 'write refill', 1 << 20, 0.45, 0.7),
    Mutation('both directions apart', 'mt23108', 'bus.half_duplex=no', 'pcie', 'bibw',
             'bandwidth', 'write refill', 1 << 20, 1.3, 2.0),
    Mutation('a cache of 16 contexts', 'mt25218-mem', 'icm.qpc_entries=16', 'mem', 'icm-qp',
             'latency', 'first QP', 64, 1.5, 10),
    Mutation('the same, one queue', 'mt25218-mem', 'icm.qpc_entries=16', 'mem', 'icm-qp',
             'latency', 'first QP', 1, 0.999, 1.001),
    # 128 QPs: 32, 4 and 16 KB, and a page for a CQ, of 1 MB before.
    Mutation('host memory page by page', 'mt25218-memfree', 'icm.chunk=4KB', 'mem', 'host-memory',
             'memory', 'adapter', 128, 0.054, 0.055),
    Mutation('a microsecond of cable', 'mt25208', 'link.latency=525ns', 'pcie', 'latency',
             'latency', 'send poll', 4, 1.15, 1.3),
    Mutation('the same, there and back', 'mt25208', 'link.latency=525ns', 'pcie', 'latency',
             'latency', 'read poll', 4, 1.15, 1.3),
    Mutation('twice the time to be woken', 'clan-pentium', 'host.wake_recv=70.2us', 'clan',
             'blocking', 'latency', 'send block', 4, 1.7, 1.95),
    Mutation('the same, after a write', 'clan-pentium', 'host.wake_send=95us', 'clan', 'blocking',
             'latency', 'write block', 4, 1.75, 1.95),
    Mutation('slower memory copies', 'clan-pentium3', 'host.copy_rate=100MB/s', 'clan', 'strided',
             'bandwidth', 'local', 1, 0.24, 0.27),
    Mutation('slower memory copies, stored', 'clan-pentium3', 'host.copy_rate=50MB/s', 'clan',
             'strided', 'bandwidth', 'transfer then store', 1, 0.3, 0.7),
]
