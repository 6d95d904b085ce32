/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UTIL_USERFAULT_H
#define UTIL_USERFAULT_H

#include <stdbool.h>

/*
 * Opens a userfaultfd that can move pages (Linux 6.8). With user_only it handles no faults of the
 * kernel itself, which a system may reserve to administrators. Returns -1 with errno: EPERM not
 * permitted, ENOSYS not in this kernel.
 */
int userfault_open(bool user_only);

/* Moves whole pages into memory that the userfaultfd watches. Returns 0 or an errno value; sets
 * *done to the bytes moved in either case. */
int userfault_move(int uffd, unsigned long to, unsigned long from, unsigned long length,
                   unsigned long *done);

/* From now on an access to a missing page blocks. Returns 0 or an errno value. */
int userfault_watch(int uffd, unsigned long addr, unsigned long length);

#endif
