/* --adapter NAME and what goes with it: which adapter the software below is, and what is to be seen
 * of it. */
#ifndef CLI_MODEL_H
#define CLI_MODEL_H

#include "options.h"

/* CLI_OK unless options that only a modelled adapter understands are given without one. */
int model_check(const struct invocation *invocation);

/* Finds and checks the adapter file that the options name, and tells the library through the
 * environment. CLI_OK also if they name none, or "live"; else the reason has been said. */
int model_export(const struct invocation *invocation);

/* To be called when every process has ended: says which of the files that the options name could
 * not be written. Returns the status, which is then no longer CLI_OK. */
int model_finish(int status);

/* For a command that names its fabric after its process: what a modelled fabric numbers its objects
 * by must not change with that name. */
void model_export_seed(void);

#endif
