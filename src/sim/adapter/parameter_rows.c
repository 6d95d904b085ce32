/* SPDX-License-Identifier: BSD-2-Clause */
/* The parameters of the model: key in adapter files, unit, limits, default and help. The manual
 * page is generated from these rows, and a test compares docs/adapters.md with them. */
#include "sim/adapter/parameters.h"

#include <assert.h>

/* The key is the name of the member. A member of another type does not compile. */
#define MEMBER(field, type)                                                                      \
    .key = #field,                                                                               \
    .offset =                                                                                    \
        offsetof(struct parameters, field) +                                                     \
        0 * sizeof(                                                                              \
                char[__builtin_types_compatible_p(typeof(((struct parameters *)0)->field), type) \
                         ? 1                                                                     \
                         : -1])

#define REQUIRED      NULL
#define LONGEST_NS    60e9
#define SLOWEST_GB_S  1e-3
#define FASTEST_GB_S  1e4
#define LARGEST_BYTES (1ull << 40)
#define LARGEST_COUNT 1e9

/* clang-format off */
#define TIME(field, default_, text) \
    { MEMBER(field, double), .unit = UNIT_TIME, .default_value = default_, \
      .maximum = LONGEST_NS, .help = text }
#define RATE(field, default_, least, text) \
    { MEMBER(field, double), .unit = UNIT_RATE, .default_value = default_, \
      .minimum = least, .maximum = FASTEST_GB_S, .help = text }
#define BYTES(field, default_, least, text) \
    { MEMBER(field, uint64_t), .unit = UNIT_BYTES, .default_value = default_, \
      .minimum = least, .maximum = LARGEST_BYTES, .help = text }
#define POWER(field, default_, least, most, text) \
    { MEMBER(field, uint64_t), .unit = UNIT_BYTES, .default_value = default_, \
      .minimum = least, .maximum = most, .power_of_two = true, .help = text }
#define COUNT(field, default_, least, most, text) \
    { MEMBER(field, uint64_t), .unit = UNIT_COUNT, .default_value = default_, \
      .minimum = least, .maximum = most, .help = text }
#define REAL(field, default_, text) \
    { MEMBER(field, double), .unit = UNIT_REAL, .default_value = default_, \
      .maximum = LARGEST_COUNT, .help = text }
#define SHARE(field, default_, text) \
    { MEMBER(field, double), .unit = UNIT_REAL, .default_value = default_, .maximum = 1, .help = text }
#define TEXT(field, default_, text) \
    { .key = #field, .unit = UNIT_TEXT, .offset = offsetof(struct parameters, field), \
      .size = sizeof(((struct parameters *)0)->field), .default_value = default_, .help = text }
#define YES_NO(field, default_, text) \
    { MEMBER(field, bool), .unit = UNIT_YES_NO, .default_value = default_, .help = text }

const struct parameter_row parameter_rows[] = {
    TEXT(title, REQUIRED, "short description of the platform"),

    TIME(host.post_send, REQUIRED, "posting a send WQE"),
    TIME(host.post_next_send, "0 ns",
         "each further send WQE of the same call, which rings one doorbell; 0: as host.post_send"),
    SHARE(host.post_return, "0", "the share of host.post_send that passes after the doorbell"),
    TIME(host.post_recv, REQUIRED, "posting a receive WQE"),
    TIME(host.poll_hit, REQUIRED, "a poll that finds a completion"),
    TIME(host.poll_empty, REQUIRED, "a poll that finds none"),
    TIME(host.sge_time, "0 ns", "each SGE after the first of a posted WQE"),
    RATE(host.copy_rate, REQUIRED, SLOWEST_GB_S, "memory copy by the CPU"),
    TIME(host.copy_call, "0 ns", "starting a memory copy"),
    TIME(host.wake_recv, REQUIRED,
         "from a receive completion to a running thread that slept for it"),
    TIME(host.wake_send, "0 ns", "from a send completion to a running thread that slept for it; 0: as host.wake_recv"),
    TIME(host.create_qp, REQUIRED, "creating a QP"),
    TIME(host.create_qp_entry, "0 ns", "creating a QP, for each of its WQEs"),
    TIME(host.destroy_qp, REQUIRED, "destroying a QP that is not connected"),
    TIME(host.destroy_connected_qp, REQUIRED, "destroying a connected QP"),
    TIME(host.modify_qp, REQUIRED, "one state change of a QP; connecting takes three"),
    TIME(host.create_cq, REQUIRED, "creating a CQ"),
    TIME(host.create_cq_entry, "0 ns", "creating a CQ, for each of its entries"),
    TIME(host.destroy_cq, REQUIRED, "destroying a CQ"),
    TIME(host.destroy_cq_entry, "0 ns", "destroying a CQ, for each of its entries"),
    TIME(host.create_srq, REQUIRED, "creating an SRQ"),
    TIME(host.destroy_srq, REQUIRED, "destroying an SRQ"),
    TIME(host.reg_mr, REQUIRED, "registering memory"),
    TIME(host.reg_mr_page, REQUIRED, "registering memory, for each page"),
    TIME(host.reg_mr_page_beyond, "0 ns", "registering memory, for each page beyond host.reg_mr_knee"),
    TIME(host.dereg_mr, REQUIRED, "deregistering memory"),
    TIME(host.dereg_mr_page, "0 ns", "deregistering memory, for each page"),
    COUNT(host.reg_mr_knee, "1000000000", 0, LARGEST_COUNT,
          "pages of a registration that cost host.reg_mr_page each"),
    TIME(host.alloc_pd, REQUIRED, "allocating a PD"),
    TIME(host.create_ah, REQUIRED, "creating an AH"),
    TIME(host.bind_mw, REQUIRED, "binding a memory window"),
    TIME(host.event_call, REQUIRED,
         "arming a CQ, and each call that gets or acknowledges an event"),
    POWER(host.page_size, "4 KB", 512, 1 << 30, "memory page"),

    YES_NO(bus.half_duplex, REQUIRED, "both directions share the bus"),
    RATE(bus.rate, REQUIRED, SLOWEST_GB_S, "the bus, or each of its directions"),
    BYTES(bus.write_burst, REQUIRED, 1, "largest payload of a write to memory"),
    BYTES(bus.read_burst, REQUIRED, 1, "largest payload of a read completion"),
    BYTES(bus.read_request, REQUIRED, 1, "largest read that one request asks for"),
    TIME(bus.write_overhead, REQUIRED, "bus time of each write besides its payload"),
    TIME(bus.completion_overhead, REQUIRED,
         "bus time of each read completion besides its payload"),
    TIME(bus.request_overhead, REQUIRED, "bus time of a read request"),
    TIME(bus.partial_line, "0 ns",
         "further bus time for each cache line of which payload fills a part: memory reads it first"),
    TIME(bus.link_layer, "0 ns", "time that each transaction occupies the opposite direction"),
    TIME(bus.doorbell_latency, REQUIRED, "from the CPU's store to the adapter"),
    TIME(bus.write_latency, REQUIRED, "from the end of a write until the CPU sees it"),
    TIME(bus.read_latency, REQUIRED, "from a read request to its first completion"),
    RATE(bus.read_rate, "0 GB/s", 0, "rate at which memory returns read data; 0: not limited"),

    COUNT(hca.engines, REQUIRED, 1, ENGINES_MAX, "send engines of a port"),
    COUNT(hca.engine_depth, REQUIRED, 1, 65536, "packets in flight per engine"),
    BYTES(hca.engine_window, "0 B", 0,
          "payload that an engine has asked memory for and not received yet, at most; 0: not limited"),
    BYTES(hca.buffer, "0 B", 0, "buffer for packets that have not left yet, of all engines; 0: not limited"),
    TIME(hca.wqe_time, REQUIRED, "engine time per WQE"),
    TIME(hca.sge_time, "0 ns", "engine time per SGE after the first"),
    TIME(hca.packet_time, "0 ns", "engine time per packet"),
    TIME(hca.qpc_lock_time, "0 ns", "time that each packet, in or out, locks the QP context"),
    BYTES(hca.arbitration_quantum, "0 B", 0,
          "bytes an engine sends of a message while other QPs wait; 0: the whole message"),
    YES_NO(hca.drain, "no", "an engine starts a new message only when its packets have left"),
    YES_NO(hca.wait_for_ack, "no",
           "a QP continues after a send only when it is acknowledged"),
    TIME(hca.ack_turnaround, "0 ns", "from an acknowledgement to the next WQE of its QP"),
    TIME(hca.recv_time, REQUIRED, "receive engine time for the first packet of a message"),
    TIME(hca.recv_sge_time, "0 ns", "receive engine time per SGE after the first"),
    YES_NO(hca.recv_prefetch, "no", "receive WQEs are fetched when they are posted"),
    TIME(hca.recv_wqe_time, "0 ns", "taking the receive WQE of an arriving send"),
    RATE(hca.scatter_rate, "0 GB/s", 0,
         "scattering to more than one SGE; 0: not limited"),
    TIME(hca.write_time, "0 ns",
         "receive engine time for each write to memory that the payload of a packet takes"),
    TIME(hca.ack_time, "0 ns",
         "receive engine time for an acknowledgement, or the first packet of another response"),
    TIME(hca.read_response, "0 ns", "from the arrival of an RDMA read or atomic to its response"),
    COUNT(hca.wqe_prefetch, REQUIRED, 1, 65536, "WQEs of a QP fetched ahead"),
    COUNT(hca.wqe_fetch, "1", 1, 65536, "WQEs of a QP that one read fetches, at most"),
    COUNT(hca.wqe_fetches, "1", 1, 65536, "reads that fetch WQEs of a QP at a time, at most"),
    COUNT(hca.wqe_cache, "0", 0, 65536,
          "WQEs of a QP that the adapter keeps; that of an earlier read or atomic is fetched again when its response arrives; 0: all"),
    TIME(hca.wqe_miss, "0 ns", "receive engine time for such a fetch"),
    BYTES(hca.blueflame, "0 B", 0,
          "largest WQE, with its inline data, that the doorbell of a single WQE carries (BlueFlame); 0: none"),
    BYTES(hca.doorbell_bytes, "0 B", 0,
          "what the CPU stores for a doorbell that carries no WQE; 0: it takes no bus time"),
    BYTES(hca.wqe_bytes, REQUIRED, 1, "a WQE with one SGE"),
    BYTES(hca.sge_bytes, REQUIRED, 1, "each further SGE of a WQE"),
    BYTES(hca.cqe_bytes, REQUIRED, 1, "a CQE"),
    BYTES(hca.memory, "0 B", 0, "device memory for programs (ibv_alloc_dm)"),
    RATE(hca.memory_rate, "0 GB/s", 0, "device memory"),
    TIME(hca.memory_latency, "0 ns", "access to device memory"),

    { MEMBER(icm.location, enum icm_location), .unit = UNIT_CHOICE, .choices = "adapter host",
      .default_value = REQUIRED, .help = "memory that holds the ICM behind the cache" },
    COUNT(icm.qpc_entries, "0", 0, 1 << 24, "QP contexts (QPC) that fit in the cache; 0: all"),
    COUNT(icm.mtt_entries, "0", 0, 1 << 24,
          "translations (MTT), one a page, that fit in the cache; 0: all"),
    POWER(icm.mtt_read, "64 B", 8, 4096,
          "what an MTT miss brings, a line: 8 bytes for each of consecutive pages"),
    COUNT(icm.ways, "4", 1, 1 << 24, "contexts, or lines of translations, in a set of these caches"),
    TIME(icm.access_time, "0 ns",
         "one access to the ICM on the adapter, behind the cache; in the host, an access is a read across the bus"),
    COUNT(icm.qpc_accesses, "0", 0, 1000, "dependent reads of 64 bytes of a QPC miss"),
    COUNT(icm.mtt_accesses, "0", 0, 1000, "dependent reads of 64 bytes of an MTT miss"),
    COUNT(icm.misses, "1", 1, ICM_MISSES_MAX, "misses served at a time"),
    YES_NO(icm.in_order, "no", "contexts are looked up in order: behind a miss, hits wait, too"),
    COUNT(icm.write_back_accesses, "0", 0, 1000, "writes of 64 bytes for an evicted QPC"),
    BYTES(icm.chunk, "0 B", 0,
          "host memory that the driver adds to a table of the ICM at a time; 0: what the objects take"),

    { MEMBER(link.layer, enum link_layer), .unit = UNIT_CHOICE, .choices = "infiniband ethernet",
      .default_value = "infiniband",
      .help = "infiniband: credits, nothing is lost; ethernet: pause frames (pfc) or loss, and "
              "captures of RoCEv2 packets" },
    COUNT(link.ports, REQUIRED, 1, 4, "ports of the adapter"),
    RATE(link.rate, REQUIRED, SLOWEST_GB_S, "a port, each direction, after line coding"),
    POWER(link.mtu, REQUIRED, 256, 4096, "largest payload of a packet"),
    BYTES(link.header, REQUIRED, 0, "headers and checksums of a packet"),
    TIME(link.gap, "0 ns", "gap between packets"),
    TIME(link.latency, REQUIRED, "propagation delay of a link"),
    BYTES(link.receive_buffer, "0 B", 0,
          "receive buffer of a port for each VL; 0: not limited; with Ethernet only that of adapters, if there is no PFC"),
    COUNT(link.vls, "1", 1, VLS_MAX,
          "virtual lanes (VLs) for data; service level s uses VL s mod link.vls"),
    TEXT(link.vl_weights, "1",
         "weights of the VLs when several want a link; the last one applies to further VLs"),

    TIME(fabric.latency, REQUIRED, "forwarding delay of a switch"),
    TEXT(fabric.shape, "single",
         "switches and cables: single[:RADIX], fat-tree:LEVELS/RADIX[/DOWN:UP], torus:XxYxZ[/HOSTS], dragonfly:HOSTS/SWITCHES/GLOBAL[/GROUPS], or the path of a file"),
    { MEMBER(fabric.routing, enum fabric_routing), .unit = UNIT_CHOICE,
      .choices = "deterministic ecmp adaptive", .default_value = "deterministic",
      .help = "among equal ways: by destination, by a hash of the flow (ECMP), or the shortest queue (adaptive)" },
    TEXT(fabric.failures, "none",
         "cables between switches that fail during the run: SWITCH SWITCH TIME, separated by commas"),
    BYTES(fabric.output_buffer, "0 B", 0,
          "Ethernet without PFC: bytes of each VL that wait at a switch output before it drops packets; 0: not limited"),

    BYTES(pfc.xoff, "0 B", 0,
          "bytes of a VL in a receive buffer at which its sender is paused; 0: no PFC"),
    BYTES(pfc.xon, "0 B", 0, "bytes at which the sender may continue"),
    BYTES(pfc.headroom, "0 B", 0,
          "bytes above pfc.xoff for what arrives before the pause takes effect; the rest is dropped"),
    TIME(pfc.response, "0 ns", "from the arrival of a pause frame until the sender obeys it"),

    BYTES(ecn.kmin, "5 KB", 0, "queue of a switch output, per VL, from which on packets are marked"),
    BYTES(ecn.kmax, "0 B", 0, "queue beyond which every packet is marked; 0: no marks"),
    SHARE(ecn.pmax, "0.01", "probability of a mark at ecn.kmax; it grows linearly from ecn.kmin on"),

    YES_NO(dcqcn.enabled, "no", "adapters send CNPs for marked packets, and QPs obey them"),
    TIME(dcqcn.cnp_interval, "50 us", "a QP sends at most one CNP in this time (N)"),
    COUNT(dcqcn.cnp_level, "6", 0, 15, "service level of CNPs"),
    TIME(dcqcn.alpha_interval, "55 us", "alpha decays after this time without a CNP (K)"),
    REAL(dcqcn.g, "0.00390625", "gain of alpha, below 1"),
    TIME(dcqcn.timer, "55 us", "the rate increases whenever this time has passed (T)"),
    BYTES(dcqcn.byte_counter, "10 MB", 1, "the rate increases whenever this much was sent (B)"),
    COUNT(dcqcn.f, "5", 1, 1000, "steps of fast recovery (F)"),
    RATE(dcqcn.rai, "40 Mbit/s", 0, "additive increase of the target rate"),
    RATE(dcqcn.rhai, "400 Mbit/s", 0, "hyper increase of the target rate, for each step of it"),
    RATE(dcqcn.min_rate, "10 Mbit/s", 1e-6, "rate that a QP keeps"),

    TIME(mpi.send, "0 ns", "overhead of the MPI library per message sent"),
    TIME(mpi.receive, "0 ns", "overhead of the MPI library per message received"),
    TIME(mpi.control, "0 ns", "overhead of the MPI library per control message"),
    TIME(mpi.shared_latency, "0 ns",
         "passing a message to a process of the same node through shared memory"),
    RATE(mpi.shared_rate, "0 GB/s", 0,
         "copying a long message from a process of the same node; 0: as host.copy_rate"),

    REAL(nas.is, "0", "integer sort: million operations per second, as NPB counts them; 0: no time"),
    REAL(nas.ft, "0", "Fourier transform: million operations per second, as NPB counts them; 0: no time"),
    REAL(nas.cg, "0", "conjugate gradient: million operations per second, as NPB counts them; 0: no time"),
    REAL(nas.mg, "0", "multigrid: million operations per second, as NPB counts them; 0: no time"),
    REAL(nas.lu, "0", "over-relaxation: million operations per second, as NPB counts them; 0: no time"),

    { .key = NULL },
};
/* clang-format on */

static_assert(sizeof(parameter_rows) / sizeof(*parameter_rows) <= PARAMETER_ROWS_MAX,
              "PARAMETER_ROWS_MAX is too small");
static_assert(sizeof(enum icm_location) == sizeof(unsigned int),
              "choices are stored as unsigned int");
