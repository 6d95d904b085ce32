/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DMA_SYSV_H
#define DMA_SYSV_H

/* Memory of the program in System V segments (shmget(2)), which peers can attach. */

#include "util/util.h"

struct sysv_range {
    int id;
    uint64_t start, end; /* the mapping */
    uint64_t offset;     /* of start, in the segment */
    bool writable;
};

/* The mapping of a System V segment that covers the address; false: there is none. */
bool sysv_at(uint64_t addr, struct sysv_range *range);
/* Tells namespaces apart, in which ids have different meanings; 0: unknown. */
uint32_t sysv_namespace(void);

#endif
