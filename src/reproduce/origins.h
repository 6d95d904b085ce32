/* SPDX-License-Identifier: BSD-2-Clause */
/* Where an adapter's parameters come from: the comments of its file and of those it is based on. */
#ifndef REPRODUCE_ORIGINS_H
#define REPRODUCE_ORIGINS_H

#include <stdbool.h>

struct origins;

/* Returns NULL if there is no such adapter. */
struct origins *origins_read(const char *adapter);
void origins_free(struct origins *origins);

/* The comment behind a parameter, or "". */
const char *origins_text(const struct origins *origins, const char *key);

/* The parameter whose value this one has, "fitted, as KEY", or NULL. */
const char *origins_leader(const struct origins *origins, const char *key);

/* The file that sets a parameter, or NULL: its value is the default. */
const char *origins_file(const struct origins *origins, const char *key);

/* Whether two adapters share a file. */
bool origins_related(const struct origins *one, const struct origins *other);

#endif
