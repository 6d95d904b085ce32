#ifndef DMA_AGENT_H
#define DMA_AGENT_H

/* Threads that start when something needs them. */

#include <stdbool.h>

int agent_init(void);
void agent_stop(void);

/* From now on peers ask this process to copy, instead of trying. */
void agent_start(void);

/* Something waits, and the program may not poll: the service thread must make progress. */
void agent_watch(void);
bool agent_is_running(void);

#endif
