/* SPDX-License-Identifier: BSD-2-Clause */
/* Processors without a time-stamp counter that traps: programs read time by calls only. */
#include "sim/guest/guest.h"

void tsc_trap(bool trap)
{
    (void)trap;
}

void tsc_prepare(void) {}
