/* SPDX-License-Identifier: BSD-2-Clause */
/* --adapter NAME and the options that go with it: the modelled adapter, and its output files; or
 * --wire in its place. */
#ifndef CLI_MODEL_H
#define CLI_MODEL_H

#include "options.h"

/* CLI_OK unless options of modelled adapters are given without --adapter. */
int model_check(const struct invocation *invocation);

/* Finds and checks the adapter file, or the interface of --wire, and exports it to the environment
 * for the library. Returns CLI_OK, also without either or with "live"; else a status after printing
 * the reason. */
int model_export(const struct invocation *invocation);

/* Call when every process has ended: prints which output files could not be written. Returns the
 * status, changed from CLI_OK if any failed. */
int model_finish(int status);

/* For commands that name the fabric after their pid: exports a fixed seed, so that the numbers of
 * objects in a modelled fabric do not depend on the pid. */
void model_export_seed(void);

#endif
