/* SPDX-License-Identifier: BSD-2-Clause */
#include "json.h"

#include <stdio.h>

#define DIGITS 6

void json_print(json_t *document)
{
    json_dumpf(document, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(DIGITS));
    putchar('\n');
    json_decref(document);
}
