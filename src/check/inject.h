/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults on demand: decides which calls and work requests the plan strikes. */
#ifndef CHECK_INJECT_H
#define CHECK_INJECT_H

#include "check/plan.h"

/* Reads VERBENA_INJECT and VERBENA_INJECT_FILE. Returns whether there is a plan. */
bool inject_start(void);

/* The errno with which this call has to fail, or 0. */
int inject_errno(enum plan_verb verb);

/* What this process has registered changes by this much. Returns 0, or the errno with which the
 * call has to fail; nothing changes then. Less is always allowed. */
int inject_register(int regions, int64_t bytes);

/* From now on every call fails with EIO. */
void inject_device_gone(void);

/* Whether the connection manager has to meet this fault now. */
bool inject_cm(enum plan_fault fault);

/* What happens to the work request that is about to be posted. */
struct injection {
    bool qp_error, disconnect, port_down, port_up, fatal;
    uint8_t status; /* to complete with, 0: its own */
    uint64_t pause_ns;
};
void inject_post(int opcode, struct injection *injection);

/* For how long the thread pauses before it posts a receive. */
uint64_t inject_receive_pause(void);

#endif
