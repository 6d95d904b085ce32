/* SPDX-License-Identifier: BSD-2-Clause */
/* Attaching a process to the modelled fabric, which is one object in the segment. */
#ifndef SIM_ATTACH_H
#define SIM_ATTACH_H

/* Far from where programs, sanitizers and the kernel map memory. */
#define SIM_BASE_ADDRESS 0x200000000000ull

/* Attaches to the segment's modelled fabric, creating it if there is none. Idempotent. Returns 0 or
 * an errno value with the reason logged. */
int sim_attach(void);

#endif
