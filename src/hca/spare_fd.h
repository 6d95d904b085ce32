/* SPDX-License-Identifier: BSD-2-Clause */
/* Waking a peer takes descriptors for a moment. Two are kept for that, so that a program which has
 * used up its own does not let its peers sleep for ever. */
#ifndef HCA_SPARE_FD_H
#define HCA_SPARE_FD_H

#include <stdbool.h>

/* Both need a lock against other callers. */

/* Opens them, unless they are open. */
void spare_fd_keep(void);

/* Call when errno says why a call has failed. True: it lacked descriptors, and there are two now; the
 * caller closes what it opens and calls spare_fd_keep(). */
bool spare_fd_release(void);

#endif
