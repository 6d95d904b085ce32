/* SPDX-License-Identifier: BSD-2-Clause */
#include "trust.h"
#include "left_out.h"
#include "origins.h"
#include "sim/adapter/parameters.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool begins(const char *text, const char *word)
{
    return !strncmp(text, word, strlen(word));
}

static void count_origins(const struct origins *origins, struct trust *out)
{
    for (const struct parameter_row *row = parameter_rows; row->key; row++) {
        const char *origin = origins_text(origins, row->key);

        if (!origins_file(origins, row->key))
            continue;
        if (begins(origin, "fitted"))
            out->fitted++;
        else if (begins(origin, "assumed") || !*origin)
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

static int is_on_adapter(const struct reference *reference, void *adapter)
{
    return !strcmp(reference->adapter, adapter);
}

static int by_size(const void *a, const void *b)
{
    double one = *(const double *)a, other = *(const double *)b;

    return (one > other) - (one < other);
}

static void judge_left_out(const struct paper_db *db, const char *adapter, struct trust *out)
{
    double *errors = malloc((db->row_count + 1) * sizeof(*errors));
    unsigned int count = 0;

    if (!errors)
        abort();
    for (unsigned int i = 0; i < db->row_count; i++) {
        const struct paper_row *row = &db->rows[i];
        double error = left_out_recorded(row);

        if (!isnan(error) &&
            paper_db_visit_references(row, is_on_adapter, (void *)adapter, NULL, 0))
            errors[count++] = fabs(error);
    }
    qsort(errors, count, sizeof(*errors), by_size);
    out->left_out = count;
    out->median = count ? (errors[(count - 1) / 2] + errors[count / 2]) / 2 : NAN;
    out->nine_in_ten = count ? errors[(9 * count + 9) / 10 - 1] : NAN;
    free(errors);
}

int trust_read(const struct paper_db *db, const char *adapter, struct trust *out)
{
    struct origins *origins = origins_read(adapter);

    *out = (struct trust){ 0 };
    if (!origins)
        return -1;
    count_origins(origins, out);
    out->fitted_to = list_papers_of(db, origins);
    judge_left_out(db, adapter, out);
    origins_free(origins);
    return 0;
}

void trust_free(struct trust *trust)
{
    free(trust->fitted_to);
}
