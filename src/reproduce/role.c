/* SPDX-License-Identifier: BSD-2-Clause */
#include "role.h"
#include "origins.h"
#include "sim/adapter/parameters.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define PARTS_MAX 16
#define PAPER     "paper "

const char *role_name(enum role role)
{
    static const char *const names[ROLES] = { "predicted", "fitted", "input", "repeated", "shape" };

    return names[role];
}

/* ---- sources: "figures 2 and 9 to 11", "table 1" ---- */

struct part {
    char kind; /* 'f'igure, 't'able, 's'ection */
    long first, last;
    char letter; /* of "5c", or 0: all of them */
};

static bool take_word(const char **at, const char *word)
{
    size_t length = strlen(word);

    if (strncmp(*at, word, length) || isalnum((unsigned char)(*at)[length]))
        return false;
    *at += length;
    return true;
}

static bool take_kind(const char **at, char *kind)
{
    static const char *const kinds[] = { "figure", "figures", "table", "tables", "section" };

    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        if (take_word(at, kinds[i])) {
            *kind = *kinds[i];
            return true;
        }
    }
    return false;
}

/* Reads as far as the text is a list. Returns how many parts it has. */
static unsigned int read_sources(const char *at, struct part *parts)
{
    unsigned int count = 0;
    bool range = false;
    char kind = 0, *end;

    while (*at && count < PARTS_MAX) {
        if (*at == ' ' || *at == ',') {
            at++;
        } else if (take_kind(&at, &kind) || take_word(&at, "and")) {
            range = false;
        } else if (count && take_word(&at, "to")) {
            range = true;
        } else if (kind && isdigit((unsigned char)*at)) {
            long number = strtol(at, &end, 10);

            at = end;
            if (range)
                parts[count - 1] = (struct part){ kind, parts[count - 1].first, number, 0 };
            else
                parts[count++] = (struct part){ kind, number, number, 0 };
            if (islower((unsigned char)*at)) {
                parts[count - 1].letter = range ? 0 : *at;
                at++;
            }
            range = false;
        } else {
            break;
        }
    }
    return count;
}

static bool same_part(const struct part *a, const struct part *b)
{
    return a->kind == b->kind && a->first <= b->last && b->first <= a->last &&
           (!a->letter || !b->letter || a->letter == b->letter);
}

bool role_sources_overlap(const char *one, const char *other)
{
    struct part a[PARTS_MAX], b[PARTS_MAX];
    unsigned int a_count = read_sources(one, a), b_count = read_sources(other, b);

    for (unsigned int i = 0; i < a_count; i++) {
        for (unsigned int k = 0; k < b_count; k++) {
            if (same_part(&a[i], &b[k]))
                return true;
        }
    }
    return false;
}

/* Where in its paper the row's value stands: its own "source", or that of its figure. */
static const char *source_of(const struct paper_row *row)
{
    const char *own = paper_db_text(row->spec, "source"), *id = paper_db_text(row->spec, "figure");
    const json_t *figure;
    size_t i;

    if (own || !id)
        return own;
    json_array_foreach(json_object_get(row->paper->document, "figures"), i, figure)
    {
        if (!strcmp(paper_db_text(figure, "id"), id))
            return paper_db_text(figure, "source");
    }
    return NULL;
}

/* Whether an origin names the row's place. One that names no place in the paper means all of it,
 * and so does one of a row whose place is unknown. */
static bool names_row(const char *origin, const struct paper_row *row)
{
    const char *source = source_of(row), *at = origin;
    struct part parts[PARTS_MAX];
    bool unknown = !source || !read_sources(source, parts);

    while ((at = strstr(at, PAPER))) {
        at += strlen(PAPER);
        if (!take_word(&at, row->paper->number))
            continue;
        if (unknown || !read_sources(at, parts) || role_sources_overlap(at, source))
            return true;
    }
    return false;
}

static bool says_fitted(const char *origin)
{
    return !strncmp(origin, "fitted", strlen("fitted"));
}

bool role_fits(const char *origin, const struct paper_row *row)
{
    return says_fitted(origin) && names_row(origin, row);
}

/* An origin that says "fitted" and names no paper may mean any row. */
static bool may_fit(const char *origin, const struct paper_row *row)
{
    return says_fitted(origin) && (!strstr(origin, PAPER) || names_row(origin, row));
}

static bool is_input(const struct paper_row *row)
{
    const char *key = paper_db_text(row->spec, "input");
    struct origins *origins = key ? origins_read(paper_db_text(row->spec, "adapter")) : NULL;
    bool is = origins && names_row(origins_text(origins, key), row);

    origins_free(origins);
    return is;
}

static int is_fitted(const struct reference *reference, void *row)
{
    struct origins *origins = origins_read(reference->adapter);
    bool is = false;

    for (const struct parameter_row *key = parameter_rows; origins && key->key; key++)
        is |= may_fit(origins_text(origins, key->key), row);
    origins_free(origins);
    return is;
}

enum role role_of(const struct paper_row *row)
{
    if (json_object_get(row->spec, "checks") || !strcmp(row->fields[FIELD_KIND], "shape"))
        return ROLE_SHAPE;
    if (paper_db_text(row->spec, "not_run"))
        return ROLE_PREDICTED;
    if (is_input(row))
        return ROLE_INPUT;
    if (paper_db_text(row->spec, "repeats"))
        return ROLE_REPEATED;
    if (paper_db_visit_references(row, is_fitted, (void *)row, NULL, 0))
        return ROLE_FITTED;
    return ROLE_PREDICTED;
}
