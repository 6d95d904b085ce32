/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef HCA_SHM_LOCK_H
#define HCA_SHM_LOCK_H

/* Locks in the segment, held for microseconds. A lock whose holder no longer runs, or has not
 * released it for 20 seconds, is taken over by the next process that asks for it. */

#include "hca/segment.h"

extern uint64_t shm_lock_patience_ns;

/* Returns true if the lock was taken over. */
bool shm_lock(struct shm_lock *lock);
/* For a process that has no slot yet, or no longer: its pid identifies it. */
bool shm_lock_by_pid(struct shm_lock *lock);
void shm_unlock(struct shm_lock *lock);

#endif
