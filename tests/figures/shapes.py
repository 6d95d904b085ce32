"""The rows of papers/results.csv that are a shape, each as something that can be wrong."""
from collections import namedtuple

from rows import BW, LATENCY, REUSE

# needs: {adapter: lines}; holds(results by adapter) says what is wrong, or nothing.
Shape = namedtuple('Shape', 'row needs holds')

MIBA = 'mt23108-2003'
DESTROY = 'qp-destroy --depths 16,4K'
REUSE_1 = 'reuse-1 --sizes 8,64K --reuse 100,50,25 --iterations 256'
MULTI_QP = 'multi-qp --qps 1,8,64 --sizes 64,64K --iterations 256'
SEGMENTS = 'multi-sge --sizes 64,1K --segments 1,2,4,8'
MTU = 'mtu --sizes 256,1K,64K --iterations 128'
MAX_SGE = 'max-sge --sizes 8,64K --segments 1,4,16,30 --iterations 128'
EVENT = 'event --sizes 8,64K --iterations 128'
LOAD = 'hca-load --nodes 0,1,3,6 --sizes 64K --iterations 64'
MEMORY = 'hca-memory --sizes 8,1K'
ICM_QP = 'icm-qp --qps 1,128 --iterations 5 --refine 0'


def rises(values, by=0.0):
    """Each at least 'by' (a share) above the one before, the last clearly above the first."""
    return all(b >= a * (1 + by) for a, b in zip(values, values[1:])) and values[-1] > values[0]


def flat(values, within):
    return max(values) <= min(values) * (1 + within)


def at(results, line, quantity, x, names):
    return [results.point(line, quantity, name, x) for name in names]


def destroy(all_results):
    results = all_results[MIBA]
    unused = results.curve(DESTROY, 'time', 'unconnected').values()
    used = results.curve(DESTROY, 'time', 'connected').values()
    return None if max(unused) * 100 < min(used) else f'{max(unused):.0f} against {min(used):.0f} us'


def window(all_results):
    values = [value for x, value in all_results[MIBA].curve(BW, 'bandwidth', 'write by window').items()]
    return None if flat(values, 0.03) else f'from {min(values):.0f} to {max(values):.0f} MB/s'


def reuse_1(all_results):
    for quantity in 'latency', 'bandwidth':
        for size in 8, 64 << 10:
            values = at(all_results[MIBA], REUSE_1, quantity, size, ['100%', '50%', '25%'])
            if not flat(values, 0.03):
                return f'{quantity} at {size} from {min(values):.1f} to {max(values):.1f}'
    return None


def reuse_2(all_results):
    results = all_results[MIBA]
    names = ['100%', '75%', '50%', '25%', '0%']
    small = at(results, REUSE, 'latency', 8, names)
    large = at(results, REUSE, 'bandwidth', 64 << 10, names)
    if not rises(small) or small[-1] < small[0] * 1.1:
        return 'latency: ' + ', '.join(f'{value:.2f}' for value in small)
    if not rises(large[::-1]) or large[-1] > large[0] * 0.98:
        return 'bandwidth: ' + ', '.join(f'{value:.0f}' for value in large)
    return None


def multi_qp(all_results):
    for quantity, size in ('latency', '64'), ('latency', '64K'), ('bandwidth', '64K'):
        values = all_results[MIBA].curve(MULTI_QP, quantity, f'{quantity} {size}').values()
        if not flat(values, 0.03):
            return f'{quantity} of {size} from {min(values):.2f} to {max(values):.2f}'
    return None


def segments(all_results):
    names = ['1 segment', '2 segments', '4 segments', '8 segments']
    values = at(all_results[MIBA], SEGMENTS, 'latency', 1024, names)
    return None if rises(values, 0.02) else ', '.join(f'{value:.2f}' for value in values)


def mtu_latency(all_results):
    results = all_results[MIBA]
    values = at(results, MTU, 'latency', 1024, ['mtu 256', 'mtu 512', 'mtu 1024'])
    return None if rises(values) else ', '.join(f'{value:.2f}' for value in values)


def mtu_bandwidth(all_results):
    results = all_results[MIBA]
    b256, b512, b1024 = at(results, MTU, 'bandwidth', 64 << 10, ['mtu 256', 'mtu 512', 'mtu 1024'])
    larger = all_results[MIBA, 'link.mtu=2KB'].point(MTU, 'bandwidth', 'mtu 2048', 64 << 10)
    good = b256 < 0.9 * b512 and b512 < 0.9 * b1024 and b512 < 0.9 * larger and larger < b1024
    return None if good else f'{b256:.0f}, {b512:.0f}, {b1024:.0f}, {larger:.0f} MB/s'


def max_sge(all_results):
    results = all_results[MIBA]
    names = ['1 entry', '4 entries', '16 entries', '30 entries']
    latency = at(results, MAX_SGE, 'latency', 8, names)
    bandwidth = at(results, MAX_SGE, 'bandwidth', 64 << 10, names)
    if not rises(latency):
        return 'latency: ' + ', '.join(f'{value:.2f}' for value in latency)
    return None if flat(bandwidth, 0.03) else 'bandwidth: ' + str(bandwidth)


def event(all_results):
    results = all_results[MIBA]
    poll, block = at(results, EVENT, 'latency', 8, ['poll', 'block'])
    polled, blocked = at(results, EVENT, 'bandwidth', 64 << 10, ['poll', 'block'])
    if block < 1.5 * poll:
        return f'latency {poll:.1f} and {block:.1f} us'
    return None if flat([polled, blocked], 0.05) else f'bandwidth {polled:.0f} and {blocked:.0f}'


def load(all_results):
    values = list(all_results[MIBA].curve(LOAD, 'bandwidth', 'write').values())
    good = values[-1] < values[0] and values[-1] > 0.7 * values[0]
    return None if good else ', '.join(f'{value:.0f}' for value in values)


def nic_memory(all_results, adapter):
    return at(all_results[adapter], MEMORY, 'latency', 8, ['host to host', 'device to device'])


def memory_pcix(all_results):
    host, nic = nic_memory(all_results, 'mt23108')
    return None if nic < 0.9 * host else f'{host:.2f} and {nic:.2f} us'


def memory_pcie(all_results):
    host, nic = nic_memory(all_results, 'mt25218-mem')
    return None if flat([host, nic], 0.05) else f'{host:.2f} and {nic:.2f} us'


def icm_qp(all_results):
    one, many = {}, {}
    for adapter in 'mt25218-mem', 'mt25218-memfree':
        curve = all_results[adapter].curve(ICM_QP, 'latency', 'first QP')
        one[adapter], many[adapter] = curve[1], curve[128]
        if many[adapter] < 1.5 * one[adapter]:
            return f'{adapter}: {one[adapter]:.1f} and {many[adapter]:.1f} us'
    good = flat(one.values(), 0.1) and flat(many.values(), 0.1)
    return None if good else f'one {list(one.values())}, 128 {list(many.values())}'


def atomics(adapter):
    def holds(all_results):
        results = all_results[adapter]
        read = results.point(LATENCY, 'latency', 'read poll', 8)
        for name in 'fetch-add poll', 'compare-swap poll':
            value = results.point(LATENCY, 'latency', name, 8)
            if not flat([read, value], 0.1):
                return f'read {read:.2f}, {name} {value:.2f} us'
        return None
    return holds


SHAPES = [
    Shape('miba.f4.destroy', {MIBA: [DESTROY]}, destroy),
    Shape('miba.f5.window', {MIBA: [BW]}, window),
    Shape('miba.f6a.scheme1', {MIBA: [REUSE_1]}, reuse_1),
    Shape('miba.f6c.scheme2', {MIBA: [REUSE]}, reuse_2),
    Shape('miba.f7.multiqp', {MIBA: [MULTI_QP]}, multi_qp),
    Shape('miba.f9.segments', {MIBA: [SEGMENTS]}, segments),
    Shape('miba.f10.mtu-lat', {MIBA: [MTU]}, mtu_latency),
    Shape('miba.f10.mtu-bw', {MIBA: [MTU], (MIBA, 'link.mtu=2KB'): [MTU]}, mtu_bandwidth),
    Shape('miba.f11.maxsge', {MIBA: [MAX_SGE]}, max_sge),
    Shape('miba.f12.event', {MIBA: [EVENT]}, event),
    Shape('miba.f13.load', {MIBA: [LOAD]}, load),
    Shape('mem.f2.pcix', {'mt23108': [MEMORY]}, memory_pcix),
    Shape('mem.f2.pcie', {'mt25218-mem': [MEMORY]}, memory_pcie),
    Shape('mem.f3a.icm', {'mt25218-mem': [ICM_QP], 'mt25218-memfree': [ICM_QP]}, icm_qp),
    Shape('pcie.at.pcie', {'mt25208': [LATENCY]}, atomics('mt25208')),
    Shape('pcie.at.pcix', {'mt23108': [LATENCY]}, atomics('mt23108')),
]
