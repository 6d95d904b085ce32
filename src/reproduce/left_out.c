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

static const json_t *entry_of(const struct paper_row *row)
{
    const json_t *rows = json_object_get(row->paper->left_out, "rows"), *entry;
    size_t i;

    json_array_foreach(rows, i, entry)
    {
        const char *id = paper_db_text(entry, "id");

        if (id && !strcmp(id, row->fields[FIELD_ID]))
            return entry;
    }
    return NULL;
}

static double number_of(const json_t *object, const char *name)
{
    const json_t *number = json_object_get(object, name);

    return json_is_number(number) ? json_number_value(number) : NAN;
}

double left_out_recorded(const struct paper_row *row)
{
    double refitted = number_of(entry_of(row), "refitted");

    return isnan(refitted) ? number_of(entry_of(row), "unseen") : refitted;
}

bool left_out_is_estimate(const struct paper_row *row)
{
    return isnan(number_of(entry_of(row), "refitted"));
}

double left_out_now(const struct paper_row *row)
{
    return number_of(entry_of(row), "now");
}

double left_out_error(const struct paper_row *row, double error)
{
    return fabs(left_out_now(row) - error) <= SAME ? left_out_recorded(row) : NAN;
}
