/* Results from JSON. Nothing is taken on trust: the file may have been edited, or cut short. */
#include "schema.h"
#include "allocate.h"
#include "json.h"

#include <stdarg.h>
#include <string.h>

/* Where in the document the reader stands; the way up gives the path that an error names. */
struct place {
    const struct place *up;
    const char *member; /* or NULL: an element of an array */
    size_t index;
    json_t *value;
};

struct reader {
    const char *path;
    char *error;
    size_t size;
};

static void put_place(const struct place *place, FILE *out)
{
    if (!place->up)
        return;
    put_place(place->up, out);
    if (!place->member)
        fprintf(out, "[%zu]", place->index);
    else
        fprintf(out, "%s%s", place->up->up ? "." : "", place->member);
}

static int __attribute__((format(printf, 3, 4)))
refuse(const struct reader *reader, const struct place *place, const char *format, ...)
{
    FILE *out = fmemopen(reader->error, reader->size, "w");
    va_list arguments;

    if (!out)
        return -1;
    va_start(arguments, format);
    fprintf(out, "%s: ", reader->path);
    put_place(place, out);
    fputs(place->up ? ": " : "", out);
    vfprintf(out, format, arguments);
    va_end(arguments);
    fclose(out);
    return -1;
}

/* Finds a member that has to be there; the place is set even where it is not, for the error. */
static bool member(const struct place *object, const char *name, struct place *out)
{
    *out = (struct place){ .up = object, .member = name };
    out->value = json_object_get(object->value, name);
    return out->value;
}

static int read_text(const struct reader *reader, const struct place *object, const char *name,
                     char **out)
{
    struct place place;

    if (!member(object, name, &place) || !json_is_string(place.value))
        return refuse(reader, &place, "expected a string");
    *out = allocate_text(json_string_value(place.value));
    return 0;
}

static int read_text_or_null(const struct reader *reader, const struct place *object,
                             const char *name, char **out)
{
    struct place place;

    if (member(object, name, &place) && json_is_null(place.value))
        return 0;
    if (!json_is_string(place.value))
        return refuse(reader, &place, "expected a string or null");
    *out = allocate_text(json_string_value(place.value));
    return 0;
}

static int read_number(const struct reader *reader, const struct place *object, const char *name,
                       double *out)
{
    struct place place;

    if (!member(object, name, &place) || !json_is_number(place.value))
        return refuse(reader, &place, "expected a number");
    *out = json_number_value(place.value);
    return 0;
}

static int read_facts(const struct reader *reader, const struct place *object, const char *name,
                      struct facts *out)
{
    struct place place;
    const char *key;
    json_t *value;

    if (!member(object, name, &place) || !json_is_object(place.value))
        return refuse(reader, &place, "expected an object");
    json_object_foreach(place.value, key, value)
    {
        struct place row = { .up = &place, .member = key, .value = value };

        if (!json_is_string(value))
            return refuse(reader, &row, "expected a string");
        results_facts_set(out, key, "%s", json_string_value(value));
    }
    return 0;
}

/* Calls 'read' for every element, which has to be an object. */
static int read_array(const struct reader *reader, const struct place *object, const char *name,
                      int (*read)(const struct reader *, const struct place *, void *), void *into)
{
    struct place array, element;

    if (!member(object, name, &array) || !json_is_array(array.value))
        return refuse(reader, &array, "expected an array");
    for (size_t i = 0; i < json_array_size(array.value); i++) {
        element = (struct place){ .up = &array, .index = i };
        element.value = json_array_get(array.value, i);
        if (!json_is_object(element.value))
            return refuse(reader, &element, "expected an object");
        if (read(reader, &element, into))
            return -1;
    }
    return 0;
}

static int check_order(const struct reader *reader, const struct place *place,
                       const struct summary *y)
{
    struct place at = { .up = place };

    if (y->minimum > y->median || y->median > y->maximum) {
        at.member = "median";
        return refuse(reader, &at, "is not between min and max");
    }
    if (y->low > y->median || y->median > y->high) {
        at.member = "median";
        return refuse(reader, &at, "is not between ci_low and ci_high");
    }
    if (y->deviation < 0) {
        at.member = "stddev";
        return refuse(reader, &at, "is negative");
    }
    return 0;
}

static int read_point(const struct reader *reader, const struct place *place, void *into)
{
    struct summary y = { 0 };
    struct place count;
    double x = 0;

    if (read_number(reader, place, "x", &x))
        return -1;
    if (!member(place, "count", &count) || !json_is_integer(count.value) ||
        json_integer_value(count.value) < 0)
        return refuse(reader, &count, "expected a whole number, not negative");
    y.count = (uint64_t)json_integer_value(count.value);
    for (unsigned int i = 0; i < results_figure_count; i++) {
        const struct figure_row *row = &results_figures[i];

        if (read_number(reader, place, row->name, figure_of(row, &y)))
            return -1;
    }
    if (check_order(reader, place, &y))
        return -1;
    results_series_add(into, x, &y);
    return 0;
}

static int read_better(const struct reader *reader, const struct place *object, enum better *out)
{
    struct place place;

    if (member(object, "better", &place) && json_is_string(place.value)) {
        for (*out = BETTER_LOWER; *out <= BETTER_NEITHER; ++*out) {
            if (!strcmp(json_string_value(place.value), schema_better_name(*out)))
                return 0;
        }
    }
    return refuse(reader, &place, "expected \"lower\", \"higher\" or \"neither\"");
}

static int read_series(const struct reader *reader, const struct place *place, void *into)
{
    struct series *series = result_series(into, NULL, NULL, NULL, NULL, NULL, BETTER_NEITHER);

    if (read_text(reader, place, "name", &series->name) ||
        read_text(reader, place, "quantity", &series->quantity) ||
        read_text(reader, place, "unit", &series->unit) ||
        read_text(reader, place, "axis", &series->axis) ||
        read_text(reader, place, "axis_unit", &series->axis_unit) ||
        read_better(reader, place, &series->better))
        return -1;
    return read_array(reader, place, "points", read_point, series);
}

static int read_experiment(const struct reader *reader, const struct place *place, void *into)
{
    struct experiment_result *result = results_add(into, NULL, NULL, NULL, NULL);

    if (read_text(reader, place, "name", &result->name) ||
        read_text(reader, place, "group", &result->group) ||
        read_text(reader, place, "title", &result->title) ||
        read_text(reader, place, "source", &result->source) ||
        read_text_or_null(reader, place, "skipped", &result->skipped) ||
        read_text_or_null(reader, place, "failed", &result->failed) ||
        read_facts(reader, place, "settings", &result->settings) ||
        read_facts(reader, place, "notes", &result->notes))
        return -1;
    return read_array(reader, place, "series", read_series, result);
}

static int read_schema(const struct reader *reader, const struct place *root)
{
    struct place place;

    if (!json_is_object(root->value))
        return refuse(reader, root, "expected an object");
    if (!member(root, "schema", &place) || !json_is_string(place.value))
        return refuse(reader, &place, "expected a string: this is no file of results");
    if (strcmp(json_string_value(place.value), RESULTS_SCHEMA))
        return refuse(reader, &place, "'%s' is not '%s', which this version reads",
                      json_string_value(place.value), RESULTS_SCHEMA);
    return 0;
}

static int read_document(const struct reader *reader, const struct place *root,
                         struct results *results)
{
    struct place place;

    if (read_schema(reader, root) || read_text(reader, root, "version", &results->version) ||
        read_text(reader, root, "date", &results->date) ||
        read_text(reader, root, "command", &results->command))
        return -1;
    if (!member(root, "interrupted", &place) || !json_is_boolean(place.value))
        return refuse(reader, &place, "expected true or false");
    results->interrupted = json_is_true(place.value);
    if (read_facts(reader, root, "machine", &results->machine) ||
        read_facts(reader, root, "device", &results->device))
        return -1;
    return read_array(reader, root, "experiments", read_experiment, results);
}

int results_read(const char *path, struct results **out, char *error, size_t size)
{
    struct reader reader = { .path = path, .error = error, .size = size };
    struct place root = { .value = json_read(path, error, size) };
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
