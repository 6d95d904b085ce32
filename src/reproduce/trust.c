/* SPDX-License-Identifier: BSD-2-Clause */
#include "trust.h"
#include "left_out.h"
#include "origins.h"
#include "role.h"
#include "sim/adapter/parameters.h"
#include "util/sorted.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool begins(const char *text, const char *word)
{
    return !strncmp(text, word, strlen(word));
}

static bool is_assumed(const struct origins *origins, const char *key)
{
    const char *origin = origins_text(origins, key);

    return strcmp(key, "title") && origins_file(origins, key) &&
           (begins(origin, "assumed") || !*origin);
}

static void count_origins(const struct origins *origins, struct trust *out)
{
    for (const struct parameter_row *row = parameter_rows; row->key; row++) {
        const char *origin = origins_text(origins, row->key);

        if (!origins_file(origins, row->key) || !strcmp(row->key, "title"))
            continue;
        if (begins(origin, "fitted"))
            out->fitted++;
        else if (is_assumed(origins, row->key))
            out->assumed++;
        else
            out->known++;
    }
}

static bool names_paper(const struct origins *origins, const struct paper *paper)
{
    char word[64];

    snprintf(word, sizeof(word), "paper %s", paper->number);
    for (const struct parameter_row *row = parameter_rows; row->key; row++) {
        const char *origin = origins_text(origins, row->key);

        if (begins(origin, "fitted") && strstr(origin, word))
            return true;
    }
    return false;
}

static char *list_papers_of(const struct paper_db *db, const struct origins *origins)
{
    size_t size;
    char *text;
    FILE *file = open_memstream(&text, &size);

    if (!file)
        abort();
    for (unsigned int i = 0; i < db->paper_count; i++) {
        if (names_paper(origins, &db->papers[i]))
            fprintf(file, "%s%s", ftell(file) ? ", " : "", db->papers[i].name);
    }
    fclose(file);
    return text;
}

/* How many assumed parameters each group has. */
static char *list_assumed(const struct origins *origins)
{
    size_t size;
    char *text;
    FILE *file = open_memstream(&text, &size);

    if (!file)
        abort();
    for (const struct parameter_row *row = parameter_rows, *end; row->key; row = end) {
        size_t length = strcspn(row->key, ".");
        unsigned int count = 0;

        for (end = row; end->key && !strncmp(end->key, row->key, length) &&
                        strcspn(end->key, ".") == length;
             end++)
            count += is_assumed(origins, end->key);
        if (count)
            fprintf(file, "%s%.*s %u", ftell(file) ? ", " : "", (int)length, row->key, count);
    }
    fclose(file);
    return text;
}

static int is_on_adapter(const struct reference *reference, void *adapter)
{
    return !strcmp(reference->adapter, adapter);
}

static double seen_error(const struct paper_row *row)
{
    return role_of(row) == ROLE_FITTED ? left_out_now(row) : NAN;
}

static struct trust_errors judge(const struct paper_db *db, const char *adapter,
                                 double (*error_of)(const struct paper_row *row))
{
    double *errors = malloc((db->row_count + 1) * sizeof(*errors));
    struct trust_errors out = { 0, NAN, NAN };

    if (!errors)
        abort();
    for (unsigned int i = 0; i < db->row_count; i++) {
        const struct paper_row *row = &db->rows[i];

        if (paper_db_visit_references(row, is_on_adapter, (void *)adapter, NULL, 0) &&
            !isnan(error_of(row)))
            errors[out.count++] = fabs(error_of(row));
    }
    sorted_make(errors, out.count);
    if (out.count) {
        out.median = sorted_median(errors, out.count);
        out.nine_in_ten = sorted_nine_in_ten(errors, out.count);
    }
    free(errors);
    return out;
}

int trust_read(const struct paper_db *db, const char *adapter, struct trust *out)
{
    struct origins *origins = origins_read(adapter);

    *out = (struct trust){ 0 };
    if (!origins)
        return -1;
    count_origins(origins, out);
    out->fitted_to = list_papers_of(db, origins);
    out->assumed_in = list_assumed(origins);
    out->seen = judge(db, adapter, seen_error);
    out->unseen = judge(db, adapter, left_out_recorded);
    origins_free(origins);
    return 0;
}

void trust_free(struct trust *trust)
{
    free(trust->fitted_to);
    free(trust->assumed_in);
}
