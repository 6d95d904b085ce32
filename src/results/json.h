/* Results as a JSON value, for those who put them into another document. */
#ifndef RESULTS_JSON_H
#define RESULTS_JSON_H

#include "results.h"

#include <jansson.h>

json_t *results_json(const struct results *results);

/* Reads any document, which may hold no name twice. Returns NULL with the reason in 'error'. */
json_t *json_read(const char *path, char *error, size_t size);

#endif
