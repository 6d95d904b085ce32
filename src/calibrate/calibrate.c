/* SPDX-License-Identifier: BSD-2-Clause */
#include "calibrate/calibrate.h"

#include "calibrate/control.h"
#include "calibrate/search.h"
#include "results/allocate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TRIALS       9 /* of the first fit */
#define TRIALS_AGAIN 6 /* after the counts were searched, or keys were given up */
#define POINTS_LEAST 3

/* The state of one calibration. */
struct session {
    struct calibration *out;
    struct runs runs;
    struct fit fit;
    unsigned int controlled; /* keys that control experiments gave */
    char *error;
    size_t size;
};

/* What the device itself reports. */
static void take_device(const struct results *file, struct keys *keys)
{
    static const struct {
        const char *name, *key;
    } rows[] = { { "active MTU", "link.mtu" }, { "ports", "link.ports" } };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const char *text = results_metadata_get(&file->device, rows[i].name);
        struct key *key = keys_find(keys, rows[i].key);
        double value = text ? strtod(text, NULL) : 0;

        if (!key || !(value > 0) || value < key->row->minimum || value > key->row->maximum)
            continue;
        key->value = keys_valid(key, value);
        key->variation = KEY_FIXED;
        key->origin = KEY_DEVICE;
    }
}

static int fail(const struct session *session, const char *reason)
{
    if (*session->runs.failure)
        snprintf(session->error, session->size, "%s: %s", reason, session->runs.failure);
    else
        snprintf(session->error, session->size, "%s", reason);
    return -1;
}

/* Experiments of which the model has no point cannot be fitted. */
static void drop_experiments(struct data *data)
{
    for (unsigned int i = 0; i < data->experiment_count; i++) {
        struct data_experiment *entry = &data->experiments[i];
        bool any = entry->role != DATA_FITTED;

        for (unsigned int k = entry->first_point; k < entry->first_point + entry->count; k++)
            any |= data->points[k].usable;
        if (any)
            continue;
        entry->role = DATA_UNUSED;
        snprintf(entry->why, sizeof(entry->why), "the model has none of its points");
    }
}

static int begin(struct session *session)
{
    struct fit *fit = &session->fit;
    char reason[256];
    int status = fit_compare_runs(fit);

    if (status)
        return status < 0 ? fail(session, "the model cannot be run") : status;
    drop_experiments(fit->data);
    if (fit->point_count >= POINTS_LEAST || session->controlled)
        return 0;
    if (*session->runs.failure)
        return fail(session, "the model cannot be run");
    snprintf(reason, sizeof(reason),
             "too few points: %u of the results can be modelled and are not held out, %d are "
             "needed; 'verbena bench -o FILE.json' measures enough",
             fit->point_count, POINTS_LEAST);
    return fail(session, reason);
}

/* Searches counts, and fits the other keys to those that have changed. */
static int search_then_fit(struct fit *fit, const struct search_map *map, enum search_pass pass)
{
    bool *changed = allocate_zeroed(fit->data->experiment_count + 1), any;
    int status = search_run(fit, map, pass, changed, &any);

    if (!status && any)
        fit_forget(fit, changed);
    if (!status && (any || pass == SEARCH_COUNTS)) {
        status = fit_compare_runs(fit);
        if (!status)
            status = fit_solve(fit, TRIALS_AGAIN);
        if (!status && pass == SEARCH_NEARBY)
            status = fit_measure_slopes(fit);
    }
    free(changed);
    return status;
}

/* The differences between whole and brief runs are renewed between the steps. The first counts are
 * found while other keys are still wrong, so counts are looked at again. */
static int fit_alternately(struct fit *fit, const struct search_map *map)
{
    bool *changed = allocate_zeroed(fit->data->experiment_count + 1), any;
    int status = search_run(fit, map, SEARCH_SHAPES, changed, &any);

    free(changed);
    if (!status && any)
        status = fit_compare_runs(fit);
    if (!status)
        status = fit_screen(fit);
    if (!status)
        status = fit_solve(fit, TRIALS);
    if (!status)
        status = search_then_fit(fit, map, SEARCH_CACHES);
    if (!status)
        status = search_then_fit(fit, map, SEARCH_COUNTS);
    if (!status)
        status = fit_measure_slopes(fit);
    if (!status)
        status = search_then_fit(fit, map, SEARCH_NEARBY);
    return status;
}

static int fit_all(struct session *session)
{
    struct fit *fit = &session->fit;
    struct search_map map;
    int status = search_open(fit, &map);

    if (!status)
        status = fit_alternately(fit, &map);
    search_close(&map);
    if (status)
        return status;
    identify_keys(fit, &session->out->identify);
    status = search_switched_off(fit);
    if (status)
        return status;
    if (keys_restore(fit->keys)) {
        fit_restrict(fit);
        status = fit_solve(fit, TRIALS_AGAIN);
    }
    return status;
}

/* ---- the result ---- */

static char *all_lines(const struct data *data)
{
    struct file_text file;
    FILE *out = data_begin_lines(&file);

    for (unsigned int i = 0; i < data->experiment_count; i++) {
        if (data->experiments[i].role != DATA_UNUSED)
            fputs(data->experiments[i].whole, out);
    }
    return data_take_lines(&file);
}

static void take_modelled(struct calibration *out)
{
    unsigned int next = 0;

    for (unsigned int i = 0; i < out->data.experiment_count; i++) {
        const struct data_experiment *entry = &out->data.experiments[i];
        const struct experiment_result *result;

        if (entry->role == DATA_UNUSED || next == out->modelled->count)
            continue;
        result = &out->modelled->experiments[next++];
        for (unsigned int k = entry->first_point; k < entry->first_point + entry->count; k++)
            out->values[k] = data_find(&out->data.points[k], result);
    }
}

static int model_all(struct session *session)
{
    struct calibration *out = session->out;
    double *values = allocate_zeroed(out->keys.count * sizeof(*values));
    char *lines = all_lines(&out->data);
    const double *trials[] = { values };
    int status;

    fit_values(&session->fit, values);
    out->values = allocate_zeroed(out->data.point_count * sizeof(*out->values) + 1);
    for (unsigned int i = 0; i < out->data.point_count; i++)
        out->values[i] = NAN;
    status = runs_sweep(&session->runs, lines, trials, 1, "the calibrated adapter", &out->modelled);
    if (!status && !out->modelled)
        status = -1;
    if (!status)
        take_modelled(out);
    free(values);
    free(lines);
    return status < 0 ? fail(session, "the calibrated adapter cannot be run") : status;
}

static int work(struct session *session)
{
    struct calibration *out = session->out;
    int status;

    fit_open(&session->fit, &session->runs, &out->data, &out->keys);
    status = begin(session);
    if (!status && session->fit.point_count >= POINTS_LEAST)
        status = fit_all(session);
    keys_restore(&out->keys); /* those that were to be fitted, and were not */
    if (!status)
        status = model_all(session);
    if (!status)
        status = suggest_experiments(&session->fit, &out->identify, out->suggestions,
                                     &out->suggestion_count);
    if (status < 0 && !*session->error)
        fail(session, "the model cannot be run");
    out->runs = session->runs.done;
    fit_close(&session->fit);
    return status;
}

int calibrate_run(const struct calibrate_spec *spec, struct results **files, unsigned int count,
                  struct calibration *out, char *error, size_t size)
{
    struct session session = { .out = out, .error = error, .size = size };
    int status;

    memset(out, 0, sizeof(*out));
    *error = '\0';
    if (keys_read(spec->start, &out->keys, error, size) ||
        keys_choose(&out->keys, spec->fit, error, size) ||
        data_take(files, count, spec->held_out, &out->data, error, size))
        return -1;
    take_device(files[0], &out->keys);
    session.controlled = control_apply(&out->data, &out->keys);
    session.runs =
        (struct runs){ .data = &out->data,
                       .keys = &out->keys,
                       .at_once = spec->at_once,
                       .known = { .data = &out->data, .key_count = out->keys.count } };
    if (runs_open(&session.runs, error, size)) {
        calibrate_free(out);
        return -1;
    }
    status = work(&session);
    runs_close(&session.runs);
    if (status)
        calibrate_free(out);
    return status;
}

void calibrate_free(struct calibration *calibration)
{
    data_free(&calibration->data);
    free(calibration->values);
    if (calibration->modelled)
        results_free(calibration->modelled);
    calibration->values = NULL;
    calibration->modelled = NULL;
}
