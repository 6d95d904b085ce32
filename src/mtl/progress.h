/* SPDX-License-Identifier: BSD-2-Clause */
/* The progress thread, if the user wants one. It sleeps until a peer sends a message that must be
 * answered before data can move, and answers if no thread of the program is inside MPI. It never
 * reports requests as completed: the program does so in its next call. */
#ifndef MTL_PROGRESS_H
#define MTL_PROGRESS_H

#include "mtl/mtl.h"

#include <infiniband/verbs.h>

/* The completion channel for a device; NULL without a progress thread. */
struct ibv_comp_channel *progress_channel(struct ibv_context *context);

/* Returns the file descriptor that peers on this node write to, or -1. */
int progress_open(void);
void progress_start(void);
void progress_stop(void);

/* The program is about to leave MPI while a long message is under way. Asks for a wake-up; returns
 * false if there is none to come. The caller holds the lock, and polls afterwards. */
bool progress_arm(void);

/* In virtual time: sleeps like vtime.spin(), on behalf of a thread that waits inside MPI. */
bool progress_wait(uint32_t changes, uint64_t until);

/* A thread of the program has polled. */
void progress_polled(void);

#endif
