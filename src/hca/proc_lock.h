/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef HCA_PROC_LOCK_H
#define HCA_PROC_LOCK_H

/* A lock on the segment's file for each process slot. The kernel releases it when the process has
 * ended, and shows it to every process that can open the file: in another PID namespace, too, where
 * a pid means nothing or another process. */

#include <stdbool.h>

/* Locks the first slot that `is_free` accepts, until this process ends or replaces its program;
 * children do not inherit the lock. Returns the slot, or -1 with errno: EUSERS if no slot is free;
 * any other value means that this system has no such locks. */
int proc_lock_claim(bool (*is_free)(unsigned index));

/* In a forked child: the lock is the parent's. */
void proc_lock_forget(void);

enum proc_lock_state { PROC_LOCK_FREE, PROC_LOCK_HELD, PROC_LOCK_UNKNOWN };
/* `fd`: any descriptor of the segment's file. */
enum proc_lock_state proc_lock_state(int fd, unsigned index);

#endif
