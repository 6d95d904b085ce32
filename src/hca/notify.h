/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef HCA_NOTIFY_H
#define HCA_NOTIFY_H

/* Wakes another process through its eventfd, which we duplicate with pidfd_getfd(2), or through its
 * named pipe (wake_file.h). */

#include "hca/segment.h"

/* Creates a descriptor that counts events like a semaphore eventfd, and an id that this process
 * never reuses. */
int notify_create(uint32_t *id);
void notify_close(int fd, uint32_t id);

/* Adds one to descriptor `fd` of process slot `proc`. If the fd cannot be duplicated, the owner's
 * service thread is woken to look for changes (proc_attention). */
void notify_raise(unsigned proc, int fd, uint32_t id);

/* Subtracts one from a descriptor of our own; false: it was 0. Does not block. */
bool notify_lower(int fd);

/* The service thread calls these hooks when peers could not raise our descriptors themselves. Each
 * hook raises its own descriptors as needed. Adding a hook twice is harmless. */
void notify_add_service_hook(void (*hook)(void));
void notify_run_service_hooks(void);

/* Starts our service thread and copy agent if a peer needs them. Call it where a process that does
 * not poll gets to before a peer may use its memory, or before it sleeps. */
void notify_serve_if_wanted(void);

void notify_forget_process(unsigned proc);

#endif
