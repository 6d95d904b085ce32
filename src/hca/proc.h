#ifndef HCA_PROC_H
#define HCA_PROC_H

/* Processes of the fabric: who is alive, and what becomes of the dead. */

#include "hca/segment.h"

#include <sys/types.h>

extern atomic_int proc_self; /* our slot, -1 when not attached (also in a forked child) */

int proc_join(unsigned node);
/* The process ends. Its threads may run on until the kernel has stopped them: peers find nothing of
 * ours any more, but what we own is left to whoever collects the dead. */
void proc_leave(void);

/* Around exec. Peers take the process for dead meanwhile, but it keeps what it owns. If exec
 * succeeds, the new program frees that when it joins, or whoever reaps the process. */
void proc_exec_begin(void);
void proc_exec_failed(void);

static inline struct proc_slot *proc_slot(unsigned index)
{
    return &seg->procs[index];
}

/* Whether the process takes part in the fabric. Cheap enough for retry loops; checks with the kernel
 * at most every few milliseconds. */
bool proc_alive(unsigned index);
static inline bool proc_has_threads(enum proc_state state)
{
    return state == PROC_ALIVE || state == PROC_LEAVING || state == PROC_EXEC;
}
/* Whether a thread of it may still run: true a little longer than proc_alive() for one that leaves. */
bool proc_runs(unsigned index);

/* A word that names a process for good: its slot may be given to another one. Never 0. */
static inline uint32_t proc_word(unsigned index)
{
    return (index + 1) << 16 | (load_relaxed(&proc_slot(index)->generation) & 0xffff);
}
bool proc_word_alive(uint32_t word);
bool proc_word_runs(uint32_t word);

/* Whether a process that may have no slot is running. */
bool proc_pid_runs(pid_t pid);

/* Our pidfd for that process, or -1. */
int proc_pidfd(unsigned index);

/* Frees what dead processes owned. Not to be called inside an epoch or with a lock held. */
void proc_reap_dead(void);
/* The same, but not more often than is worth it: for loops that wait. */
void proc_reap_periodically(void);
bool proc_any_alive(void);
/* The same, not counting those who are on their way out. */
bool proc_any_staying(void);

/* Wakes the owner: its next poll looks at its QPs, its service thread at its channels. */
void proc_attention(unsigned index);

#endif
