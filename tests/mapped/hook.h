/* SPDX-License-Identifier: BSD-2-Clause */
/* Another library that intercepts munmap(), as UCX does to keep its cache of registrations. */
#ifndef TESTS_MAPPED_HOOK_H
#define TESTS_MAPPED_HOOK_H

/* Called before memory is unmapped, unless it is NULL. */
extern void (*hook_before_munmap)(void *addr);

#endif
