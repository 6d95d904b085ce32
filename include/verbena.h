#ifndef VERBENA_H
#define VERBENA_H

/* What Verbena's adapters can do beyond the verbs API. Programs find these with dlsym(3) in the
 * preloaded library, so that they also run where it is not. */

#include <infiniband/verbs.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Pulls the cable of a port of the software adapter, or puts it back. The port's state changes for
 * every process of the fabric, those that have the adapter open get IBV_EVENT_PORT_ERR or
 * IBV_EVENT_PORT_ACTIVE, and nothing passes while it is down. Returns 0 or an errno value. */
int verbena_set_port(struct ibv_context *context, uint8_t port_num, int up);

/* Virtual time: when the fabric is a model of an adapter ("verbena run --adapter"), these say what a
 * program does outside the verbs. Anywhere else they do nothing, and verbena_is_virtual() is 0. */
int verbena_is_virtual(void);

/* The clock of this thread, in nanoseconds. */
uint64_t verbena_now(void);

/* The thread computes for so long, or copies so many bytes. */
void verbena_compute(uint64_t ns);
void verbena_copy(uint64_t bytes);

/* A number of the modelled adapter by its key in adapter files ("mpi.send"): times in nanoseconds,
 * rates in GB/s, sizes in bytes. Returns 0, or ENOENT if the fabric is not a model or there is no
 * number of that name; '*value' is set only on success. */
int verbena_parameter(const char *key, double *value);

/* How often memory that peers write may have changed so far, or a completion has come. */
uint32_t verbena_changes(void);

/* It has looked, after so many changes, and found nothing: returns 1 when there has been another; 0
 * at that time of its clock (UINT64_MAX: none), or if nothing can happen now. */
int verbena_spin(uint32_t changes, uint64_t until);

/* For how many milliseconds this thread has now waited in vain while nothing could happen in the
 * modelled fabric: the adapters had nothing to do, and all other threads waited, too. They are
 * counted in its own looks, so that time in which the thread gets no processor does not count. */
uint64_t verbena_stalled(void);

/* It has written memory that threads of that process look at: those who spin look again. */
void verbena_memory_written(int pid);

/* It waits for all 'count' threads of a group by means of its own, between these calls; afterwards
 * the clocks of all are the same. 'all' is 0 if it did not come to that. */
void verbena_barrier_begin(uint32_t count);
void verbena_barrier_end(int all);

/* It takes no part from here on, until its next verbs call. */
void verbena_leave(void);

#ifdef __cplusplus
}
#endif

#endif
