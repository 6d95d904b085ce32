/* SPDX-License-Identifier: BSD-2-Clause */
/* --wire: RoCEv2 on a network interface of this host. */
#ifndef CLI_WIRE_H
#define CLI_WIRE_H

#include "options.h"

/* Checks the interface and names the fabric after it, unless --fabric is given: all programs on an
 * interface must share one. Returns CLI_OK, also without --wire, or a status after printing the
 * reason. */
int wire_export(const struct invocation *invocation);

#endif
