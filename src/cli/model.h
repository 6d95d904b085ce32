/* --adapter NAME and --set: which adapter the software below is. */
#ifndef CLI_MODEL_H
#define CLI_MODEL_H

#include "options.h"

/* Finds and checks the adapter file that the options name, and tells the library through the
 * environment. CLI_OK also if they name none, or "live". */
int model_export(const struct invocation *invocation);

#endif
