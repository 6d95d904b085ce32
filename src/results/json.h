/* SPDX-License-Identifier: BSD-2-Clause */
/* Results as a JSON value. */
#ifndef RESULTS_JSON_H
#define RESULTS_JSON_H

#include "results.h"

#include <jansson.h>

json_t *results_json(const struct results *results);

/* Reads a JSON document and rejects duplicate names. Returns NULL with the reason in 'error'. */
json_t *json_read(const char *path, char *error, size_t size);

#endif
