/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LIVE_COPY_H
#define LIVE_COPY_H

/* Copies between this process and the memory that a key refers to. */

#include "hca/mr.h"

#include <sys/uio.h>

/* A work request's SGEs as addresses of this process. */
struct local_list {
    struct iovec iov[HCA_MAX_SGE];
    unsigned count;
    bool unmapped; /* the program may have unmapped a part: only the kernel can tell */
    uint64_t length;
};

/* Copies local->length bytes to or from `refs`, in order. Returns 0, or an errno value: EFAULT
 * (memory not mapped), ESRCH (process gone), EPERM (no access). */
int copy_out(const struct local_list *local, const struct mem_ref *refs, unsigned count);
int copy_in(const struct local_list *local, const struct mem_ref *ref);

/* One word, for atomics. */
int copy_word(const struct mem_ref *ref, uint64_t *word, bool to_place);
/* The word itself, if it is mapped here; NULL: it has to be copied. */
_Atomic uint64_t *copy_mapped_word(const struct mem_ref *ref);

/* Why peers need this process's copy agent: the system refuses process_vm_*, or the user asked for
 * it. NULL: they do not. */
const char *copy_refused_because(bool *asked_for);

/* Executes the copy request of a peer, if there is one. */
void copy_serve_peer(void);

#endif
