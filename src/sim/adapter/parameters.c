/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/adapter/parameters.h"

#include "sim/adapter/adapter_file.h"
#include "sim/adapter/link_failures.h"
#include "util/nearest.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WEIGHT_MAX 255 /* as in the tables of InfiniBand */
#define DEPTH_MAX  8
#define SETTINGS   "--set"

struct source {
    char path[PATH_MAX];
    dev_t device;
    ino_t inode;
};

struct location {
    const char *file; /* NULL: not set */
    unsigned int line;
};

struct reading {
    struct parameters *out;
    char *error;
    size_t size;
    struct source sources[DEPTH_MAX];              /* each is based on the next one */
    struct location locations[PARAMETER_ROWS_MAX]; /* where each value was set */
};

/* One file, or the settings. */
struct part {
    struct reading *reading;
    unsigned int depth;
    bool begun;
    bool given[PARAMETER_ROWS_MAX];
};

static const struct unit_name {
    enum parameter_unit unit;
    const char *name;
    double factor;
} unit_names[] = {
    { UNIT_TIME, "ns", 1 },         { UNIT_TIME, "us", 1e3 },        { UNIT_TIME, "ms", 1e6 },
    { UNIT_TIME, "s", 1e9 },        { UNIT_RATE, "GB/s", 1 },        { UNIT_RATE, "MB/s", 1e-3 },
    { UNIT_RATE, "Gbit/s", 0.125 }, { UNIT_RATE, "Mbit/s", 125e-6 }, { UNIT_BYTES, "B", 1 },
    { UNIT_BYTES, "KB", 1 << 10 },  { UNIT_BYTES, "MB", 1 << 20 },   { UNIT_COUNT, "", 1 },
    { UNIT_REAL, "", 1 },
};

const char *parameter_unit_text(enum parameter_unit unit)
{
    static const char *const texts[] = {
        [UNIT_TIME] = "a time (ns, us, ms or s)",
        [UNIT_RATE] = "a rate (MB/s, GB/s, Mbit/s or Gbit/s)",
        [UNIT_BYTES] = "a size (B, KB or MB)",
        [UNIT_COUNT] = "a whole number",
        [UNIT_REAL] = "a number",
        [UNIT_YES_NO] = "yes or no",
        [UNIT_CHOICE] = "one of some words",
        [UNIT_TEXT] = "a text",
    };

    return texts[unit];
}

const struct parameter_row *parameter_find(const char *key)
{
    for (const struct parameter_row *row = parameter_rows; row->key; row++) {
        if (!strcmp(row->key, key))
            return row;
    }
    return NULL;
}

int parameter_number(const struct parameters *parameters, const char *key, double *value)
{
    const struct parameter_row *row = parameter_find(key);
    const char *source = (const char *)parameters + (row ? row->offset : 0);
    uint64_t whole;

    if (!row)
        return -1;
    switch (row->unit) {
    case UNIT_TIME:
    case UNIT_RATE:
    case UNIT_REAL:
        memcpy(value, source, sizeof(*value));
        return 0;
    case UNIT_BYTES:
    case UNIT_COUNT:
        memcpy(&whole, source, sizeof(whole));
        *value = whole;
        return 0;
    default:
        return -1;
    }
}

__attribute__((format(printf, 3, 4))) static int
fail(struct reading *reading, const struct location *location, const char *format, ...)
{
    char reason[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(reason, sizeof(reason), format, arguments);
    va_end(arguments);
    if (location->line)
        snprintf(reading->error, reading->size, "%s:%u: %s", location->file, location->line,
                 reason);
    else
        snprintf(reading->error, reading->size, "%s: %s", location->file, reason);
    return -1;
}

/* Independent of the locale of the program. Returns the end of the number, or NULL. */
static const char *decimal_read(const char *text, double *value)
{
    double sign = 1, scale = 1;

    *value = 0;
    if (*text == '-') {
        sign = -1;
        text++;
    }
    if (!isdigit((unsigned char)*text))
        return NULL;
    for (; isdigit((unsigned char)*text); text++)
        *value = *value * 10 + (*text - '0');
    if (*text == '.' && isdigit((unsigned char)text[1])) {
        for (text++; isdigit((unsigned char)*text); text++) {
            *value = *value * 10 + (*text - '0');
            scale *= 10;
        }
    }
    *value = sign * *value / scale;
    return text;
}

static const struct unit_name *unit_find(enum parameter_unit unit, const char *name)
{
    for (size_t i = 0; i < sizeof(unit_names) / sizeof(*unit_names); i++) {
        if (unit_names[i].unit == unit && !strcmp(unit_names[i].name, name))
            return &unit_names[i];
    }
    return NULL;
}

/* A number with its unit. */
static bool quantity_read(enum parameter_unit unit, const char *text, double *value)
{
    const char *end = decimal_read(text, value);
    const struct unit_name *name = end ? unit_find(unit, end + strspn(end, " \t")) : NULL;

    if (name)
        *value *= name->factor;
    return name;
}

/* The name of the unit with the factor 1, which comes first. */
static const char *base_unit(enum parameter_unit unit)
{
    size_t i = 0;

    while (unit_names[i].unit != unit)
        i++;
    return unit_names[i].name;
}

static int fail_unit(struct reading *reading, const struct location *location,
                     const struct parameter_row *row, const char *text)
{
    return fail(reading, location, "%s takes %s, not '%s'", row->key,
                parameter_unit_text(row->unit), text);
}

static bool is_whole(double value)
{
    return value >= 0 && value < (double)(1ull << 53) && (double)(uint64_t)value == value;
}

static int store_number(struct reading *reading, const struct location *location,
                        const struct parameter_row *row, const char *text)
{
    bool whole = row->unit == UNIT_BYTES || row->unit == UNIT_COUNT;
    char *target = (char *)reading->out + row->offset;
    double value;

    if (!quantity_read(row->unit, text, &value))
        return fail_unit(reading, location, row, text);
    if (value < row->minimum || value > row->maximum || (whole && !is_whole(value)) ||
        (row->power_of_two && ((uint64_t)value & ((uint64_t)value - 1))))
        return fail(reading, location, "%s must be %sfrom %.15g to %.15g%s%s, not '%s'", row->key,
                    row->power_of_two ? "a power of two "
                    : whole           ? "a whole number "
                                      : "",
                    row->minimum, row->maximum, *base_unit(row->unit) ? " " : "",
                    base_unit(row->unit), text);
    if (whole)
        memcpy(target, &(uint64_t){ (uint64_t)value }, sizeof(uint64_t));
    else
        memcpy(target, &value, sizeof(value));
    return 0;
}

static int word_index(const char *words, const char *word)
{
    size_t length = strlen(word);

    for (int index = 0;; index++) {
        size_t end = strcspn(words, " ");

        if (end == length && !strncmp(words, word, length))
            return index;
        if (!words[end])
            return -1;
        words += end + 1;
    }
}

static int store_word(struct reading *reading, const struct location *location,
                      const struct parameter_row *row, const char *text)
{
    char *target = (char *)reading->out + row->offset;
    struct nearest nearest;
    int index = word_index(row->unit == UNIT_YES_NO ? "no yes" : row->choices, text);

    if (row->unit == UNIT_YES_NO) {
        if (index < 0)
            return fail_unit(reading, location, row, text);
        memcpy(target, &(bool){ index == 1 }, sizeof(bool));
        return 0;
    }
    if (index < 0) {
        nearest_begin(&nearest, text, strlen(text));
        nearest_try_words(&nearest, row->choices);
        return fail(reading, location, "%s takes one of '%s', not '%s'%s", row->key, row->choices,
                    text, nearest_text(&nearest));
    }
    memcpy(target, &(unsigned int){ index }, sizeof(unsigned int));
    return 0;
}

static int store(struct reading *reading, const struct location *location,
                 const struct parameter_row *row, const char *text)
{
    switch (row->unit) {
    case UNIT_TEXT:
        if (strlen(text) >= row->size)
            return fail(reading, location, "%s is longer than %zu characters", row->key,
                        row->size - 1);
        strcpy((char *)reading->out + row->offset, text);
        return 0;
    case UNIT_YES_NO:
    case UNIT_CHOICE:
        return store_word(reading, location, row, text);
    default:
        return store_number(reading, location, row, text);
    }
}

static int read_file(struct reading *reading, unsigned int depth);

int parameters_find_base(const char *from, const char *name, char *path, size_t path_size,
                         char *error, size_t size)
{
    const char *slash = strrchr(from, '/');
    bool is_path = adapter_name_is_path(name);
    int length = slash ? slash - from + 1 : 0;

    if (*name == '/')
        length = 0;
    if ((size_t)snprintf(path, path_size, "%.*s%s%s", length, from, name,
                         is_path ? "" : ADAPTER_SUFFIX) >= path_size) {
        snprintf(error, size, "%s: %s", name, strerror(ENAMETOOLONG));
        return -1;
    }
    if (is_path || !access(path, F_OK))
        return 0;
    return parameters_find(name, path, path_size, error, size);
}

static int read_base(struct part *part, const struct location *location, const char *name)
{
    struct reading *reading = part->reading;
    struct source *base = &reading->sources[part->depth + 1];
    struct stat status;
    char error[PATH_MAX + 128];

    if (part->begun)
        return fail(reading, location, "based-on must be the first line");
    if (part->depth + 1 == DEPTH_MAX)
        return fail(reading, location, "more than %d files based on each other", DEPTH_MAX);
    if (parameters_find_base(location->file, name, base->path, sizeof(base->path), error,
                             sizeof(error)))
        return fail(reading, location, "based-on: %s", error);
    if (stat(base->path, &status))
        return fail(reading, location, "based-on: %s: %s", base->path, strerror(errno));
    base->device = status.st_dev;
    base->inode = status.st_ino;
    for (unsigned int i = 0; i <= part->depth; i++) {
        if (reading->sources[i].device == base->device && reading->sources[i].inode == base->inode)
            return fail(reading, location, "based-on: %s is itself based on this file", name);
    }
    return read_file(reading, part->depth + 1);
}

static int refuse_key(struct reading *reading, const struct location *location, const char *key)
{
    struct nearest nearest;

    nearest_begin(&nearest, key, strlen(key));
    for (const struct parameter_row *row = parameter_rows; row->key; row++)
        nearest_try(&nearest, row->key);
    return fail(reading, location, "unknown key '%s'%s", key, nearest_text(&nearest));
}

static int read_value(struct part *part, const struct location *location,
                      const struct adapter_line *line)
{
    struct reading *reading = part->reading;
    const struct parameter_row *row = parameter_find(line->key);
    size_t index;

    if (!row)
        return refuse_key(reading, location, line->key);
    index = row - parameter_rows;
    if (part->given[index] && location->line)
        return fail(reading, location, "%s is already set in line %u", row->key,
                    reading->locations[index].line);
    if (part->given[index])
        return fail(reading, location, "%s is given twice", row->key);
    part->given[index] = true;
    reading->locations[index] = *location;
    return store(reading, location, row, line->value);
}

static int read_line(const struct adapter_line *line, void *context)
{
    struct part *part = context;
    struct location location = { part->reading->sources[part->depth].path, line->number };
    int status;

    if (!strcmp(line->key, "based-on"))
        status = read_base(part, &location, line->value);
    else
        status = read_value(part, &location, line);
    part->begun = true;
    return status;
}

static int read_file(struct reading *reading, unsigned int depth)
{
    struct part part = { .reading = reading, .depth = depth };

    return adapter_file_walk(reading->sources[depth].path, read_line, &part, reading->error,
                             reading->size);
}

static int read_settings(struct reading *reading, char *settings)
{
    struct part part = { .reading = reading };
    struct location location = { .file = SETTINGS };
    struct adapter_line line;
    char *rest = settings, *setting;

    while ((setting = strsep(&rest, ";"))) {
        int kind = adapter_line_split(setting, &line);

        if (kind < 0)
            return fail(reading, &location, "'%s' is not 'key=value'", setting);
        if (kind > 0 && read_value(&part, &location, &line))
            return -1;
    }
    return 0;
}

static int store_defaults(struct reading *reading)
{
    for (const struct parameter_row *row = parameter_rows; row->key; row++) {
        struct location location = { .file = row->key };

        if (row->default_value && store(reading, &location, row, row->default_value))
            return -1;
    }
    return 0;
}

static int check_missing(struct reading *reading)
{
    struct location location = { .file = reading->sources[0].path };

    for (const struct parameter_row *row = parameter_rows; row->key; row++) {
        if (!row->default_value && !reading->locations[row - parameter_rows].file)
            return fail(reading, &location, "%s is missing: %s", row->key, row->help);
    }
    return 0;
}

static uint64_t pages_of(const struct parameters *parameters, uint64_t bytes)
{
    return (bytes + parameters->host.page_size - 1) / parameters->host.page_size;
}

double parameters_reg_mr(const struct parameters *parameters, uint64_t bytes)
{
    uint64_t pages = pages_of(parameters, bytes), knee = parameters->host.reg_mr_knee;
    uint64_t beyond = pages > knee ? pages - knee : 0;

    return parameters->host.reg_mr + (pages - beyond) * parameters->host.reg_mr_page +
           beyond * parameters->host.reg_mr_page_beyond;
}

double parameters_dereg_mr(const struct parameters *parameters, uint32_t regions, uint64_t bytes)
{
    return regions * parameters->host.dereg_mr +
           pages_of(parameters, bytes) * parameters->host.dereg_mr_page;
}

bool parameters_time(const char *text, double *ns)
{
    return quantity_read(UNIT_TIME, text, ns) && *ns >= 0;
}

bool parameters_weights(const struct parameters *parameters, uint32_t weights[VLS_MAX])
{
    const char *at = parameters->link.vl_weights;
    uint64_t vl = 0;

    while (*at) {
        char *end;
        unsigned long weight = strtoul(at, &end, 10);

        if (end == at || !isdigit((unsigned char)*at) || (*end && *end != ' ') || !weight ||
            weight > WEIGHT_MAX || vl == parameters->link.vls)
            return false;
        weights[vl++] = weight;
        at = end + strspn(end, " ");
    }
    for (; vl && vl < VLS_MAX; vl++)
        weights[vl] = weights[vl - 1];
    return vl;
}

/* Values that are valid each, but not in combination. */
static int check_consistency(struct reading *reading)
{
    const struct parameters *out = reading->out;
    uint64_t packet = out->link.mtu + out->link.header;
    bool ethernet = out->link.layer == LAYER_ETHERNET, lossy = ethernet && !out->pfc.xoff;
    struct link_failure failures[LINK_FAILURES_MAX];
    char shape[512] = "is wrong: ", wrong[512];
    size_t begun = strlen(shape);
    uint32_t weights[VLS_MAX];
    const struct {
        bool wrong;
        const char *key;
        const char *reason;
    } checks[] = {
        { out->hca.buffer && out->hca.buffer < packet, "hca.buffer",
          "holds less than one packet of link.mtu and link.header" },
        { out->link.receive_buffer && out->link.receive_buffer < packet, "link.receive_buffer",
          "holds less than one packet of link.mtu and link.header" },
        { !parameters_weights(out, weights), "link.vl_weights",
          "takes whole numbers from 1 to 255, one for each of link.vls at most" },
        { shape_check(out->fabric.shape, shape + begun, sizeof(shape) - begun), "fabric.shape",
          shape },
        { link_failures_read(out->fabric.failures, failures, wrong, sizeof(wrong)) < 0,
          "fabric.failures", wrong },
        { out->hca.memory && !(out->hca.memory_rate > 0), "hca.memory", "needs hca.memory_rate" },
        { !ethernet && out->pfc.xoff, "pfc.xoff", "needs link.layer = ethernet" },
        { !ethernet && out->ecn.kmax, "ecn.kmax", "needs link.layer = ethernet" },
        { out->dcqcn.enabled && !out->ecn.kmax, "dcqcn.enabled", "= yes needs ecn.kmax" },
        { out->pfc.xoff && out->pfc.xon > out->pfc.xoff, "pfc.xon", "exceeds pfc.xoff" },
        /* An empty buffer that refuses a packet would pause its sender forever. */
        { out->pfc.xoff && out->pfc.xoff + out->pfc.headroom < packet, "pfc.xoff",
          "and pfc.headroom hold less than one packet of link.mtu and link.header" },
        { out->ecn.kmax && out->ecn.kmin > out->ecn.kmax, "ecn.kmax", "is below ecn.kmin" },
        { !(out->dcqcn.g > 0) || out->dcqcn.g >= 1, "dcqcn.g", "is not between 0 and 1" },
        { out->dcqcn.timer < 1 || out->dcqcn.alpha_interval < 1,
          out->dcqcn.timer < 1 ? "dcqcn.timer" : "dcqcn.alpha_interval", "is below 1 ns" },
        { lossy && out->fabric.output_buffer && out->fabric.output_buffer < packet,
          "fabric.output_buffer", "holds less than one packet of link.mtu and link.header" },
    };

    for (size_t i = 0; i < sizeof(checks) / sizeof(*checks); i++) {
        size_t row = 0;

        if (!checks[i].wrong)
            continue;
        while (strcmp(parameter_rows[row].key, checks[i].key))
            row++;
        return fail(reading, &reading->locations[row], "%s %s", checks[i].key, checks[i].reason);
    }
    return 0;
}

/* An adapter is named after its file. */
static int store_name(struct reading *reading)
{
    const char *path = reading->sources[0].path, *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    size_t length = strlen(name);
    struct location location = { .file = path };

    if (adapter_suffixed(name))
        length -= strlen(ADAPTER_SUFFIX);
    if (length >= sizeof(reading->out->name))
        return fail(reading, &location, "the name is longer than %zu characters",
                    sizeof(reading->out->name) - 1);
    memcpy(reading->out->name, name, length);
    reading->out->name[length] = '\0';
    return 0;
}

static int read_all(struct reading *reading, const char *path, const char *settings)
{
    struct source *source = &reading->sources[0];
    struct location location = { .file = path };
    struct stat status;
    char *text;
    int failed;

    if (strlen(path) >= sizeof(source->path))
        return fail(reading, &location, "%s", strerror(ENAMETOOLONG));
    strcpy(source->path, path);
    if (stat(path, &status))
        return fail(reading, &location, "%s", strerror(errno));
    source->device = status.st_dev;
    source->inode = status.st_ino;
    if (store_name(reading) || store_defaults(reading) || read_file(reading, 0))
        return -1;
    text = strdup(settings ? settings : "");
    if (!text)
        return fail(reading, &location, "%s", strerror(ENOMEM));
    failed = read_settings(reading, text);
    free(text);
    return failed || check_missing(reading) || check_consistency(reading) ? -1 : 0;
}

int parameters_read(const char *path, const char *settings, struct parameters *out, char *error,
                    size_t size)
{
    struct parameters parameters = { .name = "" };
    struct reading *reading = calloc(1, sizeof(*reading));
    int status;

    if (!reading) {
        snprintf(error, size, "%s: %s", path, strerror(ENOMEM));
        return -1;
    }
    reading->out = &parameters;
    reading->error = error;
    reading->size = size;
    status = read_all(reading, path, settings);
    free(reading);
    if (!status)
        *out = parameters;
    return status;
}

static void try_adapter(const char *name, void *nearest)
{
    nearest_try(nearest, name);
}

static void refuse_adapter(const char *name, const char *directory, char *error, size_t size)
{
    struct nearest nearest;
    char unused[PATH_MAX];

    nearest_begin(&nearest, name, strlen(name));
    adapter_list(try_adapter, &nearest, unused, sizeof(unused));
    snprintf(error, size, "no adapter '%s' in %s%s", name, directory, nearest_text(&nearest));
}

int parameters_find(const char *name, char *path, size_t path_size, char *error, size_t size)
{
    char directory[PATH_MAX];
    size_t length = strlen(name), suffix = strlen(ADAPTER_SUFFIX);
    bool is_path =
        strchr(name, '/') || (length >= suffix && !strcmp(name + length - suffix, ADAPTER_SUFFIX));

    if (!is_path && adapter_directory(directory, sizeof(directory), error, size))
        return -1;
    if ((size_t)(is_path ? snprintf(path, path_size, "%s", name)
                         : snprintf(path, path_size, "%s/%s%s", directory, name, ADAPTER_SUFFIX)) >=
        path_size) {
        snprintf(error, size, "%s: %s", name, strerror(ENAMETOOLONG));
        return -1;
    }
    if (access(path, R_OK)) {
        if (is_path)
            snprintf(error, size, "%s: %s", path, strerror(errno));
        else
            refuse_adapter(name, directory, error, size);
        return -1;
    }
    return 0;
}
