/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads results from JSON. Every member is checked: the file may have been edited or truncated. */
#include "schema.h"
#include "allocate.h"
#include "json.h"

#include <stdarg.h>
#include <string.h>

/* A position in the document. The parents give the path that an error message names. */
struct node {
    const struct node *parent;
    const char *member; /* or NULL: an element of an array */
    size_t index;
    json_t *value;
};

struct reader {
    const char *path;
    char *error;
    size_t size;
};

static void put_path(const struct node *node, FILE *out)
{
    if (!node->parent)
        return;
    put_path(node->parent, out);
    if (!node->member)
        fprintf(out, "[%zu]", node->index);
    else
        fprintf(out, "%s%s", node->parent->parent ? "." : "", node->member);
}

static int __attribute__((format(printf, 3, 4)))
reject(const struct reader *reader, const struct node *node, const char *format, ...)
{
    FILE *out = fmemopen(reader->error, reader->size, "w");
    va_list arguments;

    if (out) {
        va_start(arguments, format);
        fprintf(out, "%s: ", reader->path);
        put_path(node, out);
        fputs(node->parent ? ": " : "", out);
        vfprintf(out, format, arguments);
        va_end(arguments);
        fclose(out);
    }
    return -1;
}

/* Finds a required member. Sets *out even if it is missing, for the error message. */
static bool member(const struct node *object, const char *name, struct node *out)
{
    *out = (struct node){ .parent = object, .member = name };
    out->value = json_object_get(object->value, name);
    return out->value;
}

static int read_text(const struct reader *reader, const struct node *object, const char *name,
                     char **out)
{
    struct node node;

    if (!member(object, name, &node) || !json_is_string(node.value))
        return reject(reader, &node, "expected a string");
    *out = allocate_text(json_string_value(node.value));
    return 0;
}

static int read_text_or_null(const struct reader *reader, const struct node *object,
                             const char *name, char **out)
{
    struct node node;

    if (member(object, name, &node) && json_is_null(node.value))
        return 0;
    if (!json_is_string(node.value))
        return reject(reader, &node, "expected a string or null");
    *out = allocate_text(json_string_value(node.value));
    return 0;
}

static int read_number(const struct reader *reader, const struct node *object, const char *name,
                       double *out)
{
    struct node node;

    if (!member(object, name, &node) || !json_is_number(node.value))
        return reject(reader, &node, "expected a number");
    *out = json_number_value(node.value);
    return 0;
}

static int read_metadata(const struct reader *reader, const struct node *object, const char *name,
                         struct metadata *out)
{
    struct node node;
    const char *key;
    json_t *value;

    if (!member(object, name, &node) || !json_is_object(node.value))
        return reject(reader, &node, "expected an object");
    json_object_foreach(node.value, key, value)
    {
        struct node row = { .parent = &node, .member = key, .value = value };

        if (!json_is_string(value))
            return reject(reader, &row, "expected a string");
        results_metadata_set(out, key, "%s", json_string_value(value));
    }
    return 0;
}

/* Calls 'read' for every element, which must be an object. */
static int read_array(const struct reader *reader, const struct node *object, const char *name,
                      int (*read)(const struct reader *, const struct node *, void *), void *into)
{
    struct node array, element;

    if (!member(object, name, &array) || !json_is_array(array.value))
        return reject(reader, &array, "expected an array");
    for (size_t i = 0; i < json_array_size(array.value); i++) {
        element = (struct node){ .parent = &array, .index = i };
        element.value = json_array_get(array.value, i);
        if (!json_is_object(element.value))
            return reject(reader, &element, "expected an object");
        if (read(reader, &element, into))
            return -1;
    }
    return 0;
}

static void add_round(void *point, double number)
{
    results_point_add_round(point, number);
}

static void add_load(void *results, double number)
{
    results_add_load(results, number);
}

/* Calls 'add' for every number of an array that not every file has. */
static int read_numbers(const struct reader *reader, const struct node *object, const char *name,
                        void (*add)(void *into, double number), void *into)
{
    struct node array, element;

    if (!member(object, name, &array))
        return 0;
    if (!json_is_array(array.value))
        return reject(reader, &array, "expected an array");
    for (size_t i = 0; i < json_array_size(array.value); i++) {
        element = (struct node){ .parent = &array, .index = i };
        element.value = json_array_get(array.value, i);
        if (!json_is_number(element.value))
            return reject(reader, &element, "expected a number");
        add(into, json_number_value(element.value));
    }
    return 0;
}

static int check_order(const struct reader *reader, const struct node *node,
                       const struct summary *y)
{
    struct node at = { .parent = node };

    if (y->minimum > y->median || y->median > y->maximum) {
        at.member = "median";
        return reject(reader, &at, "is not between min and max");
    }
    if (y->low > y->median || y->median > y->high) {
        at.member = "median";
        return reject(reader, &at, "is not between ci_low and ci_high");
    }
    if (y->deviation < 0) {
        at.member = "stddev";
        return reject(reader, &at, "is negative");
    }
    return 0;
}

static int read_point(const struct reader *reader, const struct node *node, void *into)
{
    struct series *series = into;
    struct summary y = { 0 };
    struct node count;
    double x = 0;

    if (read_number(reader, node, "x", &x))
        return -1;
    if (!member(node, "count", &count) || !json_is_integer(count.value) ||
        json_integer_value(count.value) < 0)
        return reject(reader, &count, "expected a non-negative integer");
    y.count = (uint64_t)json_integer_value(count.value);
    for (unsigned int i = 0; i < results_statistic_count; i++) {
        const struct statistic_field *row = &results_statistics[i];

        if (read_number(reader, node, row->name, schema_statistic(row, &y)))
            return -1;
    }
    if (check_order(reader, node, &y))
        return -1;
    results_series_add(series, x, &y);
    return read_numbers(reader, node, "rounds", add_round, &series->points[series->count - 1]);
}

static int read_better(const struct reader *reader, const struct node *object, enum better *out)
{
    struct node node;

    if (member(object, "better", &node) && json_is_string(node.value)) {
        for (*out = BETTER_LOWER; *out <= BETTER_NEITHER; ++*out) {
            if (!strcmp(json_string_value(node.value), schema_better_name(*out)))
                return 0;
        }
    }
    return reject(reader, &node, "expected \"lower\", \"higher\" or \"neither\"");
}

static int read_series(const struct reader *reader, const struct node *node, void *into)
{
    struct series *series = result_series(into, NULL, NULL, NULL, NULL, NULL, BETTER_NEITHER);

    if (read_text(reader, node, "name", &series->name) ||
        read_text(reader, node, "quantity", &series->quantity) ||
        read_text(reader, node, "unit", &series->unit) ||
        read_text(reader, node, "axis", &series->axis) ||
        read_text(reader, node, "axis_unit", &series->axis_unit) ||
        read_better(reader, node, &series->better))
        return -1;
    return read_array(reader, node, "points", read_point, series);
}

static int read_experiment(const struct reader *reader, const struct node *node, void *into)
{
    struct experiment_result *result = results_add(into, NULL, NULL, NULL, NULL);

    if (read_text(reader, node, "name", &result->name) ||
        read_text(reader, node, "group", &result->group) ||
        read_text(reader, node, "title", &result->title) ||
        read_text(reader, node, "source", &result->source) ||
        read_text_or_null(reader, node, "skipped", &result->skipped) ||
        read_text_or_null(reader, node, "failed", &result->failed) ||
        read_metadata(reader, node, "settings", &result->settings) ||
        read_metadata(reader, node, "notes", &result->notes))
        return -1;
    return read_array(reader, node, "series", read_series, result);
}

static int read_schema(const struct reader *reader, const struct node *root)
{
    struct node node;

    if (!json_is_object(root->value))
        return reject(reader, root, "expected an object");
    if (!member(root, "schema", &node) || !json_is_string(node.value))
        return reject(reader, &node, "expected a string: this is not a result file");
    if (strcmp(json_string_value(node.value), RESULTS_SCHEMA))
        return reject(reader, &node, "unsupported schema '%s': this version reads '%s'",
                      json_string_value(node.value), RESULTS_SCHEMA);
    return 0;
}

static int read_document(const struct reader *reader, const struct node *root,
                         struct results *results)
{
    struct node node;

    if (read_schema(reader, root) || read_text(reader, root, "version", &results->version) ||
        read_text(reader, root, "date", &results->date) ||
        read_text(reader, root, "command", &results->command))
        return -1;
    if (!member(root, "interrupted", &node) || !json_is_boolean(node.value))
        return reject(reader, &node, "expected true or false");
    results->interrupted = json_is_true(node.value);
    if (member(root, "deterministic", &node) && !json_is_boolean(node.value))
        return reject(reader, &node, "expected true or false");
    results->deterministic = json_is_true(node.value);
    if (read_numbers(reader, root, "loads", add_load, results) ||
        read_metadata(reader, root, "machine", &results->machine) ||
        read_metadata(reader, root, "device", &results->device))
        return -1;
    return read_array(reader, root, "experiments", read_experiment, results);
}

int results_read(const char *path, struct results **out, char *error, size_t size)
{
    struct reader reader = { .path = path, .error = error, .size = size };
    struct node root = { .value = json_read(path, error, size) };
    struct results *results;
    int status;

    if (!root.value)
        return -1;
    results = results_new(NULL, NULL, NULL);
    status = read_document(&reader, &root, results);
    json_decref(root.value);
    if (status) {
        results_free(results);
        return -1;
    }
    results->path = allocate_text(path);
    *out = results;
    return 0;
}
