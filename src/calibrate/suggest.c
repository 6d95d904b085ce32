/* SPDX-License-Identifier: BSD-2-Clause */
#include "calibrate/suggest.h"

#include "bench/session/experiments.h"
#include "calibrate/control.h"
#include "results/allocate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TARGETS_MAX 6    /* that are tried by runs */
#define FAR         0.4  /* how far a key is moved: a factor of 1.5 */
#define TELL        0.01 /* least relative change that can be measured */

static bool is_measured(const struct data *data, const struct experiment *experiment)
{
    for (unsigned int i = 0; i < data->experiment_count; i++) {
        const struct data_experiment *entry = &data->experiments[i];

        if (entry->experiment == experiment && entry->role != DATA_HELD_OUT && entry->count)
            return true;
    }
    return false;
}

/* Experiments with several nodes are left out: under load a cache that thrashes makes them endless.
 */
static bool is_candidate(const struct data *data, const struct experiment *experiment)
{
    return !data_not_modelled(experiment) && !data_costly(experiment) && !experiment->count &&
           experiment->ranks <= 2 && !is_measured(data, experiment);
}

static char *candidate_lines(const struct data *data)
{
    struct file_text file;
    FILE *out = data_begin_lines(&file);

    for_each_experiment (row) {
        if (is_candidate(data, row))
            data_put_quick_line(row, out);
    }
    return data_take_lines(&file);
}

/* The root mean square of the relative changes in an experiment's points. */
static double change_of(const struct experiment_result *a, const struct experiment_result *b)
{
    double sum = 0;
    unsigned int count = 0;

    for (unsigned int i = 0; i < a->count; i++) {
        const struct series *series = i < b->count ? &b->series[i] : NULL;

        for (unsigned int k = 0; series && k < a->series[i].count && k < series->count; k++) {
            double x = a->series[i].points[k].y.median, y = series->points[k].y.median;

            if (!(x > 0) || !(y > 0))
                continue;
            sum += pow(log(y / x), 2);
            count++;
        }
    }
    return count ? sqrt(sum / count) : 0;
}

/* Chooses what to try: each combination, then single keys. */
static unsigned int choose_targets(const struct fit *fit, const struct identify *identify,
                                   struct suggestion *out)
{
    unsigned int count = 0;

    for (unsigned int i = 0; i < identify->count && count < TARGETS_MAX; i++)
        out[count++] = (struct suggestion){ .group = i + 1 };
    for (unsigned int i = 0; i < fit->keys->count && count < TARGETS_MAX; i++) {
        const struct key *key = &fit->keys->list[i];

        if (key->origin == KEY_UNDETERMINED && key->variation == KEY_SMOOTH &&
            !control_experiment_of(key->row->key))
            out[count++] = (struct suggestion){ .key = i };
    }
    return count;
}

static unsigned int add_control(const struct fit *fit, struct suggestion *out, unsigned int count)
{
    for (unsigned int i = 0; i < fit->keys->count && count < SUGGESTIONS_MAX; i++) {
        const struct key *key = &fit->keys->list[i];
        const char *name = control_experiment_of(key->row->key);

        if (key->origin == KEY_UNDETERMINED && name)
            out[count++] = (struct suggestion){ .key = i, .experiment = experiment_find(name) };
    }
    return count;
}

static void move(const struct fit *fit, const struct identify *identify,
                 const struct suggestion *target, double *values)
{
    fit_values(fit, values);
    if (!target->group) {
        values[target->key] =
            keys_valid(&fit->keys->list[target->key], values[target->key] * exp(FAR));
        return;
    }
    for (unsigned int i = 0; i < identify->groups[target->group - 1].count; i++) {
        const struct identify_group *group = &identify->groups[target->group - 1];
        unsigned int key = group->keys[i];

        values[key] =
            keys_valid(&fit->keys->list[key], values[key] * exp(FAR * group->direction[i]));
    }
}

static void take(const struct results *still, const struct results *moved, struct suggestion *out)
{
    for (unsigned int i = 0; moved && i < still->count && i < moved->count; i++) {
        double effect = change_of(&still->experiments[i], &moved->experiments[i]);

        if (effect > TELL && effect > out->effect) {
            out->effect = effect;
            out->experiment = experiment_find(still->experiments[i].name);
        }
    }
}

int suggest_experiments(struct fit *fit, const struct identify *identify, struct suggestion *out,
                        unsigned int *count)
{
    unsigned int targets = choose_targets(fit, identify, out), size = fit->keys->count;
    double *values = allocate_zeroed((TARGETS_MAX + 1) * size * sizeof(*values));
    const double *trials[TARGETS_MAX + 1] = { values };
    struct results *results[TARGETS_MAX + 1] = { NULL };
    char *lines = candidate_lines(fit->data);
    int status = 0;

    fit_values(fit, values);
    for (unsigned int i = 0; i < targets; i++) {
        trials[i + 1] = values + (size_t)(i + 1) * size;
        move(fit, identify, &out[i], values + (size_t)(i + 1) * size);
    }
    if (targets && *lines)
        status = runs_sweep(fit->runs, lines, trials, targets + 1, "what to measure next", results);
    for (unsigned int i = 0; results[0] && i < targets; i++)
        take(results[0], results[i + 1], &out[i]);
    for (unsigned int i = 0; i <= targets; i++) {
        if (results[i])
            results_free(results[i]);
    }
    *count = status ? 0 : add_control(fit, out, targets);
    free(values);
    free(lines);
    return status;
}
