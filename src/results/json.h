/* Results as a JSON value, for those who put them into another document. */
#ifndef RESULTS_JSON_H
#define RESULTS_JSON_H

#include "results.h"

#include <jansson.h>

json_t *results_json(const struct results *results);

#endif
