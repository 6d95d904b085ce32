/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DMA_AGENT_H
#define DMA_AGENT_H

/* The service thread and the copy agent, started on demand. */

#include <stdbool.h>

int agent_init(void);
void agent_stop(void);

/* From now on peers let this process copy for them. */
void agent_start(void);

/* A WQE waits and the program may not poll: the service thread must make progress. */
void agent_watch(void);
/* Starts the service thread, so that peers can wake it. */
void agent_serve(void);
bool agent_is_running(void);

#endif
