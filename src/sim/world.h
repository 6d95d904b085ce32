/* The modelled fabric as one object in the segment, and how a process attaches to it. */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

/* Far from where programs, sanitizers and the kernel put things. */
#define SIM_BASE_ADDRESS 0x200000000000ull

/* Idempotent: finds the modelled fabric of the segment, or makes it. Returns 0 or an errno value
 * with the reason logged. */
int world_attach(void);

#endif
