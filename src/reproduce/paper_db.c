/* SPDX-License-Identifier: BSD-2-Clause */
#include "paper_db.h"
#include "left_out.h"
#include "paper_check.h"
#include "results/allocate.h"
#include "results/csv.h"
#include "results/json.h"
#include "util/file.h"
#include "util/nearest.h"
#include "util/option.h"
#include "sim/adapter/parameters.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const field_names[FIELD_COUNT] = {
    "id", "paper", "platform", "experiment", "setup", "metric", "unit", "value", "kind", "note",
};

static int __attribute__((format(printf, 3, 4)))
refuse(char *error, size_t size, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(error, size, format, arguments);
    va_end(arguments);
    return -1;
}

const char *paper_db_text(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

static struct paper *paper_numbered(struct paper *papers, unsigned int count,
                                    unsigned int directory, const char *number)
{
    for (unsigned int i = 0; i < count; i++) {
        if (papers[i].directory == directory && !strcmp(papers[i].number, number))
            return &papers[i];
    }
    return NULL;
}

/* Moves the paper of an earlier directory whose name the last one has to the replaced ones. */
static int replace_paper(struct paper_db *db, char *error, size_t size)
{
    const struct paper *last = &db->papers[db->paper_count - 1];

    for (unsigned int i = 0; i + 1 < db->paper_count; i++) {
        struct paper *paper = &db->papers[i];

        if (!strcmp(paper->name, last->name) && paper->directory < last->directory) {
            db->replaced =
                allocate_one_more(db->replaced, db->replaced_count, sizeof(*db->replaced));
            db->replaced[db->replaced_count++] = *paper;
            memmove(paper, paper + 1, (db->paper_count - i - 1) * sizeof(*paper));
            db->paper_count--;
            return 0;
        }
        if (!strcmp(paper->name, last->name) || !strcmp(paper->number, last->number))
            return refuse(error, size, "%s: %s has the same name or number", last->path,
                          paper->path);
    }
    return 0;
}

static int read_paper(struct paper_db *db, unsigned int directory, const char *path, char *error,
                      size_t size)
{
    json_t *document = json_read(path, error, size);
    struct paper *paper;

    if (!document)
        return -1;
    if (paper_check(document, path, error, size)) {
        json_decref(document);
        return -1;
    }
    db->papers = allocate_one_more(db->papers, db->paper_count, sizeof(*db->papers));
    paper = &db->papers[db->paper_count++];
    *paper = (struct paper){ .path = allocate_text(path),
                             .directory = directory,
                             .document = document,
                             .name = paper_db_text(document, "name"),
                             .number = paper_db_text(document, "paper") };
    if (left_out_read(path, &paper->left_out, error, size))
        return -1;
    return replace_paper(db, error, size);
}

static int read_papers(struct paper_db *db, unsigned int index, const char *directory, char *error,
                       size_t size)
{
    char *pattern;
    glob_t found;
    int status = 0;

    if (asprintf(&pattern, "%s/*.json", directory) < 0)
        return refuse(error, size, "out of memory");
    if (glob(pattern, 0, NULL, &found))
        status = refuse(error, size, "%s: there is no paper: no such file", pattern);
    for (size_t i = 0; !status && i < found.gl_pathc; i++)
        status = read_paper(db, index, found.gl_pathv[i], error, size);
    globfree(&found);
    free(pattern);
    return status;
}

struct checking {
    const struct paper_row *row;
    char *error;
    size_t size;
};

static int check_run(const struct reference *reference, void *context)
{
    const struct checking *checking = context;
    const json_t *runs = json_object_get(checking->row->paper->document, "runs");

    if (json_object_get(runs, reference->run))
        return 0;
    return refuse(checking->error, checking->size, "unknown run '%s'", reference->run);
}

static int check_role(const struct paper_row *row, char *reason, size_t size)
{
    const char *input = paper_db_text(row->spec, "input");
    const char *repeats = paper_db_text(row->spec, "repeats");

    if (input && !parameter_find(input))
        return refuse(reason, size, "input: no adapter has the key '%s'", input);
    if (repeats && !json_object_get(json_object_get(row->paper->document, "rows"), repeats))
        return refuse(reason, size, "repeats: unknown row '%s'", repeats);
    return 0;
}

/* Rejects references that cannot be read or have an unknown run. */
static int check_rows(const struct paper_db *db, char *error, size_t size)
{
    char reason[512];
    struct checking checking = { .error = reason, .size = sizeof(reason) };

    for (unsigned int i = 0; i < db->row_count; i++) {
        const struct paper_row *row = &db->rows[i];

        checking.row = row;
        if (!paper_db_text(row->spec, "not_run") &&
            (check_role(row, reason, sizeof(reason)) ||
             paper_db_visit_references(row, check_run, &checking, reason, sizeof(reason))))
            return refuse(error, size, "%s: rows: %s: %s", row->paper->path, row->fields[FIELD_ID],
                          reason);
    }
    return 0;
}

static bool has_row(const struct paper_db *db, const char *id)
{
    for (unsigned int i = 0; i < db->row_count; i++) {
        if (!strcmp(db->rows[i].fields[FIELD_ID], id))
            return true;
    }
    return false;
}

/* A row whose value is computed needs the paper's. */
static int read_value(const json_t *spec, char *const *fields, double *value, char *error,
                      size_t size)
{
    const char *kind = fields[FIELD_KIND], *text = fields[FIELD_VALUE];
    char *end;

    *value = *text ? strtod(text, &end) : NAN;
    if (strcmp(kind, "value") && strcmp(kind, "shape") && strcmp(kind, "bound"))
        return refuse(error, size, "%s: kind '%s' is none of value, shape and bound",
                      fields[FIELD_ID], kind);
    if (*text ? *end || !isfinite(*value) : json_object_get(spec, "value") != NULL)
        return refuse(error, size, "%s: value '%s' is not a number", fields[FIELD_ID], text);
    return 0;
}

static int take_row(struct paper_db *db, unsigned int directory, char **fields, char *error,
                    size_t size)
{
    const struct paper *paper =
        paper_numbered(db->papers, db->paper_count, directory, fields[FIELD_PAPER]);
    const json_t *spec;
    struct paper_row *row;
    double value;

    if (!paper && paper_numbered(db->replaced, db->replaced_count, directory, fields[FIELD_PAPER]))
        return 0;
    if (!paper)
        return refuse(error, size, "%s: no file describes paper %s", fields[FIELD_ID],
                      fields[FIELD_PAPER]);
    if (has_row(db, fields[FIELD_ID]))
        return refuse(error, size, "%s: another row has this id", fields[FIELD_ID]);
    spec = json_object_get(json_object_get(paper->document, "rows"), fields[FIELD_ID]);
    if (!spec)
        return refuse(error, size, "%s: %s has no such row", fields[FIELD_ID], paper->path);
    if (read_value(spec, fields, &value, error, size))
        return -1;
    db->rows = allocate_one_more(db->rows, db->row_count, sizeof(*db->rows));
    row = &db->rows[db->row_count++];
    *row = (struct paper_row){ .paper = paper, .spec = spec, .value = value };
    memcpy(row->fields, fields, sizeof(row->fields));
    memset(fields, 0, sizeof(row->fields));
    return 0;
}

static int read_rows(struct paper_db *db, unsigned int index, const char *directory, char *error,
                     size_t size)
{
    char path[PATH_MAX], reason[PATH_MAX], *fields[FIELD_COUNT] = { NULL }, *text;
    unsigned int count, line = 0;
    size_t length;
    FILE *in = NULL;
    int status = 0;

    snprintf(path, sizeof(path), "%s/results.csv", directory);
    text = file_read(path, FILE_DATA_MAX, &length, error, size);
    if (!text)
        status = -1;
    else if (!(in = fmemopen(text, length, "r")))
        status = refuse(error, size, "%s: %s", path, strerror(errno));
    while (!status && csv_read_line(in, fields, FIELD_COUNT, &count)) {
        line++;
        if (count != FIELD_COUNT)
            status = refuse(error, size, "%s:%u: expected %d columns", path, line, FIELD_COUNT);
        for (int i = 0; !status && line == 1 && i < FIELD_COUNT; i++) {
            if (strcmp(fields[i], field_names[i]))
                status = refuse(error, size, "%s:1: expected a column '%s'", path, field_names[i]);
        }
        if (!status && line > 1 && take_row(db, index, fields, reason, sizeof(reason)))
            status = refuse(error, size, "%s:%u: %s", path, line, reason);
        for (int i = 0; i < FIELD_COUNT; i++) {
            free(fields[i]);
            fields[i] = NULL;
        }
    }
    if (in)
        fclose(in);
    free(text);
    return status;
}

/* Rejects rows that results.csv does not have, which would otherwise be ignored. */
static int check_known(const struct paper_db *db, char *error, size_t size)
{
    for (unsigned int i = 0; i < db->paper_count; i++) {
        json_t *rows = json_object_get(db->papers[i].document, "rows"), *spec;
        const char *id;

        json_object_foreach(rows, id, spec)
        {
            if (!has_row(db, id))
                return refuse(error, size, "%s: rows: results.csv has no '%s'", db->papers[i].path,
                              id);
        }
    }
    return 0;
}

int paper_db_read(const char *const *directories, unsigned int count, struct paper_db *out,
                  char *error, size_t size)
{
    int status = 0;

    *out = (struct paper_db){ 0 };
    for (unsigned int i = 0; !status && i < count; i++)
        status = read_papers(out, i, directories[i], error, size);
    /* Rows point to papers, whose array must not grow any more. */
    for (unsigned int i = 0; !status && i < count; i++)
        status = read_rows(out, i, directories[i], error, size);
    if (!status && !check_rows(out, error, size) && !check_known(out, error, size))
        return 0;
    paper_db_free(out);
    return -1;
}

static void free_papers(struct paper *papers, unsigned int count)
{
    for (unsigned int i = 0; i < count; i++) {
        free(papers[i].path);
        json_decref(papers[i].document);
        json_decref(papers[i].left_out);
    }
    free(papers);
}

void paper_db_free(struct paper_db *db)
{
    for (unsigned int i = 0; i < db->row_count; i++) {
        for (int k = 0; k < FIELD_COUNT; k++)
            free(db->rows[i].fields[k]);
    }
    free_papers(db->papers, db->paper_count);
    free_papers(db->replaced, db->replaced_count);
    free(db->rows);
    *db = (struct paper_db){ 0 };
}

void paper_db_select_all(struct paper_db *db)
{
    for (unsigned int i = 0; i < db->paper_count; i++)
        db->papers[i].whole = true;
    for (unsigned int i = 0; i < db->row_count; i++)
        db->rows[i].selected = true;
}

/* "nas" selects the experiments nas, nas-is and nas-ft. */
static bool is_of_experiment(const struct paper_row *row, const char *name)
{
    const char *experiment = row->fields[FIELD_EXPERIMENT];
    size_t length = strlen(name);

    return length && !strncmp(experiment, name, length) &&
           (!experiment[length] || experiment[length] == '-');
}

static bool is_row_of(const struct paper_row *row, const char *name)
{
    return !strcmp(row->fields[FIELD_ID], name) || !strcmp(row->paper->name, name) ||
           !strcmp(row->paper->number, name) || is_of_experiment(row, name);
}

static int refuse_name(const struct paper_db *db, const char *name, char *error, size_t size)
{
    struct nearest nearest;

    nearest_begin(&nearest, name, strlen(name));
    for (unsigned int i = 0; i < db->paper_count; i++)
        nearest_try(&nearest, db->papers[i].name);
    for (unsigned int i = 0; i < db->row_count; i++)
        nearest_try(&nearest, db->rows[i].fields[FIELD_ID]);
    return refuse(error, size, "unknown paper, value or experiment '%s'%s", name,
                  nearest.count ? nearest_text(&nearest)
                                : "; 'verbena list papers' shows them all");
}

int paper_db_select(struct paper_db *db, const char *name, char *error, size_t size)
{
    bool found = false;

    for (unsigned int i = 0; i < db->paper_count; i++) {
        if (!strcmp(db->papers[i].name, name) || !strcmp(db->papers[i].number, name))
            db->papers[i].whole = true;
    }
    for (unsigned int i = 0; i < db->row_count; i++) {
        if (is_row_of(&db->rows[i], name))
            found = db->rows[i].selected = true;
    }
    return found ? 0 : refuse_name(db, name, error, size);
}

static int split_point(const char *point, struct reference *out, char *error, size_t size)
{
    const char *first = point ? strchr(point, '/') : NULL;
    const char *last = point ? strrchr(point, '/') : NULL;
    const char *end;
    uint64_t x = 0;

    if (!first || first == last || first - point >= (int)sizeof(out->quantity) ||
        last - first > (int)sizeof(out->series))
        return refuse(error, size, "expected \"QUANTITY/SERIES/X\"");
    snprintf(out->quantity, sizeof(out->quantity), "%.*s", (int)(first - point), point);
    snprintf(out->series, sizeof(out->series), "%.*s", (int)(last - first - 1), first + 1);
    out->all = !strcmp(last + 1, "*");
    if (!out->all && (!option_read_number(last + 1, &end, &x) || *end))
        return refuse(error, size, "%s: '%s' is neither a number nor *", point, last + 1);
    out->x = (double)x;
    return 0;
}

static const char *own_or(const json_t *what, const json_t *spec, const char *name)
{
    const char *own = paper_db_text(what, name);

    return own ? own : paper_db_text(spec, name);
}

int paper_db_reference_read(const struct paper_row *row, const json_t *what, struct reference *out,
                            char *error, size_t size)
{
    const char *point =
        json_is_string(what) ? json_string_value(what) : paper_db_text(what, "point");

    *out = (struct reference){
        .adapter = own_or(what, row->spec, "adapter"),
        .set = own_or(what, row->spec, "set"),
        .run = own_or(what, row->spec, "run"),
    };
    if (!out->adapter || !out->run)
        return refuse(error, size, "needs an adapter and a run");
    return split_point(point, out, error, size);
}

char *paper_db_run_line(const struct paper *paper, const char *run, bool quick)
{
    const json_t *spec = json_object_get(json_object_get(paper->document, "runs"), run);
    const char *line = paper_db_text(spec, "command");
    const char *more = paper_db_text(spec, quick ? "quick" : "full");
    int command = (int)strcspn(line, " ");
    bool bench = !strncmp(line, "bench ", strlen("bench "));
    char *text;

    if (asprintf(&text, "%.*s%s%s%s%s%s", command, line, bench ? " " : "",
                 bench ? paper_db_text(paper->document, "common") : "", line + command,
                 more ? " " : "", more ? more : "") < 0)
        abort();
    return text;
}

static int visit_one(const struct paper_row *row, const json_t *what,
                     int (*visit)(const struct reference *, void *), void *context, char *error,
                     size_t size)
{
    struct reference reference;

    if (paper_db_reference_read(row, what, &reference, error, size))
        return -1;
    return visit(&reference, context);
}

int paper_db_visit_references(const struct paper_row *row,
                              int (*visit)(const struct reference *reference, void *context),
                              void *context, char *error, size_t size)
{
    static const char *const single[] = { "value", "over", "under" };
    static const char *const several[] = { "of", "than" };
    const json_t *check, *what;
    int status = 0;
    size_t i, k;

    for (size_t n = 0; !status && n < sizeof(single) / sizeof(*single); n++) {
        what = json_object_get(row->spec, single[n]);
        if (what)
            status = visit_one(row, what, visit, context, error, size);
    }
    json_array_foreach(json_object_get(row->spec, "checks"), i, check)
    {
        for (size_t n = 0; n < sizeof(several) / sizeof(*several); n++) {
            json_array_foreach(json_object_get(check, several[n]), k, what)
            {
                if (!status)
                    status = visit_one(row, what, visit, context, error, size);
            }
        }
    }
    return status;
}

bool paper_db_figure_selected(const struct paper_db *db, const struct paper *paper,
                              const json_t *figure)
{
    const char *id = paper_db_text(figure, "id");

    if (paper->whole)
        return true;
    for (unsigned int i = 0; i < db->row_count; i++) {
        const struct paper_row *row = &db->rows[i];
        const char *at = paper_db_text(row->spec, "figure");

        if (row->paper == paper && row->selected && at && !strcmp(at, id))
            return true;
    }
    return false;
}
