/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_LIST_PAPERS_H
#define CLI_LIST_PAPERS_H

#include "commands.h"

/* Prints every value that the papers quote, by paper. */
int list_papers(const struct invocation *invocation);

#endif
