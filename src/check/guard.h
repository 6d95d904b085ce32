/* SPDX-License-Identifier: BSD-2-Clause */
/* Pages that the program cannot access, because they belong to the adapter. An access faults; its
 * place in the program is remembered, and told when the program is next in a call. */
#ifndef CHECK_GUARD_H
#define CHECK_GUARD_H

#include "check/stacktrace.h"

#include <stdbool.h>

/* Takes these pages away from the program. False: they stay as they are, because nobody would see
 * a fault, or because the adapter could not write them either. */
bool guard_begin(uint64_t first, uint64_t end);
/* Gives them back, if they still exist: something else may be mapped there by now. */
void guard_end(uint64_t first, uint64_t end, bool exist);

struct guard_receive {
    uint64_t addr, wr_id;
    uint32_t length;
    const struct stacktrace *posted;
};

/* The program has accessed a guarded page of this receive. `pc` is the instruction that faulted, or
 * NULL: a system call was given the page. Allocates nothing, since malloc() itself may have made the
 * access. */
void guard_touched(const struct guard_receive *receive, uint64_t address, const void *pc);
/* Tells what guard_touched() has noted. */
void guard_report(void);

#endif
