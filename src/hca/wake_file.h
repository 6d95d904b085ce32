/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef HCA_WAKE_FILE_H
#define HCA_WAKE_FILE_H

/* Named pipes beside the segment, in place of eventfds: a peer opens one by its name, where it
 * cannot duplicate a descriptor (pidfd_getfd(2) is refused, or the peer is in another PID
 * namespace). Eight bytes in the pipe are one event, as in an EFD_SEMAPHORE eventfd. */

#include <stdbool.h>
#include <stdint.h>

/* Whether descriptors of this process should be named pipes. */
bool wake_file_needed(void);

/* Returns the descriptor, or -1 with errno. */
int wake_file_create(uint32_t id);
/* Opens the pipe of another process for writing. Returns the descriptor, or -1. */
int wake_file_open(unsigned proc, uint32_t id);

void wake_file_remove_one(uint32_t id); /* of this process */
void wake_file_remove(unsigned proc);
/* The segment is new, or nobody uses it any more. */
void wake_file_remove_all(const char *segment_path);

#endif
