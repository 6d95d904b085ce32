/* Turns: of all threads in the modelled world exactly one runs, the one with the smallest clock, and
 * whatever the adapters do up to that time is done first, by whoever gives up the turn. The same
 * program thus sees the same world every time, whatever else the machine does. */
#ifndef SIM_TURN_H
#define SIM_TURN_H

#include "sim/world.h"

/* This thread's place; it joins on first use. NULL if there is no room. */
struct entity *turn_self(void);

/* The verbs call that follows takes so long. Returns when it is this thread's turn at the end of it. */
void turn_charge(double ns);

/* Only waits for the turn. */
void turn_await(void);

/* Nothing was found; the next look would be 'period' ns after the last. Sleeps until something of
 * this process changes, and returns at the first look that can find it. False: nothing can happen
 * now, and no time has passed. */
bool turn_park(double period);

/* The same for one that has looked at its memory since its last turn. */
void turn_spin(double period);

/* The same for one that sleeps in the kernel: 'wake' is what an interrupt takes. */
bool turn_block(double wake);

/* Something of that process has changed at this moment. */
void turn_wake(uint32_t proc);

/* Waiting for all 'count' of a group by means outside the modelled world: between the two calls
 * nobody is kept waiting for this thread, and afterwards all of them have the same clock. */
void turn_together_begin(uint32_t count);
void turn_together_end(bool all); /* false: it came to nothing, this thread goes on alone */

/* A stretch that has no part in the modelled world, such as the end of the thread. */
void turn_leave(void);

uint64_t turn_now(void);

#endif
