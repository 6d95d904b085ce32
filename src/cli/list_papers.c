/* SPDX-License-Identifier: BSD-2-Clause */
#include "list_papers.h"
#include "json.h"
#include "papers.h"

#include <string.h>

static void print_rows(const struct paper_db *db)
{
    const struct paper *paper = NULL;

    for (unsigned int i = 0; i < db->row_count; i++) {
        const struct paper_row *row = &db->rows[i];
        char *const *fields = row->fields;
        const char *left_out = paper_db_text(row->spec, "not_run");

        if (row->paper != paper) {
            printf("%s%s: %s, %s\n", paper ? "\n" : "", row->paper->name,
                   paper_db_text(row->paper->document, "authors"),
                   paper_db_text(row->paper->document, "title"));
            paper = row->paper;
        }
        printf("  %-24s %-12s %-10s %s %s, %s", fields[FIELD_ID], fields[FIELD_EXPERIMENT],
               *fields[FIELD_VALUE] ? fields[FIELD_VALUE] : fields[FIELD_KIND], fields[FIELD_UNIT],
               fields[FIELD_METRIC],
               *fields[FIELD_SETUP] ? fields[FIELD_SETUP] : fields[FIELD_NOTE]);
        printf(left_out ? " (not run: %s)\n" : "\n", left_out);
    }
}

static json_t *row_json(const struct paper_row *row)
{
    json_t *object = json_object();
    const char *left_out = paper_db_text(row->spec, "not_run");

    for (int i = 0; i < FIELD_COUNT; i++)
        json_object_set_new(object, field_names[i], json_string(row->fields[i]));
    json_object_set_new(object, "name", json_string(row->paper->name));
    json_object_set_new(object, "not_run", left_out ? json_string(left_out) : json_null());
    return object;
}

static void print_json(const struct paper_db *db)
{
    json_t *array = json_array();

    for (unsigned int i = 0; i < db->row_count; i++)
        json_array_append_new(array, row_json(&db->rows[i]));
    json_print(array);
}

int list_papers(const struct invocation *invocation)
{
    struct paper_db db;

    if (papers_read(invocation, &db))
        return CLI_FAILED;
    if (option_value(invocation, "json"))
        print_json(&db);
    else
        print_rows(&db);
    paper_db_free(&db);
    return CLI_OK;
}
