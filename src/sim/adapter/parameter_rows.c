/* SPDX-License-Identifier: BSD-2-Clause */
/* Every number of the model: its key in adapter files, its unit, its limits, and what holds when a
 * file does not say it. The manual page is made from these rows, and a test compares
 * docs/adapters.md with them. */
#include "sim/adapter/parameters.h"

#include <assert.h>

/* The key is the name of the member, and a member of another type does not compile. */
#define MEMBER(field, type)                                                                      \
    .key = #field,                                                                               \
    .offset =                                                                                    \
        offsetof(struct parameters, field) +                                                     \
        0 * sizeof(                                                                              \
                char[__builtin_types_compatible_p(typeof(((struct parameters *)0)->field), type) \
                         ? 1                                                                     \
                         : -1])

#define NO_FALLBACK   NULL
#define LONGEST_NS    60e9
#define SLOWEST_GB_S  1e-3
#define FASTEST_GB_S  1e4
#define LARGEST_BYTES (1ull << 40)
#define LARGEST_COUNT 1e9

/* clang-format off */
#define TIME(field, otherwise, text) \
    { MEMBER(field, double), .unit = UNIT_TIME, .fallback = otherwise, \
      .maximum = LONGEST_NS, .help = text }
#define RATE(field, otherwise, least, text) \
    { MEMBER(field, double), .unit = UNIT_RATE, .fallback = otherwise, \
      .minimum = least, .maximum = FASTEST_GB_S, .help = text }
#define BYTES(field, otherwise, least, text) \
    { MEMBER(field, uint64_t), .unit = UNIT_BYTES, .fallback = otherwise, \
      .minimum = least, .maximum = LARGEST_BYTES, .help = text }
#define POWER(field, otherwise, least, most, text) \
    { MEMBER(field, uint64_t), .unit = UNIT_BYTES, .fallback = otherwise, \
      .minimum = least, .maximum = most, .power_of_two = true, .help = text }
#define COUNT(field, otherwise, least, most, text) \
    { MEMBER(field, uint64_t), .unit = UNIT_COUNT, .fallback = otherwise, \
      .minimum = least, .maximum = most, .help = text }
#define REAL(field, otherwise, text) \
    { MEMBER(field, double), .unit = UNIT_REAL, .fallback = otherwise, \
      .maximum = LARGEST_COUNT, .help = text }
#define TEXT(field, otherwise, text) \
    { .key = #field, .unit = UNIT_TEXT, .offset = offsetof(struct parameters, field), \
      .room = sizeof(((struct parameters *)0)->field), .fallback = otherwise, .help = text }
#define YES_NO(field, otherwise, text) \
    { MEMBER(field, bool), .unit = UNIT_YES_NO, .fallback = otherwise, .help = text }

const struct parameter_row parameter_rows[] = {
    TEXT(title, NO_FALLBACK, "what is modelled, in a few words"),

    TIME(host.post_send, NO_FALLBACK, "posting a send request"),
    TIME(host.post_recv, NO_FALLBACK, "posting a receive request"),
    TIME(host.poll_hit, NO_FALLBACK, "a poll that finds a completion"),
    TIME(host.poll_empty, NO_FALLBACK, "a poll that finds none"),
    TIME(host.sge_time, "0 ns", "each further segment of a posted request"),
    COUNT(host.cached_cqs, "0", 0, LARGEST_COUNT,
          "completion queues of a process that its processor keeps in its cache; 0: all"),
    TIME(host.cq_miss, "0 ns",
         "fetching from memory what belongs to a completion, with more queues than that; keeps adapters from memory"),
    RATE(host.copy_rate, NO_FALLBACK, SLOWEST_GB_S, "copying in memory by the processor"),
    TIME(host.copy_call, "0 ns", "starting a copy in memory"),
    TIME(host.wake_recv, NO_FALLBACK,
         "from a completion to a program that slept for it, a receive having completed"),
    TIME(host.wake_send, "0 ns", "the same, a send or write having completed; 0: as host.wake_recv"),
    TIME(host.create_qp, NO_FALLBACK, "creating a queue pair"),
    TIME(host.create_qp_entry, "0 ns", "creating a queue pair, for each request it can hold"),
    TIME(host.destroy_qp, NO_FALLBACK, "destroying a queue pair that is not connected"),
    TIME(host.destroy_connected_qp, NO_FALLBACK, "destroying a connected queue pair"),
    TIME(host.modify_qp, NO_FALLBACK, "one change of state of a queue pair; connecting takes three"),
    TIME(host.create_cq, NO_FALLBACK, "creating a completion queue"),
    TIME(host.create_cq_entry, "0 ns", "creating a completion queue, for each of its entries"),
    TIME(host.destroy_cq, NO_FALLBACK, "destroying a completion queue"),
    TIME(host.destroy_cq_entry, "0 ns", "destroying a completion queue, for each of its entries"),
    TIME(host.create_srq, NO_FALLBACK, "creating a shared receive queue"),
    TIME(host.destroy_srq, NO_FALLBACK, "destroying a shared receive queue"),
    TIME(host.reg_mr, NO_FALLBACK, "registering memory"),
    TIME(host.reg_mr_page, NO_FALLBACK, "registering memory, for each page"),
    TIME(host.reg_mr_page_beyond, "0 ns", "the same, for each page beyond host.reg_mr_knee"),
    TIME(host.dereg_mr, NO_FALLBACK, "deregistering memory"),
    TIME(host.dereg_mr_page, "0 ns", "deregistering memory, for each page"),
    COUNT(host.reg_mr_knee, "1000000000", 0, LARGEST_COUNT,
          "pages of a registration that cost host.reg_mr_page each"),
    TIME(host.alloc_pd, NO_FALLBACK, "allocating a protection domain"),
    TIME(host.create_ah, NO_FALLBACK, "creating an address handle"),
    TIME(host.bind_mw, NO_FALLBACK, "binding a memory window"),
    TIME(host.event_call, NO_FALLBACK,
         "arming a completion queue, and each call that takes or acknowledges an event"),
    POWER(host.page_size, "4 KB", 512, 1 << 30, "a page of memory"),

    YES_NO(bus.half_duplex, NO_FALLBACK, "both directions share the bus"),
    RATE(bus.rate, NO_FALLBACK, SLOWEST_GB_S, "the bus, or each of its directions"),
    BYTES(bus.write_burst, NO_FALLBACK, 1, "largest payload of a write to memory"),
    BYTES(bus.read_burst, NO_FALLBACK, 1, "largest payload of a part of a read's answer"),
    BYTES(bus.read_request, NO_FALLBACK, 1, "largest read that one request asks for"),
    TIME(bus.write_overhead, NO_FALLBACK, "what each write occupies the bus besides its payload"),
    TIME(bus.completion_overhead, NO_FALLBACK,
         "what each part of a read's answer occupies the bus besides its payload"),
    TIME(bus.request_overhead, NO_FALLBACK, "what a read request occupies the bus"),
    TIME(bus.link_layer, "0 ns", "what each transaction occupies the other direction"),
    TIME(bus.doorbell_latency, NO_FALLBACK, "from the processor's store to the adapter"),
    TIME(bus.write_latency, NO_FALLBACK, "from the end of a write to the processor's seeing it"),
    TIME(bus.read_latency, NO_FALLBACK, "from a read request to the beginning of its answer"),
    RATE(bus.read_rate, "0 GB/s", 0, "what the memory side can return to reads; 0: not limited"),

    COUNT(hca.engines, NO_FALLBACK, 1, ENGINES_MAX, "send engines of a port"),
    COUNT(hca.engine_depth, NO_FALLBACK, 1, 65536, "packets an engine may have under way"),
    BYTES(hca.buffer, "0 B", 0, "packets on their way out, all together; 0: not limited"),
    TIME(hca.wqe_time, NO_FALLBACK, "an engine begins a message"),
    TIME(hca.sge_time, "0 ns", "an engine gathers a further segment"),
    TIME(hca.packet_time, "0 ns", "an engine makes a packet"),
    TIME(hca.qpc_lock_time, "0 ns", "each packet, in or out, keeps others from the queue's context"),
    BYTES(hca.arbitration_quantum, "0 B", 0,
          "what an engine sends of a message while other queues wait; 0: all of it"),
    YES_NO(hca.drain, "no", "an engine takes a new message only when its packets have left"),
    YES_NO(hca.wait_for_ack, "no",
           "a queue goes on after a send only when that is acknowledged"),
    TIME(hca.ack_turnaround, "0 ns", "from an acknowledgement to the next request of its queue"),
    TIME(hca.recv_time, NO_FALLBACK, "the first packet of a message that arrives"),
    TIME(hca.recv_sge_time, "0 ns", "each further segment a message is scattered to"),
    YES_NO(hca.recv_prefetch, "no", "receive requests are fetched when they are posted"),
    TIME(hca.recv_wqe_time, "0 ns", "taking the receive request of a send that arrives"),
    RATE(hca.scatter_rate, "0 GB/s", 0,
         "scattering to more than one segment; 0: not limited"),
    TIME(hca.read_response, "0 ns", "from the arrival of an RDMA read or atomic to its answer"),
    COUNT(hca.wqe_prefetch, NO_FALLBACK, 1, 65536, "work requests of a queue fetched ahead"),
    BYTES(hca.wqe_bytes, NO_FALLBACK, 1, "a work request with one segment"),
    BYTES(hca.sge_bytes, NO_FALLBACK, 1, "a further segment of a work request"),
    BYTES(hca.cqe_bytes, NO_FALLBACK, 1, "a completion"),
    BYTES(hca.memory, "0 B", 0, "memory on the adapter that programs can use"),
    RATE(hca.memory_rate, "0 GB/s", 0, "that memory"),
    TIME(hca.memory_latency, "0 ns", "from a request to that memory to its answer"),

    { MEMBER(icm.location, enum icm_location), .unit = UNIT_CHOICE, .choices = "adapter host",
      .fallback = NO_FALLBACK, .help = "where contexts are that are not in the adapter's cache" },
    COUNT(icm.qpc_entries, "0", 0, LARGEST_COUNT, "queues whose contexts fit the cache; 0: all"),
    COUNT(icm.mtt_entries, "0", 0, 1 << 24,
          "pages whose translations fit the cache; 0: all"),
    TIME(icm.access_time, "0 ns", "one access of the context unit, behind the cache"),
    TIME(icm.crowded_time, "0 ns",
         "what a queue takes longer while others are fetched, with contexts in the host"),
    REAL(icm.qpc_accesses, "0", "accesses one after the other for a queue not in the cache"),
    REAL(icm.mtt_accesses, "0", "the same for the translation of a page"),
    REAL(icm.write_back_accesses, "0", "accesses for the queue that has to leave the cache"),

    COUNT(link.ports, NO_FALLBACK, 1, 4, "ports of the adapter"),
    RATE(link.rate, NO_FALLBACK, SLOWEST_GB_S, "a port, each direction, after line coding"),
    POWER(link.mtu, NO_FALLBACK, 256, 4096, "largest payload of a packet"),
    BYTES(link.header, NO_FALLBACK, 0, "headers and checksums of a packet"),
    TIME(link.gap, "0 ns", "between packets"),
    TIME(link.latency, NO_FALLBACK, "a cable"),
    BYTES(link.receive_buffer, "0 B", 0, "packets a port can take in on each lane; 0: not limited"),
    COUNT(link.vls, "1", 1, VLS_MAX,
          "virtual lanes for data; service level s takes lane s mod link.vls"),
    TEXT(link.vl_weights, "1",
         "shares of the lanes when several want a cable; the last counts for further lanes"),

    TIME(fabric.latency, NO_FALLBACK, "a switch"),
    { MEMBER(fabric.topology, enum fabric_topology), .unit = UNIT_CHOICE,
      .choices = "single fat-tree", .fallback = "single",
      .help = "one switch, or leaves with a cable to each of fabric.uplinks spines" },
    COUNT(fabric.radix, "0", 0, 65535, "ports of a switch; 0: as many as it takes"),
    COUNT(fabric.uplinks, "0", 0, 65535, "ports of a leaf of a fat tree that lead to spines"),

    TIME(mpi.send, "0 ns", "what the MPI library itself takes for a message it sends"),
    TIME(mpi.receive, "0 ns", "what the MPI library itself takes for a message it receives"),
    TIME(mpi.control, "0 ns", "what the MPI library itself takes for a control message"),
    TIME(mpi.shared_latency, "0 ns",
         "handing a message to a process of the same node, through shared memory"),
    RATE(mpi.shared_rate, "0 GB/s", 0,
         "copying a long message from a process of the same node; 0: as host.copy_rate"),

    REAL(nas.is, "0", "integer sort: million operations a second, as NPB counts them; 0: no time"),
    REAL(nas.ft, "0", "Fourier transforms: million operations a second, as NPB counts them; 0: no time"),
    REAL(nas.cg, "0", "conjugate gradients: million operations a second, as NPB counts them; 0: no time"),
    REAL(nas.mg, "0", "multigrid: million operations a second, as NPB counts them; 0: no time"),
    REAL(nas.lu, "0", "over-relaxation: million operations a second, as NPB counts them; 0: no time"),
    BYTES(nas.reach, "0 B", 0,
          "of a table that is used at random, what is at hand for the processor; 0: all of it"),
    TIME(nas.miss, "0 ns", "an access to the rest of such a table takes longer by this"),

    { .key = NULL },
};
/* clang-format on */

static_assert(sizeof(parameter_rows) / sizeof(*parameter_rows) <= PARAMETER_ROWS_MAX,
              "every row has its place in a table of that size");
static_assert(sizeof(enum icm_location) == sizeof(unsigned int), "choices are stored as such");
