/* SPDX-License-Identifier: BSD-2-Clause */
#include "calibrate/paper_session.h"

#include "calibrate/data.h"
#include "calibrate/kept_runs.h"
#include "calibrate/keys.h"
#include "reproduce/origins.h"
#include "results/allocate.h"
#include "sim/adapter/adapter_file.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NEAR         0.08       /* logarithm of the small step of finite differences */
#define SLOWER_MOST  1.5        /* and of the largest that makes things slower, and runs longer */
#define SPREAD_LEAST 1.0        /* a factor of e: few adapters do not tell how far others may be */
#define ENTRIES      "_entries" /* of a cache: as good as smooth if they are many */
#define MANY         16
#define SLOWEST_RUN  1800  /* seconds; a run that takes longer hangs */
#define NOTHING_S    1.0   /* ns that stand for a time of 0, */
#define NO_LIMIT_R   100.0 /* GB/s that stand for a rate of 0 */

/* ---- what varies ---- */

static int add_adapter(const struct reference *reference, void *context)
{
    struct paper_session *session = context;

    for (unsigned int i = 0; i < session->adapter_count; i++) {
        if (!strcmp(session->adapters[i], reference->adapter))
            return 0;
    }
    if (session->adapter_count == PAPER_ADAPTERS_MAX)
        return -1;
    session->origins[session->adapter_count] = origins_read(reference->adapter);
    session->adapters[session->adapter_count] = reference->adapter;
    return session->origins[session->adapter_count++] ? 0 : -1;
}

static bool fits_some_row(const struct leave_out *out, const char *origin, bool or_shape)
{
    for (unsigned int i = 0; i < out->row_count; i++) {
        if ((or_shape || !out->rows[i].is_shape) && role_fits(origin, out->rows[i].row))
            return true;
    }
    return false;
}

static struct leave_out_parameter *find_parameter(const struct leave_out *out, const char *key,
                                                  const char *file)
{
    for (unsigned int i = 0; i < out->parameter_count; i++) {
        if (!strcmp(out->parameters[i].row->key, key) && !strcmp(out->parameters[i].file, file))
            return &out->parameters[i];
    }
    for (unsigned int i = 0; i < out->choice_count; i++) {
        if (!strcmp(out->choices[i].number.row->key, key) &&
            !strcmp(out->choices[i].number.file, file))
            return &out->choices[i].number;
    }
    return NULL;
}

static bool is_smooth(const struct parameter_row *row)
{
    return row->unit == UNIT_TIME || row->unit == UNIT_RATE || row->unit == UNIT_REAL;
}

/* A curve by queue pairs tells how many contexts fit: without it, that must not be known. */
static bool varies(const struct paper_session *session, const struct parameter_row *row,
                   double value)
{
    size_t length = strlen(row->key);

    return is_smooth(row) || (session->spec->curves && value >= MANY && length > strlen(ENTRIES) &&
                              !strcmp(row->key + length - strlen(ENTRIES), ENTRIES));
}

static struct leave_out_parameter *new_parameter(struct leave_out *out)
{
    out->parameters =
        allocate_one_more(out->parameters, out->parameter_count, sizeof(*out->parameters));
    return &out->parameters[out->parameter_count++];
}

static struct leave_out_parameter *new_choice(struct leave_out *out)
{
    struct leave_out_choice *choice;

    out->choices = allocate_one_more(out->choices, out->choice_count, sizeof(*out->choices));
    choice = &out->choices[out->choice_count++];
    *choice = (struct leave_out_choice){ 0 };
    return &choice->number;
}

static int read_number(const struct parameters *parameters, const struct parameter_row *row,
                       double *value)
{
    if (row->unit != UNIT_YES_NO)
        return parameter_number(parameters, row->key, value);
    *value = *(const bool *)((const char *)parameters + row->offset);
    return 0;
}

/* Counts, sizes and switches are structure, and so is a 0: they stay, or are chosen among a few.
 * Shapes may be all that tells about them. */
static void add_parameters(struct paper_session *session, unsigned int adapter,
                           const struct parameters *parameters)
{
    const struct origins *origins = session->origins[adapter];
    struct leave_out *out = session->out;

    for (const struct parameter_row *row = parameter_rows; row->key; row++) {
        const char *file = origins_file(origins, row->key);
        struct leave_out_parameter *parameter;
        double value;
        bool chosen;

        if (!file || read_number(parameters, row, &value) || find_parameter(out, row->key, file))
            continue;
        chosen = value <= 0 || !varies(session, row, value);
        if ((chosen && !out->all) || !fits_some_row(out, origins_text(origins, row->key), chosen))
            continue;
        parameter = chosen ? new_choice(out) : new_parameter(out);
        *parameter = (struct leave_out_parameter){ .row = row, .start = value, .value = value };
        snprintf(parameter->file, sizeof(parameter->file), "%s", file);
    }
}

static bool has_follower(const struct leave_out_parameter *parameter,
                         const struct parameter_row *row)
{
    for (unsigned int i = 0; i < parameter->follower_count; i++) {
        if (parameter->followers[i] == row)
            return true;
    }
    return false;
}

/* An adapter may set a number itself that follows another one in the file that it is based on: only
 * numbers of one file follow each other. */
static void add_followers(struct paper_session *session, unsigned int adapter)
{
    const struct origins *origins = session->origins[adapter];

    for (const struct parameter_row *row = parameter_rows; row->key; row++) {
        const char *file = origins_file(origins, row->key);
        const char *leader = file ? origins_leader(origins, row->key) : NULL;
        struct leave_out_parameter *parameter =
            leader ? find_parameter(session->out, leader, file) : NULL;

        if (parameter && parameter->follower_count < FOLLOWERS_MAX && !has_follower(parameter, row))
            parameter->followers[parameter->follower_count++] = row;
    }
}

static int read_adapter(const char *adapter, struct parameters *out, char *error, size_t size)
{
    char path[PATH_MAX];

    return parameters_find(adapter, path, sizeof(path), error, size) ||
                   parameters_read(path, NULL, out, error, size)
               ? -1
               : 0;
}

static int find_parameters(struct paper_session *session, char *error, size_t size)
{
    struct leave_out *out = session->out;

    for (unsigned int i = 0; i < out->row_count; i++) {
        if (paper_db_visit_references(out->rows[i].row, add_adapter, session, NULL, 0)) {
            snprintf(error, size, "%s: its adapters cannot be read",
                     out->rows[i].row->fields[FIELD_ID]);
            return -1;
        }
    }
    for (unsigned int i = 0; i < session->adapter_count; i++) {
        struct parameters parameters;

        if (read_adapter(session->adapters[i], &parameters, error, size))
            return -1;
        add_parameters(session, i, &parameters);
        add_followers(session, i);
    }
    return 0;
}

/* ---- what the parameters would be without the paper ---- */

struct others {
    struct paper_session *session;
    unsigned int *counts;
    double *sums, *squares;
    struct origins *taken[PAPER_ADAPTERS_MAX * 4];
    unsigned int taken_count;
};

static bool is_related(const struct others *others, const struct origins *origins)
{
    const struct paper_session *session = others->session;

    for (unsigned int i = 0; i < session->adapter_count; i++) {
        if (origins_related(origins, session->origins[i]))
            return true;
    }
    for (unsigned int i = 0; i < others->taken_count; i++) {
        if (origins_related(origins, others->taken[i]))
            return true;
    }
    return false;
}

/* One adapter of each family counts, and none of the paper's own. */
static void take_other(const char *name, void *context)
{
    struct others *others = context;
    struct leave_out *out = others->session->out;
    struct origins *origins = origins_read(name);
    struct parameters parameters;
    char error[512];

    if (!origins || others->taken_count == PAPER_ADAPTERS_MAX * 4 || is_related(others, origins) ||
        read_adapter(name, &parameters, error, sizeof(error))) {
        origins_free(origins);
        return;
    }
    others->taken[others->taken_count++] = origins;
    for (unsigned int i = 0; i < out->parameter_count; i++) {
        const struct leave_out_parameter *parameter = &out->parameters[i];
        double value = 0, ratio;

        parameter_number(&parameters, parameter->row->key, &value);
        if (value <= 0)
            value = parameter->row->unit == UNIT_RATE ? NO_LIMIT_R : NOTHING_S;
        ratio = log(value / parameter->value);
        others->counts[i]++;
        others->sums[i] += ratio;
        others->squares[i] += ratio * ratio;
    }
}

static int find_priors(struct paper_session *session, char *error, size_t size)
{
    struct leave_out *out = session->out;
    unsigned int count = out->parameter_count;
    struct others others = { .session = session,
                             .counts = allocate_zeroed((count + 1) * sizeof(unsigned int)),
                             .sums = allocate_zeroed((count + 1) * sizeof(double)),
                             .squares = allocate_zeroed((count + 1) * sizeof(double)) };
    int status = adapter_list(take_other, &others, error, size);

    for (unsigned int i = 0; !status && i < count; i++) {
        double all = fmax(others.counts[i], 1), mean = others.sums[i] / all;

        out->parameters[i].prior = mean;
        /* Where others are far away, they tell as little as if they differed from each other. */
        out->parameters[i].spread = fmax(fmax(SPREAD_LEAST, fabs(mean)),
                                         sqrt(fmax(0, others.squares[i] / all - mean * mean)));
    }
    for (unsigned int i = 0; i < others.taken_count; i++)
        origins_free(others.taken[i]);
    free(others.counts);
    free(others.sums);
    free(others.squares);
    return status;
}

/* ---- runs ---- */

/* Rates are inverse times. */
static double sign_of(const struct parameter_row *row)
{
    return row->unit == UNIT_TIME ? 1 : -1;
}

/* The log of its time at the surrogate's point over that in the file. */
static double moved(const struct leave_out_parameter *parameter)
{
    return sign_of(parameter->row) * log(parameter->value / parameter->start);
}

double paper_session_value(const struct leave_out_parameter *parameter, double x)
{
    return parameter->value * exp(sign_of(parameter->row) * x);
}

static void put_setting(const struct origins *origins, const struct leave_out_parameter *parameter,
                        const struct parameter_row *row, double value, FILE *text)
{
    const char *owner = origins_file(origins, row->key);
    char number[64];

    if (row->unit != UNIT_YES_NO)
        value = fmin(fmax(value, row->minimum), row->maximum);
    if (owner && !strcmp(owner, parameter->file))
        fprintf(text, "%s=%s;", row->key, keys_text(row, value, number, sizeof(number)));
}

static void put_settings(const struct origins *origins, const struct leave_out_parameter *parameter,
                         double value, FILE *text)
{
    if (value == parameter->start)
        return;
    put_setting(origins, parameter, parameter->row, value, text);
    for (unsigned int k = 0; k < parameter->follower_count; k++)
        put_setting(origins, parameter, parameter->followers[k], value, text);
}

/* The settings of an adapter in a trial, or NULL. The caller frees them. */
static char *settings_of(const struct paper_session *session, unsigned int adapter,
                         const struct paper_trial *trial)
{
    const struct leave_out *out = session->out;
    const struct origins *origins = session->origins[adapter];
    struct file_text file;
    FILE *text = data_begin_lines(&file);
    char *settings;

    for (unsigned int i = 0; i < out->parameter_count; i++) {
        const struct leave_out_parameter *parameter = &out->parameters[i];

        put_settings(origins, parameter, paper_session_value(parameter, trial->x[i]), text);
    }
    for (unsigned int i = 0; i < out->choice_count; i++) {
        const struct leave_out_parameter *number = &out->choices[i].number;

        put_settings(origins, number, trial->number == number ? trial->value : number->value, text);
    }
    settings = data_take_lines(&file);
    if (*settings) {
        settings[strlen(settings) - 1] = '\0';
        return settings;
    }
    free(settings);
    return NULL;
}

/* The adapters of a trial. */
struct trial {
    struct variation variation;
    struct variation_setting settings[PAPER_ADAPTERS_MAX];
};

static void trial_open(const struct paper_session *session, const struct paper_trial *values,
                       struct trial *trial)
{
    *trial = (struct trial){ .variation = { .setting_count = session->adapter_count } };
    for (unsigned int i = 0; i < session->adapter_count; i++) {
        trial->settings[i].adapter = session->adapters[i];
        trial->settings[i].set = settings_of(session, i, values);
    }
}

static void trial_close(const struct paper_session *session, struct trial *trial)
{
    for (unsigned int i = 0; i < session->adapter_count; i++)
        free((char *)trial->settings[i].set);
}

/* jobs_run() reports progress without a context. */
static const struct paper_session *running;

static void show_progress(unsigned int done, unsigned int all, double seconds,
                          const struct job *last)
{
    const char *keep = running->spec->keep;

    if (last->failure)
        fprintf(stderr, "%s failed: %s\n", last->name, last->failure);
    else if (keep && kept_runs_put(keep, running->runs.directory, last))
        fprintf(stderr, "%s: %s\n", keep, strerror(errno));
    if (!isatty(STDERR_FILENO) && done % 50 && done < all)
        return;
    fprintf(stderr,
            isatty(STDERR_FILENO) ? "\r\033[K%s: [%u/%u], about %.0f s left"
                                  : "%s: [%u/%u], about %.0f s left\n",
            running->stage, done, all, seconds / done * (all - done));
    if (isatty(STDERR_FILENO) && done == all)
        fputs("\r\033[K", stderr);
}

static void explain(struct paper_session *session, const struct evaluation *evaluation,
                    const struct paper_row *row, const struct outcome *outcome)
{
    const char *set = evaluation->variation->settings[0].set;

    for (unsigned int i = 1; !set && i < session->adapter_count; i++)
        set = evaluation->variation->settings[i].set;
    snprintf(session->error, session->size, "%s cannot be run%s%s: %s", row->fields[FIELD_ID],
             set ? " with " : "", set ? set : "", outcome->text);
}

/* Returns -1 if the trial does not have all rows. */
static int take_residuals(struct paper_session *session, const struct evaluation *evaluation,
                          const bool *wanted, double *residuals)
{
    const struct leave_out *out = session->out;
    int status = 0;

    for (unsigned int k = 0; k < out->row_count; k++) {
        const struct paper_row *row = out->rows[k].row;
        struct outcome outcome;

        if (wanted && !wanted[k])
            continue;
        evaluate_row(evaluation, row, &outcome);
        if (!status && isnan(out->rows[k].is_shape ? outcome.excess : outcome.error)) {
            explain(session, evaluation, row, &outcome);
            status = -1;
        }
        residuals[k] = out->rows[k].is_shape
                           ? outcome.excess
                           : log1p(outcome.error / 100) * (leave_out_is_rate(row) ? -1 : 1);
    }
    return status;
}

/* A row that a trial does not have is no row that does not move. */
static int run_trials(struct paper_session *session, const struct paper_trial *values,
                      unsigned int count, const bool *wanted, bool all_must_run, double *residuals)
{
    struct leave_out *out = session->out;
    struct trial *trials = allocate_zeroed(count * sizeof(*trials));
    struct jobs_spec spec = { .directory = session->runs.directory,
                              .at_once = session->spec->at_once,
                              .limit = SLOWEST_RUN,
                              .progress = show_progress };
    struct evaluation evaluation = { .quick = true, .tolerance = 5 };
    struct jobs jobs = { 0 };
    int status;

    evaluation.jobs = &jobs;
    for (unsigned int i = 0; i < count; i++) {
        trial_open(session, &values[i], &trials[i]);
        trials[i].variation.settings = trials[i].settings;
        evaluation.variation = &trials[i].variation;
        for (unsigned int k = 0; k < out->row_count; k++) {
            if (!wanted || wanted[k])
                reproduce_add_row_jobs(out->rows[k].row, &evaluation, &jobs);
        }
    }
    running = session;
    if (session->spec->keep)
        kept_runs_take(session->spec->keep, &jobs);
    status = jobs_run(&jobs, &spec);
    for (unsigned int i = 0; !status && i < count; i++) {
        evaluation.variation = &trials[i].variation;
        status =
            take_residuals(session, &evaluation, wanted, residuals + (size_t)i * out->row_count);
        status = all_must_run ? status : 0;
    }
    out->run_count += jobs.count;
    for (unsigned int i = 0; i < count; i++)
        trial_close(session, &trials[i]);
    free(trials);
    jobs_free(&jobs);
    return status;
}

int paper_session_run(struct paper_session *session, const double *x, unsigned int count,
                      const bool *wanted, double *residuals)
{
    struct paper_trial *trials = allocate_zeroed(count * sizeof(*trials));
    int status;

    for (unsigned int i = 0; i < count; i++)
        trials[i].x = x + (size_t)i * session->out->parameter_count;
    status = run_trials(session, trials, count, wanted, true, residuals);
    free(trials);
    return status;
}

int paper_session_try(struct paper_session *session, const struct paper_trial *trials,
                      unsigned int count, double *residuals)
{
    return run_trials(session, trials, count, NULL, false, residuals);
}

/* Where to sample a parameter: a small step, and as far as the prior, both on that side. */
static void choose_samples(const struct paper_session *session, struct surrogate *surrogate)
{
    const struct leave_out *out = session->out;

    for (unsigned int i = 0; i < out->parameter_count; i++) {
        const struct leave_out_parameter *parameter = &out->parameters[i];
        double others =
            sign_of(parameter->row) * parameter->prior - (out->all ? 0 : moved(parameter));

        surrogate->prior[i] = out->all ? -moved(parameter) : others;
        surrogate->spread[i] = out->all ? SPREAD_LEAST : parameter->spread;
        surrogate->near_x[i] = others < 0 ? -NEAR : NEAR;
        surrogate->far_x[i] =
            others < 0 ? fmin(others, -2 * NEAR) : fmin(fmax(others, 2 * NEAR), SLOWER_MOST);
    }
}

static void take_samples(const double *residuals, unsigned int samples, struct surrogate *surrogate)
{
    unsigned int rows = surrogate->row_count, n = surrogate->parameter_count;

    for (unsigned int k = 0; k < rows; k++) {
        surrogate->residual[k] = residuals[k];
        for (unsigned int i = 0; i < n; i++) {
            unsigned int first = samples * i + 1;
            double near = expm1(residuals[first * rows + k] - residuals[k]);

            surrogate->near[k * n + i] = near;
            surrogate->far[k * n + i] =
                samples > 1 ? expm1(residuals[(first + 1) * rows + k] - residuals[k])
                            : near * expm1(surrogate->far_x[i]) / expm1(surrogate->near_x[i]);
        }
    }
}

int paper_session_sample(struct paper_session *session, unsigned int samples, const bool *wanted,
                         struct surrogate *surrogate)
{
    unsigned int n = surrogate->parameter_count, trials = samples * n + 1;
    double *x = allocate_zeroed(((size_t)trials * n + 1) * sizeof(*x));
    double *residuals = allocate_zeroed(((size_t)trials * surrogate->row_count + 1) * sizeof(*x));
    int status;

    choose_samples(session, surrogate);
    for (unsigned int i = 0; i < n; i++) {
        x[(samples * i + 1) * n + i] = surrogate->near_x[i];
        if (samples > 1)
            x[(samples * i + 2) * n + i] = surrogate->far_x[i];
    }
    status = paper_session_run(session, x, trials, wanted, residuals);
    if (!status)
        take_samples(residuals, samples, surrogate);
    free(x);
    free(residuals);
    return status;
}

void paper_session_move(struct paper_session *session, double *x)
{
    for (unsigned int i = 0; i < session->out->parameter_count; i++) {
        struct leave_out_parameter *parameter = &session->out->parameters[i];

        parameter->value = paper_session_value(parameter, x[i]);
        x[i] = 0;
    }
}

int paper_session_open(struct paper_session *session, struct leave_out *out,
                       const struct leave_out_spec *spec, char *error, size_t size)
{
    *session = (struct paper_session){
        .out = out, .spec = spec, .stage = "finite differences", .error = error, .size = size
    };
    return find_parameters(session, error, size) || find_priors(session, error, size) ||
                   runs_open(&session->runs, error, size)
               ? -1
               : 0;
}

void paper_session_close(struct paper_session *session)
{
    runs_close(&session->runs);
    for (unsigned int i = 0; i < session->adapter_count; i++)
        origins_free(session->origins[i]);
}
