#ifndef LIVE_COPY_H
#define LIVE_COPY_H

/* Moving bytes between this process and wherever a key leads. */

#include "hca/mr.h"

#include <sys/uio.h>

/* What a request's scatter/gather list comes to in our own memory. */
struct local_list {
    struct iovec iov[HCA_MAX_SGE];
    unsigned count;
    bool unmapped; /* some of it may not be there any more: only the kernel can tell */
    uint64_t length;
};

/* Copies local->length bytes; the places take as many, in order. 0, or an errno value:
 * EFAULT when the memory is not there, ESRCH when its process is gone, EPERM when nothing works. */
int copy_out(const struct local_list *local, const struct mem_ref *refs, unsigned count);
int copy_in(const struct local_list *local, const struct mem_ref *ref);

/* One word, for atomics. */
int copy_word(const struct mem_ref *ref, uint64_t *word, bool to_place);
/* The word itself, if it is mapped here; NULL: it has to be copied. */
_Atomic uint64_t *copy_mapped_word(const struct mem_ref *ref);

/* Why peers must ask this process to copy for them: the system refuses process_vm_*, or the user
 * wants it so. NULL: they need not. */
const char *copy_refused_because(bool *asked_for);

/* Makes the copy that a peer has asked of us, if any. */
void copy_serve_peer(void);

#endif
