/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef HCA_PROC_H
#define HCA_PROC_H

/* Processes of the fabric: joining, leaving, liveness, and reaping the dead. */

#include "hca/segment.h"

#include <sys/types.h>

extern atomic_int proc_self; /* our slot, -1 when not attached (also in a forked child) */

int proc_join(unsigned node);
/* The process ends. Its objects become unfindable; since its threads may run until the kernel stops
 * them, another process frees the objects afterwards. */
void proc_leave(void);

/* Call around exec. Meanwhile peers treat the process as dead, but it keeps its objects. If exec
 * succeeds, they are freed when the new program joins or a peer reaps the process. */
void proc_exec_begin(void);
void proc_exec_failed(void);

static inline struct proc_slot *proc_slot(unsigned index)
{
    return &seg->procs[index];
}

/* Whether the process takes part in the fabric. Cheap enough for retry loops: asks the kernel at
 * most every few milliseconds. */
bool proc_alive(unsigned index);
static inline bool proc_has_threads(enum proc_state state)
{
    return state == PROC_ALIVE || state == PROC_LEAVING || state == PROC_EXEC;
}
/* Whether a thread of the process may still run; true longer than proc_alive() for one that
 * leaves. */
bool proc_runs(unsigned index);

/* Identifies a process for good, while its slot may be reused. Never 0. */
static inline uint32_t proc_word(unsigned index)
{
    return (index + 1) << 16 | (load_relaxed(&proc_slot(index)->generation) & 0xffff);
}
bool proc_word_alive(uint32_t word);
bool proc_word_runs(uint32_t word);

/* Whether a process that may have no slot is running. */
bool proc_pid_runs(pid_t pid);

/* Whether the process is in our PID and user namespaces: its pid has the same meaning here, and the
 * kernel may let us reach its memory and descriptors. */
bool proc_is_near(unsigned index);
/* Whether a process of another namespace is on the fabric. */
bool proc_any_far(void);

/* A descriptor of /proc/PID/NAME, opened for `flags`, or -1. The caller closes it. */
int proc_open(unsigned index, const char *name, int flags);

/* A pidfd of that process, or -1. */
int proc_pidfd(unsigned index);
/* Likewise; the caller closes it. */
int proc_open_pidfd(unsigned index);
/* Its /proc/PID/mem, for copying where process_vm_*(2) is refused, or -1. */
int proc_memory(unsigned index);

/* Frees the objects of dead processes. Do not call it inside an epoch or with a lock held. */
void proc_reap_dead(void);
/* The same, but at most once per interval: for loops that wait. */
void proc_reap_periodically(void);
/* `fd`: a descriptor of the segment's file. */
bool proc_any_alive(int fd);
/* The same, not counting processes that are exiting. */
bool proc_any_staying(void);

/* Wakes a process: its next poll checks its QPs, its service thread its channels. */
void proc_attention(unsigned index);

#endif
