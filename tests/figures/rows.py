"""Which figure of the suite stands for which row of papers/results.csv.

A run is a line of a sweep; several rows may share one, and each adapter's runs are one command.
"""
from collections import namedtuple

# adapter, a line for "verbena bench", quantity and name of the curve, x of the point, and what turns
# the suite's unit into the paper's.
Figure = namedtuple('Figure', 'row adapter run quantity series x factor')
# The largest x up to which the curve keeps this share of its peak.
Kept = namedtuple('Kept', 'row adapter run quantity series share')
# How many percent more it is on one adapter than on another.
Excess = namedtuple('Excess', 'row adapter other run quantity series x')

LATENCY = 'latency --ops send,write,read,fetch-add,compare-swap --wait poll,memory --sizes 4,8 --inline 0'
BLOCKING = 'latency --ops send,write --wait block --sizes 4 --inline 0'
BW = 'bw --ops send,write --style refill --sizes 1M --windows 4,16,64 --iterations 128'
BIBW = 'bibw --ops send,write --style refill --sizes 1M --iterations 128'
TWO_PORT = 'two-port --sizes 1M --iterations 128'
REUSE = 'reuse-2 --sizes 8,64K --iterations 512'
MULTI_VI = 'multi-vi --qps 1,10,50,100 --iterations 600'
STRIDED = 'strided --strides 1,8,64 --iterations 32'
IN_STEPS = 'strided --strides 1,8,64 --window 1 --style reply --iterations 32'
SCATTER = 'scatter --blocks 8,128,1K --iterations 64'
CPU_UTIL = 'cpu-util --work 0,90,94,95,96,97,98 --iterations 384'
ICM_SCATTER = 'icm-scatter --qps 128 --sizes 1K,64K --iterations 4'

US_OF_NS = 1e-3
MBIT = 8        # of a MB
ROUND_TRIP = 2  # of one way


def figures():
    def row(name, adapter, run, quantity, series, x, factor=1):
        table.append(Figure(name, adapter, run, quantity, series, x, factor))

    table = []
    for name, run, quantity, series, x, factor in [
            ('t1.connect', 'qp-connect --depths 64', 'time', 'connect', 64, 1),
            ('t1.teardown', 'qp-destroy --depths 64', 'time', 'connected', 64, 1),
            ('t1.post-recv', 'post-recv --batches 1', 'time', 'send 8', 1, US_OF_NS),
            ('t1.post-send', 'post-send --batches 1', 'time', 'send 8', 1, US_OF_NS),
            ('t1.poll-hit', 'poll-hit --batches 1', 'time', 'send 8', 1, US_OF_NS),
            ('t1.poll-empty', 'poll-empty --batches 1', 'time', 'empty', 1, US_OF_NS),
            ('f2.reg', 'mr-reg --sizes 64K,1M,4M,64M', 'time', 'register', 64 << 20, 1),
            ('f5c.bibw', BIBW, 'bandwidth', 'write refill', 1 << 20, 1)]:
        row('miba.' + name, 'mt23108-2003', run, quantity, series, x, factor)
    table.append(Kept('miba.f5d.cpu', 'mt23108-2003', CPU_UTIL, 'bandwidth', 'both ways', 0.95))

    for host, adapter in ('p', 'clan-pentium'), ('p3', 'clan-pentium3'):
        for name, run, series in [('sr-poll', LATENCY, 'send poll'),
                                  ('sr-block', BLOCKING, 'send block'),
                                  ('wr-poll', LATENCY, 'write memory'),
                                  ('wr-block', BLOCKING, 'write block')]:
            row(f'clan.t1.{name}.{host}', adapter, run, 'latency', series, 4, ROUND_TRIP)
    for name, run, series, x in [('f2.bw.p3', BW, 'send refill', 1 << 20),
                                 ('f4.local', STRIDED, 'local', 1),
                                 ('f4.explicit', IN_STEPS, 'transfer then store', 1),
                                 ('f4.nic', STRIDED, 'scatter by adapter', 1),
                                 ('f5.scatter', SCATTER, 'adapter', 1024)]:
        row('clan.' + name, 'clan-pentium3', run, 'bandwidth', series, x, MBIT)
    for way, series in ('rr', 'round robin'), ('cq', 'completion queue'):
        for number in 1, 10, 50, 100:
            row(f'clan.t2.{way}{number}', 'clan-pentium', MULTI_VI, 'bandwidth', series, number, MBIT)

    for mode, adapter in ('free', 'mt25218-memfree'), ('mem', 'mt25218-mem'):
        for share in 0, 25, 50, 75, 100:
            row(f'mem.t1.{mode}{share}', adapter, REUSE, 'bandwidth', f'{share}%', 64 << 10)

    for bus, adapter in ('pcie', 'mt25208'), ('pcix', 'mt23108'):
        row('pcie.sr.' + bus, adapter, LATENCY, 'latency', 'send poll', 4)
        row('pcie.wr.' + bus, adapter, LATENCY, 'latency', 'write memory', 4)
        row('pcie.rd.' + bus, adapter, LATENCY, 'latency', 'read poll', 4)
        row('pcie.bw.' + bus, adapter, BW, 'bandwidth', 'write refill', 1 << 20)
        row('pcie.bibw.' + bus, adapter, BIBW, 'bandwidth', 'write refill', 1 << 20)
    for name, adapter, series in [
            ('2p-stripe.pcie', 'mt25208', 'one process striping'),
            ('2p-stripe.pcix', 'mt23108', 'one process striping'),
            ('2p-bi-stripe.pcie', 'mt25208', 'one process both ways striping'),
            ('2p-bi-bind.pcie', 'mt25208', 'one process both ways binding'),
            ('2x2-uni.pcie', 'mt25208', 'two processes binding'),
            ('2x2-uni.pcix', 'mt23108', 'two processes binding'),
            ('2x2-bi-bind.pcie', 'mt25208', 'two processes both ways binding'),
            ('2x2-bi-stripe.pcie', 'mt25208', 'two processes both ways striping'),
            ('2x2-bi.pcix', 'mt23108', 'two processes both ways binding')]:
        row('pcie.' + name, adapter, TWO_PORT, 'bandwidth', series, 1 << 20)
    table.append(Excess('mem.f3b.scatter', 'mt25218-memfree', 'mt25218-mem', ICM_SCATTER, 'time',
                        'scatter 1K', 128))
    return table


# Value rows of the papers in reach of the suite that have no figure here, and why.
LEFT_OUT = {
    'clan.f2.tcp': "what limits sockets is the kernel's protocol stack, which no adapter file describes",
}
