/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the report page. */
#ifndef RESULTS_PAGE_H
#define RESULTS_PAGE_H

#include <jansson.h>
#include <stddef.h>

/* Embeds 'data' in the template and writes the page. Returns 0, or -1 with the reason in 'error'.
 */
int page_write(const char *template_path, const json_t *data, const char *path, char *error,
               size_t size);

#endif
