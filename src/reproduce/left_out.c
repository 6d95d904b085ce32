/* SPDX-License-Identifier: BSD-2-Clause */
#include "left_out.h"
#include "results/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SUFFIX ".left-out"
#define SAME   0.2 /* points: a record of another model is none */

int left_out_read(const char *path, json_t **out, char *error, size_t size)
{
    const char *dot = strrchr(path, '.'), *schema;
    char *name;
    int status = 0;

    *out = NULL;
    if (asprintf(&name, "%.*s" SUFFIX, (int)(dot - path), path) < 0)
        abort();
    if (!access(name, F_OK)) {
        *out = json_read(name, error, size);
        schema = paper_db_text(*out, "schema");
        if (!*out) {
            status = -1;
        } else if (!schema || strcmp(schema, LEFT_OUT_SCHEMA)) {
            snprintf(error, size, "%s: schema is not '" LEFT_OUT_SCHEMA "'", name);
            json_decref(*out);
            *out = NULL;
            status = -1;
        }
    }
    free(name);
    return status;
}

double left_out_error(const struct paper_row *row, double error)
{
    const json_t *rows = json_object_get(row->paper->left_out, "rows"), *entry;
    size_t i;

    json_array_foreach(rows, i, entry)
    {
        const char *id = paper_db_text(entry, "id");
        const json_t *now = json_object_get(entry, "now"),
                     *unseen = json_object_get(entry, "unseen");

        if (id && !strcmp(id, row->fields[FIELD_ID]) && json_is_number(now) &&
            json_is_number(unseen) && fabs(json_number_value(now) - error) <= SAME)
            return json_number_value(unseen);
    }
    return NAN;
}
