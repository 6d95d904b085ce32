/* SPDX-License-Identifier: BSD-2-Clause */
#include "calibrate/data.h"

#include "bench/session/experiments.h"
#include "results/allocate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SIGMA_LEAST      0.02
#define SIGMA_MOST       0.5
#define BRIEF_SIZES      7
#define BRIEF_ITERATIONS 24 /* of latencies, which repeat exactly */
#define BRIEF_MESSAGES   96 /* of streams, which have to get going */
#define BRIEF_ROUNDS     8  /* of latencies of many QPs, each of them a round trip on every QP */
#define BRIEF_WARMUP     4
#define WHOLE_ITERATIONS 1000
#define CALLS            4 /* of control experiments; each costs the same, and an empty poll 5 ms */
#define CONFIDENCE       1.96 /* standard errors to either side of a 95% interval */

/* Experiments and groups whose results are not the adapter's. */
static const struct {
    const char *name, *why;
} not_modelled[] = {
    { "tcp", "sockets are not modelled" },
    { "host-memory", "it counts memory of processes, not time" },
    { "fairness", "its times are results, not settings" },
    { "mpi", "it measures an MPI library, not the adapter" },
};

/* The option that lists the values of an axis, for axes to which --refine adds values. */
static const struct {
    const char *axis, *option;
} axis_options[] = {
    { "QPs", "qps" },         { "connections", "qps" }, { "regions", "regions" },
    { "threads", "threads" }, { "nodes", "nodes" },     { "emulated", "qps" },
};

const char *data_role_name(enum data_role role)
{
    static const char *const names[] = {
        [DATA_CONTROL] = "control",
        [DATA_FITTED] = "fitted",
        [DATA_HELD_OUT] = "held out",
        [DATA_UNUSED] = "not used",
    };

    return names[role];
}

const char *data_not_modelled(const struct experiment *experiment)
{
    for (size_t i = 0; i < sizeof(not_modelled) / sizeof(*not_modelled); i++) {
        if (!strcmp(not_modelled[i].name, experiment->name) ||
            !strcmp(not_modelled[i].name, experiment_group(experiment)))
            return not_modelled[i].why;
    }
    return NULL;
}

/* Threads of one process hand over for every message. */
bool data_costly(const struct experiment *experiment)
{
    return !strcmp(experiment->name, "multi-thread");
}

bool data_is_listed(const char *list, const char *name)
{
    size_t length = strlen(name);

    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strcspn(at, ",") == length && !strncmp(at, name, length))
            return true;
    }
    return false;
}

/* ---- lines of sweeps ---- */

FILE *data_begin_lines(struct file_text *file)
{
    FILE *out = file_begin(file);

    if (!out)
        abort();
    return out;
}

char *data_take_lines(struct file_text *file)
{
    char *lines = file_take(file);

    if (!lines)
        abort();
    return lines;
}

static void put_numbers(const struct number_list *list, FILE *out)
{
    for (unsigned int i = 0; i < list->count; i++)
        fprintf(out, "%s%llu", i ? "," : "", (unsigned long long)list->value[i]);
}

/* Keeps both ends and, evenly, some of what lies between. */
static void thin(struct number_list *list, unsigned int most)
{
    struct number_list kept = { .count = most };

    if (list->count <= most)
        return;
    for (unsigned int i = 0; i < most; i++)
        kept.value[i] = list->value[i * (list->count - 1) / (most - 1)];
    *list = kept;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* The values at which the axis of this option was measured; false if it is not an axis. */
static bool measured_axis(const struct experiment_result *result, const char *option,
                          struct number_list *out)
{
    const char *axis = NULL;

    out->count = 0;
    for (size_t i = 0; i < sizeof(axis_options) / sizeof(*axis_options); i++) {
        if (!strcmp(axis_options[i].option, option) && result->count &&
            !strcmp(axis_options[i].axis, result->series[0].axis))
            axis = axis_options[i].axis;
    }
    for (unsigned int i = 0; axis && i < result->series[0].count; i++) {
        if (out->count < NUMBERS_MAX)
            out->value[out->count++] = (uint64_t)result->series[0].points[i].x;
    }
    qsort(out->value, out->count, sizeof(*out->value), by_value);
    return out->count;
}

static bool has_streams(const struct experiment_result *result)
{
    for (unsigned int i = 0; i < result->count; i++) {
        if (result->series[i].better == BETTER_HIGHER)
            return true;
    }
    return false;
}

static uint64_t brief_iterations(const struct experiment_result *result)
{
    if (has_streams(result))
        return BRIEF_MESSAGES;
    return result->count && !strcmp(result->series[0].axis, "QPs") ? BRIEF_ROUNDS
                                                                    : BRIEF_ITERATIONS;
}

static uint64_t whole_iterations(const struct experiment_result *result)
{
    return strcmp(result->group, "control") ? WHOLE_ITERATIONS : CALLS;
}

static uint64_t at_most(const char *text, uint64_t limit)
{
    const char *end;
    uint64_t number;

    return option_read_number(text, &end, &number) && number < limit ? number : limit;
}

/* Writes an option as it was measured, or as a model needs it: a model has no noise. */
static void put_option(const struct option_row *row, const char *value,
                       const struct experiment_result *result, bool brief, FILE *out)
{
    struct number_list list;
    char error[256];

    if (!strcmp(row->name, "repetitions")) {
        value = "1";
    } else if (!strcmp(row->name, "tolerance") || !strcmp(row->name, "trim") ||
               !strcmp(row->name, "refine")) {
        value = "0";
    } else if (!strcmp(row->name, "iterations")) {
        fprintf(out, " --iterations=%llu",
                (unsigned long long)at_most(value, brief ? brief_iterations(result)
                                                         : whole_iterations(result)));
        return;
    } else if (!strcmp(row->name, "warmup")) {
        fprintf(out, " --warmup=%llu",
                (unsigned long long)at_most(value, brief ? BRIEF_WARMUP : whole_iterations(result)));
        return;
    }
    if (row->kind == OPTION_NUMBERS) {
        struct option_row here = *row;

        here.offset = 0;
        if (!measured_axis(result, row->name, &list) &&
            option_store(&here, value, &list, error, sizeof(error)))
            return;
        if (brief && !strcmp(row->name, "sizes"))
            thin(&list, BRIEF_SIZES);
        fprintf(out, " --%s=", row->name);
        put_numbers(&list, out);
        return;
    }
    fprintf(out, " --%s=%s", row->name, value);
}

/* Every setting that was in force: the file lists those that differ from the general defaults, and
 * the experiment has defaults of its own. */
static char *line_of(const struct experiment_result *result, bool brief)
{
    struct file_text file;
    FILE *out = data_begin_lines(&file);

    fputs(result->name, out);
    for (const struct option_row *row = settings_rows; row->name; row++) {
        const char *value = results_metadata_get(&result->settings, row->name);

        if (row->tags || row->kind == OPTION_FLAG)
            continue;
        value = value ? value : row->default_value;
        if (value && *value)
            put_option(row, value, result, brief, out);
    }
    fputc('\n', out);
    return data_take_lines(&file);
}

void data_put_quick_line(const struct experiment *experiment, FILE *out)
{
    fprintf(out, "%s %s --iterations %d --warmup %d --repetitions 1 --refine 0\n", experiment->name,
            experiment->quick ? experiment->quick : "", BRIEF_ITERATIONS, BRIEF_WARMUP);
}

/* ---- points ---- */

static double sigma_of(const struct summary *y)
{
    double sigma = (y->high - y->low) / 2 / CONFIDENCE / y->median;

    return fmin(fmax(sigma, SIGMA_LEAST), SIGMA_MOST);
}

static void add_points(struct data *data, unsigned int index)
{
    struct data_experiment *entry = &data->experiments[index];

    entry->first_point = data->point_count;
    for (unsigned int i = 0; i < entry->result->count; i++) {
        const struct series *series = &entry->result->series[i];

        for (unsigned int k = 0; k < series->count; k++) {
            const struct summary *y = &series->points[k].y;

            if (!(y->median > 0))
                continue;
            data->points =
                allocate_one_more(data->points, data->point_count, sizeof(*data->points));
            data->points[data->point_count++] = (struct data_point){
                .experiment = index,
                .series = series,
                .x = series->points[k].x,
                .measured = log(y->median),
                .sigma = sigma_of(y),
            };
        }
    }
    entry->count = data->point_count - entry->first_point;
}

static int reject_settings(const struct results *file, const struct experiment_result *result,
                           char *error, size_t size)
{
    for (unsigned int i = 0; i < result->settings.count; i++) {
        const char *name = result->settings.rows[i].name;

        if (option_find(settings_rows, name, strlen(name)))
            continue;
        snprintf(error, size,
                 "%s: %s was measured with --%s, which this version does not know: "
                 "the file is from Verbena %s",
                 file->path, result->name, name, file->version);
        return -1;
    }
    return 0;
}

/* A list of held-out experiments may also name whole files. */
static bool is_held_out(const char *list, const struct results *file,
                        const struct experiment_result *result)
{
    return data_is_listed(list, result->name) ||
           (file->path && data_is_listed(list, file->path));
}

static int add_experiment(struct data *data, const struct results *file,
                          const struct experiment_result *result, const char *held_out, char *error,
                          size_t size)
{
    struct data_experiment entry = { .result = result,
                                     .experiment = experiment_find(result->name),
                                     .role = DATA_FITTED };
    const char *why = NULL;

    if (!entry.experiment)
        why = "this version of the suite does not have it";
    else if (result->skipped)
        why = result->skipped;
    else if (result->failed && !result->count)
        why = result->failed;
    else
        why = data_not_modelled(entry.experiment);
    if (!why && data_costly(entry.experiment) && !is_held_out(held_out, file, result))
        why = "it takes too long in virtual time; --hold-out predicts it";
    if (!why && reject_settings(file, result, error, size))
        return -1;
    if (is_held_out(held_out, file, result)) {
        if (why) {
            snprintf(error, size, "--hold-out %s: %s", result->name, why);
            return -1;
        }
        entry.role = DATA_HELD_OUT;
    } else if (!why && !strcmp(experiment_group(entry.experiment), "control")) {
        entry.role = DATA_CONTROL;
    }
    if (why) {
        entry.role = DATA_UNUSED;
        snprintf(entry.why, sizeof(entry.why), "%s", why);
    } else {
        entry.whole = line_of(result, false);
        entry.brief = line_of(result, true);
    }
    data->experiments =
        allocate_one_more(data->experiments, data->experiment_count, sizeof(*data->experiments));
    data->experiments[data->experiment_count++] = entry;
    if (!why)
        add_points(data, data->experiment_count - 1);
    return 0;
}

static int check_held_out(const struct data *data, struct results **files, unsigned int count,
                          const char *list, char *error, size_t size)
{
    for (const char *word = list; word && *word; word += strspn(word, ",")) {
        size_t length = strcspn(word, ",");
        bool found = false;

        for (unsigned int i = 0; i < data->experiment_count; i++)
            found |= strlen(data->experiments[i].result->name) == length &&
                     !strncmp(data->experiments[i].result->name, word, length);
        for (unsigned int i = 0; i < count; i++)
            found |= files[i]->path && strlen(files[i]->path) == length &&
                     !strncmp(files[i]->path, word, length);
        if (!found) {
            snprintf(error, size, "--hold-out %.*s: the results have no such experiment or file",
                     (int)length, word);
            return -1;
        }
        word += length;
    }
    return 0;
}

int data_take(struct results **files, unsigned int count, const char *held_out, struct data *out,
              char *error, size_t size)
{
    int status = 0;

    memset(out, 0, sizeof(*out));
    for (unsigned int i = 0; i < count; i++) {
        for (unsigned int k = 0; !status && k < files[i]->count; k++)
            status =
                add_experiment(out, files[i], &files[i]->experiments[k], held_out, error, size);
    }
    if (!status)
        status = check_held_out(out, files, count, held_out, error, size);
    if (status)
        data_free(out);
    return status;
}

void data_free(struct data *data)
{
    for (unsigned int i = 0; i < data->experiment_count; i++) {
        free(data->experiments[i].whole);
        free(data->experiments[i].brief);
    }
    free(data->experiments);
    free(data->points);
    memset(data, 0, sizeof(*data));
}

double data_find(const struct data_point *point, const struct experiment_result *result)
{
    for (unsigned int i = 0; i < result->count; i++) {
        const struct series *series = &result->series[i], *wanted = point->series;

        if (strcmp(series->name, wanted->name) || strcmp(series->quantity, wanted->quantity) ||
            strcmp(series->axis, wanted->axis) || strcmp(series->unit, wanted->unit))
            continue;
        for (unsigned int k = 0; k < series->count; k++) {
            double median = series->points[k].y.median;

            if (series->points[k].x == point->x)
                return median > 0 ? log(median) : NAN;
        }
    }
    return NAN;
}
