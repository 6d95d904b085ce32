/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DMA_MAPPED_SWAP_H
#define DMA_MAPPED_SWAP_H

/*
 * Exchanges private memory for a file that peers can map, while the program uses it.
 *
 * Pages are moved aside one piece at a time. Meanwhile any access (by a thread, the kernel on its
 * behalf, a peer's process_vm_writev) blocks in userfaultfd until the file is mapped there, so no
 * write is lost. Pages pinned by the kernel cannot be moved: then nothing changes.
 */

#include "util/util.h"

enum swap_kind {
    SWAP_NONE,      /* the kernel lacks support */
    SWAP_USER_ONLY, /* accesses by the kernel fail: only for single-threaded programs */
    SWAP_FULL,
};

/* What this kernel allows this process; determined once. With SWAP_NONE, `why` is the reason. */
enum swap_kind swap_offered(const char **why);

/*
 * Replaces whole pages of writable private memory by the file at `offset`, with their contents.
 * Returns 0, or an errno value with the memory unchanged: EBUSY (pinned), EINVAL (locked), EEXIST
 * (watched by another userfaultfd), ENOMEM, EMFILE. The caller holds the share lock (share.h).
 */
int swap_for_file(uint64_t addr, uint64_t length, int file, uint64_t offset);

#endif
