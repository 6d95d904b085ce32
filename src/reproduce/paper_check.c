/* SPDX-License-Identifier: BSD-2-Clause */
#include "paper_check.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define PLACE_MAX 256

enum kind {
    TEXT,
    NUMBER,
    OBJECT,
    ARRAY,
    CHECKS, /* an array */
    TEXTS,  /* an array */
    POINT,  /* "QUANTITY/SERIES/X", or an object with it */
    POINTS, /* an array */
};

static const char *const kind_names[] = {
    "a string", "a number",           "an object",
    "an array", "an array of checks", "an array of strings",
    "a point",  "an array of points",
};

struct member {
    const char *name;
    enum kind kind;
    bool required;
};

static const struct member document_members[] = {
    { "schema", TEXT, true },   { "paper", TEXT, true },   { "name", TEXT, true },
    { "short", TEXT, true },    { "authors", TEXT, true }, { "title", TEXT, true },
    { "about", TEXT, true },    { "common", TEXT, true },  { "runs", OBJECT, true },
    { "figures", ARRAY, true }, { "rows", OBJECT, true },  { NULL },
};

static const struct member run_members[] = {
    { "command", TEXT, true },
    { "full", TEXT },
    { "quick", TEXT },
    { NULL },
};

static const struct member figure_members[] = {
    { "id", TEXT, true },
    { "source", TEXT, true },
    { "title", TEXT, true },
    { "text", TEXT, true },
    { "run", TEXT, true },
    { "adapters", TEXTS, true },
    { "quantity", TEXT, true },
    { "series", TEXTS },
    { "log", TEXT },
    { NULL },
};

static const struct member row_members[] = {
    { "adapter", TEXT },      { "run", TEXT },     { "set", TEXT },
    { "figure", TEXT },       { "source", TEXT },  { "input", TEXT },
    { "repeats", TEXT },      { "value", POINT },  { "over", POINT },
    { "under", POINT },       { "scale", NUMBER }, { "checks", CHECKS },
    { "peak_share", NUMBER }, { "not_run", TEXT }, { NULL },
};

static const struct member check_members[] = {
    { "flat", NUMBER },
    { "rises", NUMBER },
    { "below", NUMBER },
    { "above", NUMBER },
    { "of", POINTS, true },
    { "than", POINTS },
    { NULL },
};

static const struct member point_members[] = {
    { "point", TEXT, true }, { "adapter", TEXT }, { "set", TEXT }, { "run", TEXT }, { NULL },
};

struct checker {
    const char *path;
    char *error;
    size_t size;
};

static int __attribute__((format(printf, 3, 4)))
reject(const struct checker *checker, const char *place, const char *format, ...)
{
    va_list arguments;
    int used = snprintf(checker->error, checker->size, "%s: %s: ", checker->path, place);

    va_start(arguments, format);
    if (used >= 0 && (size_t)used < checker->size)
        vsnprintf(checker->error + used, checker->size - used, format, arguments);
    va_end(arguments);
    return -1;
}

static bool is_point(const json_t *value)
{
    return json_is_string(value) || json_is_object(value);
}

static bool has_kind(const json_t *value, enum kind kind)
{
    const json_t *element;
    size_t i;

    switch (kind) {
    case TEXT:
        return json_is_string(value);
    case NUMBER:
        return json_is_number(value);
    case OBJECT:
        return json_is_object(value);
    case ARRAY:
        return json_is_array(value);
    case POINT:
        return is_point(value);
    case CHECKS:
        return json_array_size(value);
    case TEXTS:
    case POINTS:
        break;
    }
    json_array_foreach(value, i, element)
    {
        if (kind == TEXTS ? !json_is_string(element) : !is_point(element))
            return false;
    }
    return json_is_array(value) && json_array_size(value);
}

static const struct member *member_named(const struct member *members, const char *name)
{
    for (; members->name; members++) {
        if (!strcmp(members->name, name))
            return members;
    }
    return NULL;
}

static int check_members_of(const struct checker *checker, const char *place, const json_t *object,
                            const struct member *members);

static int check_point(const struct checker *checker, const char *place, const json_t *value)
{
    return json_is_object(value) ? check_members_of(checker, place, value, point_members) : 0;
}

static int check_member(const struct checker *checker, const char *place, const json_t *value,
                        enum kind kind)
{
    char inner[PLACE_MAX + 32];
    const json_t *point;
    size_t i;

    if (!has_kind(value, kind))
        return reject(checker, place, "expected %s", kind_names[kind]);
    if (kind == POINT)
        return check_point(checker, place, value);
    if (kind != POINTS)
        return 0;
    json_array_foreach(value, i, point)
    {
        snprintf(inner, sizeof(inner), "%s[%zu]", place, i);
        if (check_point(checker, inner, point))
            return -1;
    }
    return 0;
}

/* Every member is known and of the right kind, and none is missing. */
static int check_members_of(const struct checker *checker, const char *place, const json_t *object,
                            const struct member *members)
{
    char inner[PLACE_MAX];
    const char *name;
    json_t *value;

    if (!json_is_object(object))
        return reject(checker, place, "expected an object");
    json_object_foreach((json_t *)object, name, value)
    {
        const struct member *member = member_named(members, name);

        snprintf(inner, sizeof(inner), "%s%s%s", place, *place ? "." : "", name);
        if (!member)
            return reject(checker, inner, "unknown member");
        if (check_member(checker, inner, value, member->kind))
            return -1;
    }
    for (; members->name; members++) {
        snprintf(inner, sizeof(inner), "%s%s%s", place, *place ? "." : "", members->name);
        if (members->required && !json_object_get(object, members->name))
            return reject(checker, inner, "expected %s", kind_names[members->kind]);
    }
    return 0;
}

static int check_check(const struct checker *checker, const char *place, const json_t *check)
{
    static const char *const shapes[] = { "flat", "rises", "below", "above" };
    bool compares = json_object_get(check, "below") || json_object_get(check, "above");
    int found = 0;

    if (check_members_of(checker, place, check, check_members))
        return -1;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
        found += json_object_get(check, shapes[i]) != NULL;
    if (found != 1)
        return reject(checker, place, "expected one of flat, rises, below and above");
    if (compares != (json_object_get(check, "than") != NULL))
        return reject(checker, place, "below and above need than, and no other check has it");
    return 0;
}

static int check_row(const struct checker *checker, const char *place, const json_t *row)
{
    static const char *const ways[] = { "value", "checks", "not_run" };
    char inner[PLACE_MAX + 32];
    const json_t *check;
    int found = 0;
    size_t i;

    if (check_members_of(checker, place, row, row_members))
        return -1;
    for (i = 0; i < sizeof(ways) / sizeof(*ways); i++)
        found += json_object_get(row, ways[i]) != NULL;
    if (found != 1)
        return reject(checker, place, "expected one of value, checks and not_run");
    if (json_object_get(row, "over") && json_object_get(row, "under"))
        return reject(checker, place, "expected over or under, not both");
    json_array_foreach(json_object_get(row, "checks"), i, check)
    {
        snprintf(inner, sizeof(inner), "%s.checks[%zu]", place, i);
        if (check_check(checker, inner, check))
            return -1;
    }
    return 0;
}

static int check_schema(const struct checker *checker, const json_t *document)
{
    const char *schema = json_string_value(json_object_get(document, "schema"));

    if (!schema)
        return reject(checker, "schema", "expected \"%s\": this is not the file of a paper",
                      PAPER_SCHEMA);
    if (strcmp(schema, PAPER_SCHEMA))
        return reject(checker, "schema", "unsupported schema '%s': this version reads '%s'", schema,
                      PAPER_SCHEMA);
    return 0;
}

static int check_figure(const struct checker *checker, const char *place, const json_t *figure,
                        const json_t *runs)
{
    char inner[PLACE_MAX + 8];
    const char *run;

    if (check_members_of(checker, place, figure, figure_members))
        return -1;
    run = json_string_value(json_object_get(figure, "run"));
    snprintf(inner, sizeof(inner), "%s.run", place);
    return json_object_get(runs, run) ? 0 : reject(checker, inner, "unknown run '%s'", run);
}

int paper_check(const json_t *document, const char *path, char *error, size_t size)
{
    struct checker checker = { path, error, size };
    json_t *runs = json_object_get(document, "runs"), *value;
    char place[PLACE_MAX];
    const char *name;
    size_t i;

    if (check_schema(&checker, document) ||
        check_members_of(&checker, "", document, document_members))
        return -1;
    json_object_foreach(runs, name, value)
    {
        snprintf(place, sizeof(place), "runs.%s", name);
        if (check_members_of(&checker, place, value, run_members))
            return -1;
    }
    json_array_foreach(json_object_get(document, "figures"), i, value)
    {
        snprintf(place, sizeof(place), "figures[%zu]", i);
        if (check_figure(&checker, place, value, runs))
            return -1;
    }
    json_object_foreach(json_object_get(document, "rows"), name, value)
    {
        snprintf(place, sizeof(place), "rows.%s", name);
        if (check_row(&checker, place, value))
            return -1;
    }
    return 0;
}
