/* SPDX-License-Identifier: BSD-2-Clause */
/* System V memory for one process and those that attach it by its id, while the process lives. It has
 * no name in any file system, and the kernel removes it with its last user. A process that is killed
 * between creating and removing it leaves a segment behind: its key tells that it is one of these, so
 * that another process can remove it. */
#ifndef UTIL_SYSV_MEMORY_H
#define UTIL_SYSV_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* Returns the memory, zeroed, or NULL. munmap() frees it. */
void *sysv_memory_map(size_t size);

/* The first half of sysv_memory_map(): the id of a segment that stays, or -1. */
int sysv_memory_create(size_t size);

/* Calls 'each' for every segment of this user that a dead process has left. */
void sysv_memory_each_stale(void (*each)(int id, uint64_t bytes, void *context), void *context);
void sysv_memory_remove_stale(void);

#endif
