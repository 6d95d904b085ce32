/* SPDX-License-Identifier: BSD-2-Clause */
/* The form of a paper's file, as docs/paper.schema.json has it. */
#ifndef REPRODUCE_PAPER_CHECK_H
#define REPRODUCE_PAPER_CHECK_H

#include <jansson.h>
#include <stddef.h>

#define PAPER_SCHEMA "verbena-paper/1"

/* Returns 0, or -1 with the file, the place in it and the reason in 'error'. */
int paper_check(const json_t *document, const char *path, char *error, size_t size);

#endif
