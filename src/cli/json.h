/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include <jansson.h>

/* Prints the document on standard output, and frees it. */
void json_print(json_t *document);

#endif
