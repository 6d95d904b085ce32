/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RESULTS_ADVICE_JSON_H
#define RESULTS_ADVICE_JSON_H

#include "advice.h"

#include <jansson.h>

/* One advice, with what it rests on. */
json_t *advice_json(const struct advice *advice);

#endif
