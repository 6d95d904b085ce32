/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_PAPERS_H
#define CLI_PAPERS_H

#include "options.h"
#include "reproduce/paper_db.h"

/* Reads the installed papers and those of --papers or VERBENA_PAPERS. Returns CLI_OK, or CLI_FAILED
 * after printing the reason. */
int papers_read(const struct invocation *invocation, struct paper_db *db);

/* The same, and those that are installed but not reproduced unless they are named: public figures of
 * single adapters. */
int papers_read_all(const struct invocation *invocation, struct paper_db *db);

#endif
