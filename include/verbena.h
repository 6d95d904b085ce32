/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VERBENA_H
#define VERBENA_H

/* Calls of Verbena's adapters beyond the verbs API. Look them up with dlsym(3), so that the program
 * also runs without the preloaded library. */

#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Takes the link of a port of the software adapter down, or brings it up. The port's state changes
 * for every process of the fabric. Processes that have the adapter open get IBV_EVENT_PORT_ERR or
 * IBV_EVENT_PORT_ACTIVE. No message passes a port that is down. Returns 0 or an errno value. */
int verbena_set_port(struct ibv_context *context, uint8_t port_num, int up);

/* What has passed a port since its fabric exists: packets, and octets from LRH to ICRC. The live
 * adapter counts the packets that its messages would be on a link; it has no acknowledgements. */
struct verbena_port_counters {
    uint64_t xmit_bytes, xmit_packets, rcv_bytes, rcv_packets;
};

/* Returns 0 or an errno value. */
int verbena_query_port_counters(struct ibv_context *context, uint8_t port_num,
                                struct verbena_port_counters *counters);

/* Ends the program if the condition does not hold. Under "verbena check" and "verbena run" this is a
 * finding, with the stack; without Verbena it is a message on stderr. */
#define verbena_assert(condition) \
    ((condition) ? (void)0 : verbena_assert_failed(#condition, __FILE__, __LINE__))

/* Defined by the preloaded library only. */
void verbena_report_assertion(const char *condition, const char *file, int line)
    __attribute__((weak));

static inline void verbena_assert_failed(const char *condition, const char *file, int line)
{
    if (verbena_report_assertion)
        verbena_report_assertion(condition, file, line);
    else
        fprintf(stderr, "%s:%d: verbena_assert(%s) failed\n", file, line, condition);
    abort();
}

/* Virtual time. On a modelled adapter ("verbena run --adapter") a program reports with the calls
 * below what it does besides verbs calls. On any other device they do nothing. */

/* Returns 1 on a modelled adapter, else 0. */
int verbena_is_virtual(void);

/* The virtual clock of this thread, in nanoseconds. */
uint64_t verbena_now(void);

/* Advances the clock by `ns`, or by the time that copying `bytes` takes. */
void verbena_compute(uint64_t ns);
void verbena_copy(uint64_t bytes);

/* Reads a parameter of the modelled adapter by its key in adapter files ("mpi.send"): times in
 * nanoseconds, rates in GB/s, sizes in bytes. Returns 0, or ENOENT if the adapter is not modelled or
 * the key is unknown; sets `*value` only on success. */
int verbena_parameter(const char *key, double *value);

/* The change counter of this process: it moves when a peer may have written memory of the process,
 * and when a completion arrives. */
uint32_t verbena_changes(void);

/* Sleeps until the change counter moves past `changes` (returns 1) or the clock reaches `until`
 * (returns 0; UINT64_MAX: no limit). Returns 0 at once if nothing can happen in the fabric now. */
int verbena_spin(uint32_t changes, uint64_t until);

/* From now on this thread polls `cq` alone and waits for nothing else (NULL: no longer). An empty poll
 * then sleeps until the queue has a completion, at no cost for completions of other threads. */
void verbena_poll_only(struct ibv_cq *cq);

/* While `on`, this thread does nothing after an empty poll but poll again: the fabric need not hand over to
 * it for each. Times are the same. */
void verbena_polls_on(int on);

/* Milliseconds of real time for which this thread has waited while the modelled fabric was
 * deadlocked: the adapters were idle and every other thread was waiting too. The count advances
 * with the thread's own calls, so time without a processor does not count. */
uint64_t verbena_stalled(void);

/* Bytes of the host's memory in which the modelled adapter, the first of this node, keeps contexts
 * and translations (ICM); 0 if it keeps them in memory of its own. */
uint64_t verbena_icm_memory(void);

/* Reports that this thread has written memory which process `pid` polls: threads in verbena_spin()
 * there return. */
void verbena_memory_written(int pid);

/* Bracket a barrier of `count` threads that the program implements itself. Afterwards the clocks of
 * all threads are equal. `all` is 0 if the barrier was given up. */
void verbena_barrier_begin(uint32_t count);
void verbena_barrier_end(int all);

/* The thread leaves virtual time until its next verbs call: other threads no longer wait for it. */
void verbena_leave(void);

#ifdef __cplusplus
}
#endif

#endif
