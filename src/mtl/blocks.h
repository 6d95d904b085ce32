/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory for messages that arrive before their receives. The allocator gives the pages of long
 * blocks back to the kernel, and new ones cost more than the copy: some blocks are kept. */
#ifndef MTL_BLOCKS_H
#define MTL_BLOCKS_H

#include <stddef.h>

#define BLOCKS_KEPT_MAX (4u << 20) /* bytes */

/* Returns NULL if there is no memory. */
void *blocks_get(size_t size);
/* 'size' is what was asked for. */
void blocks_put(void *block, size_t size);
size_t blocks_kept(void); /* bytes */
void blocks_free(void);

#endif
