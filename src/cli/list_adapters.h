#ifndef CLI_LIST_ADAPTERS_H
#define CLI_LIST_ADAPTERS_H

#include "commands.h"

/* One line per adapter file; a file that is not in order is said to be so, and fails the command.
 */
int list_adapters(const struct invocation *invocation);

#endif
