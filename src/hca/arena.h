/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef HCA_ARENA_H
#define HCA_ARENA_H

/* Memory in the segment. Blocks belong to the calling process and are freed when it dies. */

#include "hca/segment.h"

/* Zeroed memory, aligned to a cache line, or NULL with errno (ENOMEM, ENOSPC). */
void *arena_alloc(uint64_t size);
void arena_free(void *ptr, uint64_t size);

/* Allocates whole units for another process, which frees them or dies. */
void *arena_alloc_for(unsigned proc, uint64_t size);

/* Memory that outlives its creator, for tables of the fabric itself. */
void *arena_alloc_permanent(uint64_t size);

/* Bytes of the segment in use by all processes. */
uint64_t arena_bytes_used(void);
/* The high-water mark of the segment, in bytes. */
uint64_t arena_bytes_most(void);

/* Under proc_lock, after a grace period: frees everything that process slot owned. */
void arena_free_owner(unsigned proc);

/* In a forked child, which owns no memory. */
void arena_forget(void);

#endif
