/* SPDX-License-Identifier: BSD-2-Clause */
/* The numbers among the MCA parameters, "mtl_verbena_NAME". No Open MPI here: the component registers
 * these rows, and the advice of the command knows from them what it can set. */
#ifndef MTL_PARAMETER_ROWS_H
#define MTL_PARAMETER_ROWS_H

#include "mtl/wire.h"
#include "rails/rails.h"

#define MTL_EAGER_LIMIT     8192
#define MTL_EAGER_LIMIT_MIN 64
#define MTL_EAGER_LIMIT_MAX (1 << 20)

#define MTL_SHARED_MEMORY_LIMIT      8192 /* in virtual time */
#define MTL_SHARED_MEMORY_LIMIT_BUSY 32768 /* live, with more processes than cores */
#define MTL_SHARED_MEMORY_LIMIT_MAX  262144 /* live */

/* clang-format off */
/* name, default, minimum, maximum, help */
#define MTL_NUMBER_ROWS(ROW) \
    ROW(priority, 5, 0, 100, "Priority of this component among the MTLs") \
    ROW(ports, 0, 0, PORTS_MAX, "Ports to use of each device; 0: all active ports") \
    ROW(qps, 1, 1, RAILS_MAX, "Queue pairs on each port to each process") \
    ROW(bind, -1, -1, RAILS_MAX - 1, \
        "Rail of the policy 'binding', and of short messages of other policies; -1: the processes " \
        "of a host are distributed over the ports") \
    ROW(gid_index, -1, -1, 255, "GID index; -1: chosen by link layer") \
    ROW(mtu, 0, 0, 4096, "Path MTU in bytes; 0: the active MTU of the port") \
    ROW(eager_limit, MTL_EAGER_LIMIT, MTL_EAGER_LIMIT_MIN, MTL_EAGER_LIMIT_MAX, \
        "Longest message sent eagerly over rails, in bytes; longer ones use rendezvous") \
    ROW(shared_memory_limit, 0, 0, MTL_SHARED_MEMORY_LIMIT_MAX, \
        "Longest message copied through shared memory, in bytes; 0: up to 262144, 32768 if there are more processes than cores, 8192 in virtual time") \
    ROW(coop_copy_min, 65536, 0, INT32_MAX, \
        "Shortest message within a node that sender and receiver copy together, in bytes; 0: none") \
    ROW(stripe_threshold, RAILS_STRIPE_THRESHOLD, 1, INT32_MAX, \
        "Shortest message that is striped over rails, in bytes") \
    ROW(minimum_stripe, RAILS_MINIMUM_STRIPE, 1, INT32_MAX, \
        "Shortest stripe of a striped message, in bytes") \
    ROW(stripe_cost, RAILS_STRIPE_COST_NS, 0, INT32_MAX, \
        "Cost of one more stripe for an adapter, in nanoseconds, for the policy 'adaptive'") \
    ROW(inline_limit, 128, 0, 1024, "Longest inline send, in bytes") \
    ROW(window, 32, 4, 1024, "Slots of each rail: messages in flight") \
    ROW(polled_peers, 16, 0, INT32_MAX, \
        "Peers that write eager messages into polled slots; the others send them") \
    ROW(signal_interval, 16, 1, 512, "Messages per signaled completion") \
    ROW(active_qps, 0, 0, INT32_MAX, \
        "Queue pair contexts that fit into the adapter's cache: jobs with many processes use fewer " \
        "queue pairs for each; 0: no limit") \
    ROW(registrations, 1024, 1, 1 << 20, "Capacity of the registration cache for user memory") \
    ROW(retry_count, 7, 0, 7, "Transport retries before a rail fails") \
    ROW(timeout, 14, 0, 31, "Transport timeout: 4.096 us times 2 to this power")
/* clang-format on */

enum mtl_number {
#define MTL_NUMBER_ID(name, ...) MTL_##name,
    MTL_NUMBER_ROWS(MTL_NUMBER_ID)
};

#endif
