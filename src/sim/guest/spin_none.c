/* SPDX-License-Identifier: BSD-2-Clause */
/* Without single steps of x86-64: a program that spins on memory outside verbs calls does not let time
 * pass. */
#include "sim/guest/guest.h"

void spin_watch(void) {}

void spin_prepare(void) {}

void spin_finish(void) {}
