/* SPDX-License-Identifier: BSD-2-Clause */
#include "calibrate/leave_out.h"

#include "calibrate/data.h"
#include "calibrate/kept_runs.h"
#include "calibrate/keys.h"
#include "calibrate/runs.h"
#include "calibrate/surrogate.h"
#include "reproduce/origins.h"
#include "results/allocate.h"
#include "sim/adapter/adapter_file.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NEAR         0.08 /* logarithm of the small step of finite differences */
#define SLOWER_MOST  1.5  /* and of the largest that makes things slower, and runs longer */
#define SPREAD_LEAST 1.0  /* a factor of e: few adapters do not tell how far others may be */
#define ADAPTERS_MAX 16
#define REFITS       3     /* rounds of real runs */
#define SWEEPS       4     /* of finite differences, in a fit to all rows */
#define STEPS        8     /* of real runs in each of them */
#define DAMPING      5.0   /* of the first step, in the unit of surrogate_fit() */
#define DAMPING_MOST 1000.0
#define GAIN_LEAST   0.01 /* of the cost: a smaller one is the last */
#define ENTRIES      "_entries" /* of a cache: as good as smooth if they are many */
#define MANY         16
#define SLOWEST_RUN  1800  /* seconds; a run that takes longer hangs */
#define NOTHING_S    1.0   /* ns that stand for a time of 0, */
#define NO_LIMIT_R   100.0 /* GB/s that stand for a rate of 0 */

struct session {
    struct leave_out *out;
    const struct leave_out_spec *spec;
    unsigned int adapter_count; /* of the rows */
    const char *adapters[ADAPTERS_MAX];
    struct origins *origins[ADAPTERS_MAX];
    struct runs runs; /* its directory */
    struct surrogate surrogate;
    char *error; /* the reason, if it fails */
    size_t size;
};

/* ---- what varies ---- */

static int add_adapter(const struct reference *reference, void *context)
{
    struct session *session = context;

    for (unsigned int i = 0; i < session->adapter_count; i++) {
        if (!strcmp(session->adapters[i], reference->adapter))
            return 0;
    }
    if (session->adapter_count == ADAPTERS_MAX)
        return -1;
    session->origins[session->adapter_count] = origins_read(reference->adapter);
    session->adapters[session->adapter_count] = reference->adapter;
    return session->origins[session->adapter_count++] ? 0 : -1;
}

static bool fits_some_row(const struct leave_out *out, const char *origin)
{
    for (unsigned int i = 0; i < out->row_count; i++) {
        if (role_fits(origin, out->rows[i].row))
            return true;
    }
    return false;
}

static bool has_parameter(const struct leave_out *out, const char *key, const char *file)
{
    for (unsigned int i = 0; i < out->parameter_count; i++) {
        if (!strcmp(out->parameters[i].row->key, key) && !strcmp(out->parameters[i].file, file))
            return true;
    }
    return false;
}

static bool is_smooth(const struct parameter_row *row)
{
    return row->unit == UNIT_TIME || row->unit == UNIT_RATE || row->unit == UNIT_REAL;
}

/* A curve by queue pairs tells how many contexts fit: without it, that must not be known. */
static bool varies(const struct session *session, const struct parameter_row *row, double value)
{
    size_t length = strlen(row->key);

    return is_smooth(row) || (session->spec->curves && value >= MANY && length > strlen(ENTRIES) &&
                              !strcmp(row->key + length - strlen(ENTRIES), ENTRIES));
}

/* Counts, sizes and switches are structure, and so is a 0: they stay. */
static void add_parameters(struct session *session, unsigned int adapter,
                           const struct parameters *parameters)
{
    const struct origins *origins = session->origins[adapter];
    struct leave_out *out = session->out;

    for (const struct parameter_row *row = parameter_rows; row->key; row++) {
        const char *file = origins_file(origins, row->key);
        struct leave_out_parameter *parameter;
        double value;

        if (!file || parameter_number(parameters, row->key, &value) || value <= 0 ||
            !varies(session, row, value) || !fits_some_row(out, origins_text(origins, row->key)) ||
            has_parameter(out, row->key, file))
            continue;
        out->parameters =
            allocate_one_more(out->parameters, out->parameter_count, sizeof(*out->parameters));
        parameter = &out->parameters[out->parameter_count++];
        *parameter = (struct leave_out_parameter){ .row = row, .start = value, .value = value };
        snprintf(parameter->file, sizeof(parameter->file), "%s", file);
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

static int find_parameters(struct session *session, char *error, size_t size)
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
    }
    return 0;
}

/* ---- what the parameters would be without the paper ---- */

struct others {
    struct session *session;
    unsigned int *counts;
    double *sums, *squares;
    struct origins *taken[ADAPTERS_MAX * 4];
    unsigned int taken_count;
};

static bool is_related(const struct others *others, const struct origins *origins)
{
    const struct session *session = others->session;

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

    if (!origins || others->taken_count == ADAPTERS_MAX * 4 || is_related(others, origins) ||
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

static int find_priors(struct session *session, char *error, size_t size)
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

bool leave_out_is_rate(const struct paper_row *row)
{
    return strstr(row->fields[FIELD_UNIT], "/s") != NULL;
}

/* The settings of an adapter with the logs of times at x, or NULL. The caller frees them. */
static char *settings_at(const struct session *session, unsigned int adapter, const double *x)
{
    const struct leave_out *out = session->out;
    struct file_text file;
    FILE *text = data_begin_lines(&file);
    char *settings;

    for (unsigned int i = 0; i < out->parameter_count; i++) {
        const struct leave_out_parameter *parameter = &out->parameters[i];
        const char *owner = origins_file(session->origins[adapter], parameter->row->key);
        double value = parameter->value * exp(sign_of(parameter->row) * x[i]);
        char number[64];

        if ((x[i] || parameter->value != parameter->start) && owner &&
            !strcmp(owner, parameter->file))
            fprintf(text, "%s=%s;", parameter->row->key,
                    keys_text(parameter->row,
                              fmin(fmax(value, parameter->row->minimum), parameter->row->maximum),
                              number, sizeof(number)));
    }
    settings = data_take_lines(&file);
    if (*settings) {
        settings[strlen(settings) - 1] = '\0';
        return settings;
    }
    free(settings);
    return NULL;
}

/* One set of values for all parameters, and what rows come to with it. */
struct trial {
    struct variation variation;
    struct variation_setting settings[ADAPTERS_MAX];
};

static void trial_open(const struct session *session, const double *x, struct trial *trial)
{
    *trial = (struct trial){ .variation = { .setting_count = session->adapter_count } };
    for (unsigned int i = 0; i < session->adapter_count; i++) {
        trial->settings[i].adapter = session->adapters[i];
        trial->settings[i].set = settings_at(session, i, x);
    }
}

static void trial_close(const struct session *session, struct trial *trial)
{
    for (unsigned int i = 0; i < session->adapter_count; i++)
        free((char *)trial->settings[i].set);
}

/* jobs_run() reports progress without a context. */
static const char *stage;
static const struct session *running;

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
            stage, done, all, seconds / done * (all - done));
    if (isatty(STDERR_FILENO) && done == all)
        fputs("\r\033[K", stderr);
}

/* A row that a trial does not have is no row that does not move: its trial fails. */
static int take_residuals(struct session *session, const struct evaluation *evaluation,
                          const bool *wanted, double *residuals)
{
    const struct leave_out *out = session->out;

    for (unsigned int k = 0; k < out->row_count; k++) {
        const struct paper_row *row = out->rows[k].row;
        struct outcome outcome;

        if (wanted && !wanted[k])
            continue;
        evaluate_row(evaluation, row, &outcome);
        if (isnan(outcome.error)) {
            const char *set = evaluation->variation->settings[0].set;

            for (unsigned int i = 1; !set && i < session->adapter_count; i++)
                set = evaluation->variation->settings[i].set;
            snprintf(session->error, session->size, "%s cannot be run%s%s: %s",
                     row->fields[FIELD_ID], set ? " with " : "", set ? set : "", outcome.text);
            return -1;
        }
        residuals[k] = log1p(outcome.error / 100) * (leave_out_is_rate(row) ? -1 : 1);
    }
    return 0;
}

/* Runs the trials, with the wanted rows (NULL: all). 'residuals' gets the logs of ours over the
 * paper's time, by trial and row. Returns 0, the number of a signal, or -1 with the reason in
 * session->error. */
static int run_trials(struct session *session, const double *x, unsigned int count,
                      const bool *wanted, double *residuals)
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
        trial_open(session, x + (size_t)i * out->parameter_count, &trials[i]);
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
    }
    out->run_count += jobs.count;
    for (unsigned int i = 0; i < count; i++)
        trial_close(session, &trials[i]);
    free(trials);
    jobs_free(&jobs);
    return status;
}

/* Where to sample a parameter: a small step, and as far as the prior, both on that side. */
static void choose_samples(struct session *session)
{
    const struct leave_out *out = session->out;
    struct surrogate *surrogate = &session->surrogate;

    for (unsigned int i = 0; i < out->parameter_count; i++) {
        double prior = sign_of(out->parameters[i].row) * out->parameters[i].prior;
        double side = prior < 0 ? -1 : 1;

        surrogate->prior[i] = out->all ? -moved(&out->parameters[i]) : prior;
        surrogate->spread[i] = out->all ? SPREAD_LEAST : out->parameters[i].spread;
        surrogate->near_x[i] = side * NEAR;
        surrogate->far_x[i] =
            prior < 0 ? fmin(prior, -2 * NEAR) : fmin(fmax(prior, 2 * NEAR), SLOWER_MOST);
    }
}

/* A fit to all rows takes small steps. A fit without a curve stays where the other curves hold it. */
static unsigned int samples_of(const struct session *session)
{
    return session->spec->all || session->spec->curves ? 1 : 2;
}

static void take_samples(struct session *session, const double *residuals)
{
    const struct leave_out *out = session->out;
    struct surrogate *surrogate = &session->surrogate;
    unsigned int n = out->parameter_count;

    for (unsigned int k = 0; k < out->row_count; k++) {
        surrogate->residual[k] = residuals[k];
        for (unsigned int i = 0; i < n; i++) {
            unsigned int first = samples_of(session) * i + 1;
            double near = expm1(residuals[first * out->row_count + k] - residuals[k]);

            surrogate->near[k * n + i] = near;
            surrogate->far[k * n + i] =
                samples_of(session) > 1
                    ? expm1(residuals[(first + 1) * out->row_count + k] - residuals[k])
                    : near * expm1(surrogate->far_x[i]) / expm1(surrogate->near_x[i]);
        }
    }
}

static int measure(struct session *session)
{
    struct leave_out *out = session->out;
    unsigned int n = out->parameter_count, samples = samples_of(session);
    unsigned int trials = samples * n + 1;
    double *x = allocate_zeroed(((size_t)trials * n + 1) * sizeof(*x));
    double *residuals = allocate_zeroed(((size_t)trials * out->row_count + 1) * sizeof(*x));
    int status;

    choose_samples(session);
    for (unsigned int i = 0; i < n; i++) {
        x[(samples * i + 1) * n + i] = session->surrogate.near_x[i];
        if (samples > 1)
            x[(samples * i + 2) * n + i] = session->surrogate.far_x[i];
    }
    stage = "finite differences";
    status = run_trials(session, x, trials, NULL, residuals);
    if (!status)
        take_samples(session, residuals);
    free(x);
    free(residuals);
    return status;
}

/* ---- fits ---- */

/* Runs the solution with the rows of a curve that was left out: these are judged, nothing else is.
 * Without curves, corrects the surrogate by what the model does there, and fits again. 'real' gets
 * the residuals of the last run. */
static int refit(struct session *session, const char *name, const bool *left_out, double *x,
                 double *real)
{
    struct leave_out *out = session->out;
    struct surrogate *surrogate = &session->surrogate;
    const bool *wanted = session->spec->curves ? left_out : NULL;
    double *kept = allocate_zeroed((out->row_count + 1) * sizeof(*kept));
    int status = 0, rounds = wanted ? 1 : REFITS;

    memcpy(kept, surrogate->residual, out->row_count * sizeof(*kept));
    stage = name;
    for (int round = 0; !status && round < rounds; round++) {
        if (round)
            surrogate_fit(surrogate, left_out, x);
        status = run_trials(session, x, 1, wanted, real);
        for (unsigned int k = 0; !status && !wanted && k < out->row_count; k++)
            surrogate->residual[k] += real[k] - surrogate_residual(surrogate, k, x);
    }
    memcpy(surrogate->residual, kept, out->row_count * sizeof(*kept));
    free(kept);
    return status;
}

bool leave_out_same_curve(const struct leave_out_row *one, const struct leave_out_row *other)
{
    const char *figure = paper_db_text(one->row->spec, "figure");
    const char *others = paper_db_text(other->row->spec, "figure");

    return one == other || (figure && others && !strcmp(figure, others));
}

/* Fits to all rows but row k, or its curve, beginning with the fit to all of them. */
static int fit_without(struct session *session, unsigned int k, const double *all)
{
    const struct leave_out_spec *spec = session->spec;
    struct leave_out *out = session->out;
    const struct leave_out_row *one = &out->rows[k];
    const char *id = one->row->fields[FIELD_ID], *figure = paper_db_text(one->row->spec, "figure");
    size_t size = (out->parameter_count + 1) * sizeof(double);
    bool *left_out = allocate_zeroed((out->row_count + 1) * sizeof(*left_out));
    bool again = spec->curves || data_is_listed(spec->refit, id);
    double *x = allocate_zeroed(size);
    double *real = allocate_zeroed((out->row_count + 1) * sizeof(double));
    int status = 0;

    memcpy(x, all, size);
    for (unsigned int i = 0; i < out->row_count; i++)
        left_out[i] = i == k || (spec->curves && leave_out_same_curve(one, &out->rows[i]));
    surrogate_fit(&session->surrogate, left_out, x);
    for (unsigned int i = 0; i < out->row_count; i++) {
        if (left_out[i]) {
            out->rows[i].seen = surrogate_residual(&session->surrogate, i, all);
            out->rows[i].unseen = surrogate_residual(&session->surrogate, i, x);
        }
    }
    if (again)
        status = refit(session, spec->curves && figure ? figure : id, left_out, x, real);
    for (unsigned int i = 0; i < out->row_count; i++) {
        if (left_out[i])
            out->rows[i].again = again ? real[i] : NAN;
    }
    free(left_out);
    free(x);
    free(real);
    return status;
}

static int fit_without_each(struct session *session)
{
    struct leave_out *out = session->out;
    double *all = allocate_zeroed((out->parameter_count + 1) * sizeof(double));
    int status = 0;

    surrogate_fit(&session->surrogate, NULL, all);
    for (unsigned int k = 0; k < out->row_count; k++)
        out->rows[k].unseen = NAN;
    for (unsigned int k = 0; !status && k < out->row_count; k++) {
        if (isnan(out->rows[k].unseen))
            status = fit_without(session, k, all);
    }
    free(all);
    return status;
}

/* The best values so far of all parameters, and what rows come to with them. */
struct solution {
    double *x, *residuals, cost;
};

static void correct(struct surrogate *surrogate, const struct solution *at)
{
    for (unsigned int k = 0; k < surrogate->row_count; k++)
        surrogate->residual[k] += at->residuals[k] - surrogate_residual(surrogate, k, at->x);
}

/* Steps by the surrogate. One that real runs do not confirm is taken back, and the next is shorter. */
static int descend(struct session *session, struct solution *best)
{
    const struct leave_out *out = session->out;
    struct surrogate *surrogate = &session->surrogate;
    size_t size = out->parameter_count * sizeof(double);
    struct solution next = { .x = allocate_zeroed(size + 1),
                             .residuals = allocate_zeroed((out->row_count + 1) * sizeof(double)) };
    int status = 0;

    surrogate->anchor = best->x;
    surrogate->damping = DAMPING;
    for (int step = 0; !status && step < STEPS && surrogate->damping < DAMPING_MOST; step++) {
        double before = best->cost;

        memcpy(next.x, best->x, size);
        surrogate_fit(surrogate, NULL, next.x);
        status = run_trials(session, next.x, 1, NULL, next.residuals);
        if (status)
            break;
        next.cost = surrogate_cost(surrogate, next.residuals, next.x);
        if (next.cost >= before) {
            surrogate->damping *= 4;
            continue;
        }
        correct(surrogate, &next);
        memcpy(best->x, next.x, size);
        memcpy(best->residuals, next.residuals, out->row_count * sizeof(double));
        best->cost = next.cost;
        surrogate->damping /= 3;
        if (best->cost > before * (1 - GAIN_LEAST))
            break;
    }
    surrogate->damping = 0;
    free(next.x);
    free(next.residuals);
    return status;
}

/* The surrogate is to begin at x. */
static void move_to(struct leave_out *out, double *x)
{
    for (unsigned int i = 0; i < out->parameter_count; i++) {
        out->parameters[i].value *= exp(sign_of(out->parameters[i].row) * x[i]);
        x[i] = 0;
    }
}

static int fit_to_all(struct session *session)
{
    struct leave_out *out = session->out;
    struct surrogate *surrogate = &session->surrogate;
    size_t size = (out->parameter_count + 1) * sizeof(double);
    struct solution best = { .x = allocate_zeroed(size),
                             .residuals = allocate_zeroed((out->row_count + 1) * sizeof(double)) };
    double *errors = allocate_zeroed(size), before;
    int status = 0;

    memcpy(best.residuals, surrogate->residual, out->row_count * sizeof(double));
    best.cost = surrogate_cost(surrogate, best.residuals, best.x);
    for (int sweep = 0; !status && sweep < SWEEPS; sweep++) {
        if (sweep) {
            move_to(out, best.x);
            status = measure(session);
        }
        before = best.cost;
        stage = "fit";
        if (!status)
            status = descend(session, &best);
        if (best.cost > before * (1 - GAIN_LEAST))
            break;
    }
    surrogate_errors(surrogate, best.x, errors);
    for (unsigned int i = 0; i < out->parameter_count; i++) {
        struct leave_out_parameter *parameter = &out->parameters[i];

        parameter->fitted = parameter->value * exp(sign_of(parameter->row) * best.x[i]);
        parameter->error = errors[i];
    }
    for (unsigned int k = 0; k < out->row_count; k++) {
        out->rows[k].seen = out->rows[k].unseen = NAN;
        out->rows[k].again = best.residuals[k];
    }
    free(best.x);
    free(best.residuals);
    free(errors);
    return status;
}

static void take_rows(const struct paper_db *db, struct leave_out *out)
{
    for (unsigned int i = 0; i < db->row_count; i++) {
        enum role role = role_of(&db->rows[i]);

        if (!db->rows[i].selected || paper_db_text(db->rows[i].spec, "not_run") ||
            (role != ROLE_PREDICTED && role != ROLE_FITTED))
            continue;
        out->rows = allocate_one_more(out->rows, out->row_count, sizeof(*out->rows));
        out->rows[out->row_count++] = (struct leave_out_row){ .row = &db->rows[i] };
    }
}

static int check_refit(const struct leave_out *out, const char *list, char *error, size_t size)
{
    for (const char *word = list; word && *word; word += strspn(word, ",")) {
        size_t length = strcspn(word, ",");
        bool found = false;

        for (unsigned int i = 0; i < out->row_count; i++) {
            const char *id = out->rows[i].row->fields[FIELD_ID];

            found |= strlen(id) == length && !strncmp(id, word, length);
        }
        if (!found) {
            snprintf(error, size, "--refit: '%.*s' is none of the values that are left out",
                     (int)length, word);
            return -1;
        }
        word += length;
    }
    return 0;
}

int leave_out_run(const struct paper_db *db, const struct leave_out_spec *spec,
                  struct leave_out *out, char *error, size_t size)
{
    struct session session = { .out = out, .spec = spec, .error = error, .size = size };
    int status = 0;

    *out = (struct leave_out){ .all = spec->all, .curves = spec->curves };
    take_rows(db, out);
    if (out->row_count < 2) {
        snprintf(error, size, "a fit needs at least two values that count");
        status = -1;
    }
    if (!status)
        status = check_refit(out, spec->refit, error, size);
    if (!status)
        status = find_parameters(&session, error, size);
    if (!status)
        status = find_priors(&session, error, size);
    if (!status)
        status = runs_open(&session.runs, error, size);
    surrogate_open(&session.surrogate, out->row_count, out->parameter_count);
    if (!status)
        status = measure(&session);
    for (unsigned int k = 0; !status && k < out->row_count; k++)
        out->rows[k].now = session.surrogate.residual[k];
    if (!status)
        status = spec->all ? fit_to_all(&session) : fit_without_each(&session);
    surrogate_close(&session.surrogate);
    runs_close(&session.runs);
    for (unsigned int i = 0; i < session.adapter_count; i++)
        origins_free(session.origins[i]);
    if (status)
        leave_out_free(out);
    return status;
}

void leave_out_free(struct leave_out *result)
{
    free(result->rows);
    free(result->parameters);
    *result = (struct leave_out){ 0 };
}
