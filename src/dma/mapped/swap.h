#ifndef LIVE_SWAP_H
#define LIVE_SWAP_H

/*
 * Exchanging private memory for a file that others can map, while the program goes on using it.
 *
 * Pages are moved aside one piece at a time; whoever touches one meanwhile (a thread, the kernel on
 * its behalf, a peer's process_vm_writev) sleeps in userfaultfd until the file is in its place. So
 * no write is lost. A page that the kernel has pinned refuses to move, and then everything stays as
 * it was.
 */

#include "util/util.h"

enum swap_kind {
    SWAP_NONE,      /* the kernel offers too little */
    SWAP_USER_ONLY, /* the kernel's own accesses fail instead of waiting: only without threads */
    SWAP_FULL,
};

/* What this kernel lets this process do; asked once. If none, why gets the reason. */
enum swap_kind swap_offered(const char **why);

/*
 * Whole pages of writable private memory become the file's, from that offset on, with their
 * contents. 0, or an errno value and the memory is as before: EBUSY pinned, EINVAL locked, EEXIST
 * somebody watches it with userfaultfd, ENOMEM, EMFILE. The share lock is held (share.h).
 */
int swap_for_file(uint64_t addr, uint64_t length, int file, uint64_t offset);

#endif
