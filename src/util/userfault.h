#ifndef UTIL_USERFAULT_H
#define UTIL_USERFAULT_H

#include <stdbool.h>

/*
 * A userfaultfd that can move pages (Linux 6.8). Where the system lets only administrators have one
 * that the kernel's own accesses wait for as well, user_only makes one that they do not wait for.
 * -1 with errno: EPERM refused, ENOSYS not in this kernel.
 */
int userfault_open(bool user_only);

/* Moves whole pages into memory that the userfaultfd watches. 0 or an errno value; *done says how
 * many bytes were moved in any case. */
int userfault_move(int uffd, unsigned long to, unsigned long from, unsigned long length,
                   unsigned long *done);

/* Whoever touches a page that is not there waits. 0 or an errno value. */
int userfault_watch(int uffd, unsigned long addr, unsigned long length);

#endif
