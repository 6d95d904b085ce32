#ifndef HCA_NOTIFY_H
#define HCA_NOTIFY_H

/* Waking another process through an eventfd of its own, which we duplicate with pidfd_getfd. */

#include "hca/segment.h"

/* A new semaphore eventfd and an id that is never used again by this process. */
int notify_create(uint32_t *id);

/* Adds one to eventfd `fd` of process slot `proc`. Where the fd cannot be had, the owner's service
 * thread is asked to look at what has changed (proc_attention). */
void notify_raise(unsigned proc, int fd, uint32_t id);

/* Takes one raise of a descriptor of our own back, if nobody has; does not wait. */
bool notify_lower(int fd);

/* What the service thread calls when others could not raise our descriptors themselves: each hook
 * makes its own descriptors readable where something waits. Adding one twice is harmless. */
void notify_add_service_hook(void (*hook)(void));
void notify_run_service_hooks(void);

void notify_forget_process(unsigned proc);

#endif
