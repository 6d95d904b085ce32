/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_LIST_ADAPTERS_H
#define CLI_LIST_ADAPTERS_H

#include "commands.h"

/* Prints one line for each adapter file. An invalid file is an error, and fails the command. */
int list_adapters(const struct invocation *invocation);

#endif
