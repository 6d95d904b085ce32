/* SPDX-License-Identifier: BSD-2-Clause */
#include "calibrate/keys.h"

#include "sim/adapter/adapter_file.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ORIGIN_MAX 160
#define UNLIMITED  1e9 /* counts that stand for "all" */
/* Where a value of 0 starts if the user wants it fitted. */
#define SEED_NS    1.0
#define SEED_GB_S  100.0
#define SEED_COUNT 1024.0
#define SEED_BYTES 1048576.0
#define USUAL      "usual"
#define NOT_CHOSEN "', which is not a numeric key or the beginning of one"

/* Groups of keys that are fitted unless the user names others. The rest are specifications
 * (sizes), belong to no experiment that is modelled (NAS), or to a library above (MPI). */
static const char *const usual_groups[] = { "host", "bus", "hca", "icm", "link", "fabric" };

static const char *const origin_names[KEY_ORIGINS] = {
    [KEY_KEPT] = "kept",     [KEY_DEVICE] = "device", [KEY_MEASURED] = "measured",
    [KEY_FITTED] = "fitted", [KEY_SHARED] = "shared", [KEY_UNDETERMINED] = "undetermined",
};

const char *keys_origin_name(enum key_origin origin)
{
    return origin_names[origin];
}

static bool is_whole(const struct parameter_row *row)
{
    return row->unit == UNIT_BYTES || row->unit == UNIT_COUNT;
}

static bool in_group(const char *key, const char *group, size_t length)
{
    return !strncmp(key, group, length) && (key[length] == '.' || !key[length]);
}

int keys_read(const char *start, struct keys *out, char *error, size_t size)
{
    char path[sizeof(out->path)];

    memset(out, 0, sizeof(*out));
    if (parameters_find(start, path, sizeof(path), error, size) ||
        parameters_read(path, NULL, &out->start, error, size))
        return -1;
    if (!realpath(path, out->path)) {
        snprintf(error, size, "%s: %s", path, strerror(errno));
        return -1;
    }
    snprintf(out->name, sizeof(out->name), "%s", out->start.name);
    for (const struct parameter_row *row = parameter_rows; row->key; row++) {
        double value;

        if (!parameter_number(&out->start, row->key, &value))
            out->list[out->count++] = (struct key){ .row = row, .start = value, .value = value };
    }
    return 0;
}

struct key *keys_find(struct keys *keys, const char *name)
{
    for (unsigned int i = 0; i < keys->count; i++) {
        if (!strcmp(keys->list[i].row->key, name))
            return &keys->list[i];
    }
    return NULL;
}

static enum key_variation variation_of(const struct parameter_row *row)
{
    return is_whole(row) ? KEY_DISCRETE : KEY_SMOOTH;
}

/* 0 switches a mechanism off, or a limit; whether there is one is START's decision. */
static void choose_usual(struct keys *keys)
{
    for (unsigned int i = 0; i < keys->count; i++) {
        struct key *key = &keys->list[i];
        const char *name = key->row->key;
        bool usual = false, inside;

        for (size_t k = 0; k < sizeof(usual_groups) / sizeof(*usual_groups); k++)
            usual |= in_group(name, usual_groups[k], strlen(usual_groups[k]));
        inside = in_group(name, "hca", 3) || in_group(name, "icm", 3);
        if (!usual || key->start <= 0)
            continue;
        if (!is_whole(key->row))
            key->variation = KEY_SMOOTH;
        else if (key->row->unit == UNIT_COUNT && inside && key->start < UNLIMITED)
            key->variation = KEY_DISCRETE;
    }
}

/* 0 has no logarithm. A time of 0 starts small, a share in the middle; others of 0 are without a
 * limit, and start large. */
double keys_seed(const struct key *key)
{
    static const double seeds[] = { [UNIT_TIME] = SEED_NS,
                                    [UNIT_RATE] = SEED_GB_S,
                                    [UNIT_COUNT] = SEED_COUNT,
                                    [UNIT_BYTES] = SEED_BYTES,
                                    [UNIT_REAL] = 1 };
    double seed = fmin(seeds[key->row->unit], key->row->maximum / 2);

    return key->start > 0 ? key->start : keys_valid(key, seed);
}

static void vary(struct key *key)
{
    key->variation = variation_of(key->row);
    key->value = keys_seed(key);
}

int keys_choose(struct keys *keys, const char *list, char *error, size_t size)
{
    if (!list) {
        choose_usual(keys);
        return 0;
    }
    for (const char *word = list; *word; word += strspn(word, ",")) {
        size_t length = strcspn(word, ",");
        bool found = length == strlen(USUAL) && !strncmp(word, USUAL, length);

        if (found)
            choose_usual(keys);
        for (unsigned int i = 0; i < keys->count; i++) {
            if (!in_group(keys->list[i].row->key, word, length))
                continue;
            vary(&keys->list[i]);
            found = true;
        }
        if (!found) {
            snprintf(error, size, "--fit names '%.*s" NOT_CHOSEN, (int)length, word);
            return -1;
        }
        word += length;
    }
    return 0;
}

bool keys_restore(struct keys *keys)
{
    bool changed = false;

    for (unsigned int i = 0; i < keys->count; i++) {
        struct key *key = &keys->list[i];

        if (key->origin != KEY_KEPT && key->origin != KEY_UNDETERMINED)
            continue;
        changed |= key->value != key->start;
        key->value = key->start;
    }
    return changed;
}

double keys_valid(const struct key *key, double value)
{
    const struct parameter_row *row = key->row;

    value = fmin(fmax(value, row->minimum), row->maximum);
    if (row->power_of_two)
        return exp2(round(log2(fmax(value, 1))));
    return is_whole(row) ? round(value) : value;
}

/* Digits and a point, for the adapter files have no exponents. */
static void put_decimal(double value, char *text, size_t size)
{
    int digits = value > 0 ? 5 - (int)floor(log10(value)) : 0;
    char *end;

    snprintf(text, size, "%.*f", digits < 0 ? 0 : digits, value);
    if (!strchr(text, '.'))
        return;
    for (end = text + strlen(text) - 1; *end == '0'; end--)
        *end = '\0';
    if (*end == '.')
        *end = '\0';
}

const char *keys_text(const struct parameter_row *row, double value, char *text, size_t size)
{
    const char *unit = "";
    char number[64];

    switch (row->unit) {
    case UNIT_YES_NO:
        snprintf(text, size, "%s", value ? "yes" : "no");
        return text;
    case UNIT_TIME:
        unit = value < 1e4 ? " ns" : value < 1e7 ? " us" : " ms";
        value /= value < 1e4 ? 1 : value < 1e7 ? 1e3 : 1e6;
        break;
    case UNIT_RATE:
        unit = value > 0 && value < 1 ? " MB/s" : " GB/s";
        value *= value < 1 ? 1e3 : 1;
        break;
    case UNIT_BYTES:
        unit = " B";
        break;
    default:
        break;
    }
    if (is_whole(row))
        snprintf(number, sizeof(number), "%.0f", value);
    else
        put_decimal(value, number, sizeof(number));
    snprintf(text, size, "%s%s", number, unit);
    return text;
}

/* ---- adapter files ---- */

/* The comments of START's own file; of the files it is based on there are none. */
struct origins {
    char text[PARAMETER_ROWS_MAX][ORIGIN_MAX];
};

static int take_origin(const struct adapter_line *line, void *context)
{
    const struct parameter_row *row = parameter_find(line->key);
    struct origins *origins = context;

    if (row)
        snprintf(origins->text[row - parameter_rows], ORIGIN_MAX, "%s", line->origin);
    return 0;
}

static void write_comment(const struct keys *keys, const struct key *key, const char *origin,
                          FILE *out)
{
    fputs("  # ", out);
    switch (key ? key->origin : KEY_KEPT) {
    case KEY_DEVICE:
        fputs("measured: reported by the device", out);
        break;
    case KEY_MEASURED:
        fprintf(out, "measured: %s", key->note);
        break;
    case KEY_FITTED:
        if (key->high > key->low)
            fprintf(out, "fitted: %.0f to %.0f fit equally well", key->low, key->high);
        else if (key->variation == KEY_DISCRETE)
            fputs("fitted", out);
        else if (!key->start && key->error > 1)
            fputs("fitted: the data exclude the 0 of START, and tell little more", out);
        else
            fprintf(out, "fitted, +- %.2g%%", 100 * key->error);
        break;
    case KEY_SHARED:
        fprintf(out, "fitted, but only combination %u is determined, START's shares kept",
                key->combined);
        break;
    case KEY_UNDETERMINED:
        fprintf(out, "not determined by these data, kept from %s", keys->name);
        break;
    default:
        fprintf(out, "kept from %s%s%s", keys->name, *origin ? ": " : "", origin);
    }
    fputc('\n', out);
}

/* A word of the row's choices, or a text. */
static void write_word(const struct keys *keys, const struct parameter_row *row, FILE *out)
{
    const char *source = (const char *)&keys->start + row->offset, *word = row->choices;
    unsigned int index;

    if (row->unit == UNIT_TEXT) {
        fputs(source, out);
    } else if (row->unit == UNIT_YES_NO) {
        fputs(*(const bool *)source ? "yes" : "no", out);
    } else {
        for (memcpy(&index, source, sizeof(index)); index; index--)
            word += strcspn(word, " ") + 1;
        fprintf(out, "%.*s", (int)strcspn(word, " "), word);
    }
}

/* Writes every key but the title, with comments if there are origins. */
static void write_lines(const struct keys *keys, const double *values,
                        const struct origins *origins, FILE *out)
{
    const char *last = "title";
    unsigned int next = 0;
    char text[64];

    for (const struct parameter_row *row = parameter_rows; row->key; row++) {
        const struct key *key = NULL;

        if (!strcmp(row->key, "title"))
            continue;
        if (next < keys->count && keys->list[next].row == row)
            key = &keys->list[next++];
        if (!in_group(row->key, last, strcspn(last, ".")))
            fputc('\n', out);
        last = row->key;
        fprintf(out, "%s = ", row->key);
        if (key)
            fputs(keys_text(row, values ? values[next - 1] : key->value, text, sizeof(text)), out);
        else
            write_word(keys, row, out);
        if (origins)
            write_comment(keys, key, origins->text[row - parameter_rows], out);
        else
            fputc('\n', out);
    }
}

void keys_write(const struct keys *keys, const char *title, FILE *out)
{
    static struct origins origins;
    char error[512];

    memset(&origins, 0, sizeof(origins));
    adapter_file_walk(keys->path, take_origin, &origins, error, sizeof(error));
    fprintf(out, "title = %s\n", title);
    write_lines(keys, NULL, &origins, out);
}

void keys_write_trial(const struct keys *keys, const double *values, FILE *out)
{
    fputs("title = a trial\n", out);
    write_lines(keys, values, NULL, out);
}
