/* SPDX-License-Identifier: BSD-2-Clause */
#include "evaluate.h"
#include "results/allocate.h"
#include "util/option.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct values {
    unsigned int count;
    double list[NUMBERS_MAX];
    double x[NUMBERS_MAX];
};

const char *evaluate_verdict_name(enum verdict verdict)
{
    static const char *const names[VERDICTS] = { "matches", "misses", "not run" };

    return names[verdict];
}

void evaluate_apply_variation(const struct variation *variation, const char *adapter,
                              const char *set, const char **adapter_out, char **set_out)
{
    const char *changed = variation->set;
    bool both;

    for (unsigned int i = 0; i < variation->setting_count; i++) {
        if (!strcmp(variation->settings[i].adapter, adapter))
            changed = variation->settings[i].set;
    }
    both = set && changed;
    *adapter_out = variation->adapter ? variation->adapter : adapter;
    *set_out = NULL;
    if (both && asprintf(set_out, "%s;%s", set, changed) < 0)
        abort();
    if (!both)
        *set_out = allocate_text(set ? set : changed);
}

/* Multiplies the numbers behind --warmup and --iterations. */
char *evaluate_run_line(const struct evaluation *evaluation, const struct paper *paper,
                        const char *run)
{
    char *line = paper_db_run_line(paper, run, evaluation->quick), *rest = line, *word;
    char *longer = NULL, *before;
    bool count = false;

    if (!evaluation->variation->longer)
        return line;
    while ((word = strsep(&rest, " "))) {
        char number[32];

        snprintf(number, sizeof(number), "%lu",
                 strtoul(word, NULL, 10) * evaluation->variation->longer);
        before = longer;
        if (asprintf(&longer, "%s%s%s", before ? before : "", before ? " " : "",
                     count ? number : word) < 0)
            abort();
        count = !strcmp(word, "--warmup") || !strcmp(word, "--iterations");
        free(before);
    }
    free(line);
    return longer;
}

const struct job *evaluate_job(const struct evaluation *evaluation, const struct paper *paper,
                               const char *run, const char *adapter, const char *set)
{
    char *line = evaluate_run_line(evaluation, paper, run), *whole_set;
    const char *name;
    const struct job *job;

    evaluate_apply_variation(evaluation->variation, adapter, set, &name, &whole_set);
    job = jobs_find(evaluation->jobs, name, whole_set, line);
    free(whole_set);
    free(line);
    return job;
}

static int __attribute__((format(printf, 2, 3))) say(struct outcome *out, const char *format, ...)
{
    size_t used = strlen(out->text);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(out->text + used, sizeof(out->text) - used, format, arguments);
    va_end(arguments);
    return -1;
}

static void __attribute__((format(printf, 2, 3)))
say_criterion(struct outcome *out, const char *format, ...)
{
    size_t used = strlen(out->criterion);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(out->criterion + used, sizeof(out->criterion) - used, format, arguments);
    va_end(arguments);
}

/* Returns the series that the reference names, or NULL with the reason in out->text. */
static const struct series *series_of(const struct job *job, const struct reference *reference,
                                      struct outcome *out)
{
    const struct experiment_result *experiment;
    const struct series *series;

    if (!job->results) {
        say(out, "%s", job->failure);
        return NULL;
    }
    if (!job->results->count) {
        say(out, "%s.json has no experiment", job->name);
        return NULL;
    }
    experiment = &job->results->experiments[0];
    series = result_find(experiment, reference->series, reference->quantity);
    if (experiment->skipped)
        say(out, "%s was skipped: %s", experiment->name, experiment->skipped);
    else if (!series)
        say(out, "%s has no curve '%s' of %s", experiment->name, reference->series,
            reference->quantity);
    return series;
}

static int add_points(const struct series *series, const struct reference *reference,
                      struct values *values, struct outcome *out)
{
    unsigned int before = values->count;

    for (unsigned int i = 0; i < series->count; i++) {
        if (!reference->all && series->points[i].x != reference->x)
            continue;
        if (values->count == NUMBERS_MAX)
            return say(out, "more than %d points", NUMBERS_MAX);
        values->x[values->count] = series->points[i].x;
        values->list[values->count++] = series->points[i].y.median;
    }
    if (values->count == before)
        return say(out, "'%s' has no point at %.0f", series->name, reference->x);
    return 0;
}

static int add_values(const struct evaluation *evaluation, const struct paper_row *row,
                      const json_t *what, struct values *values, struct outcome *out)
{
    struct reference reference;
    const struct series *series;
    const struct job *job;
    char error[256];

    if (paper_db_reference_read(row, what, &reference, error, sizeof(error)))
        return say(out, "%s", error);
    job = evaluate_job(evaluation, row->paper, reference.run, reference.adapter, reference.set);
    if (!job)
        return say(out, "run %s on %s was not requested", reference.run, reference.adapter);
    series = series_of(job, &reference, out);
    return series ? add_points(series, &reference, values, out) : -1;
}

static int gather(const struct evaluation *evaluation, const struct paper_row *row,
                  const json_t *list, struct values *values, struct outcome *out)
{
    const json_t *what;
    size_t i;

    values->count = 0;
    json_array_foreach(list, i, what)
    {
        if (add_values(evaluation, row, what, values, out))
            return -1;
    }
    return values->count ? 0 : say(out, "a check without values");
}

static double smallest(const struct values *values)
{
    double found = INFINITY;

    for (unsigned int i = 0; i < values->count; i++)
        found = fmin(found, values->list[i]);
    return found;
}

static double largest(const struct values *values)
{
    double found = -INFINITY;

    for (unsigned int i = 0; i < values->count; i++)
        found = fmax(found, values->list[i]);
    return found;
}

/* The largest value is at most 'share' above the smallest. */
static bool is_flat(double share, const struct values *of, const struct values *than)
{
    return largest(of) <= smallest(of) * (1 + share);
}

/* Each value is at least 'share' above the previous one, and the last is above the first. */
static bool rises(double share, const struct values *of, const struct values *than)
{
    for (unsigned int i = 1; i < of->count; i++) {
        if (of->list[i] < of->list[i - 1] * (1 + share))
            return false;
    }
    return of->list[of->count - 1] > of->list[0];
}

static bool is_below(double factor, const struct values *of, const struct values *than)
{
    return largest(of) < factor * smallest(than);
}

static bool is_above(double factor, const struct values *of, const struct values *than)
{
    return smallest(of) > factor * largest(than);
}

static double spread(const struct values *of, const struct values *than)
{
    return largest(of) / smallest(of);
}

static double least_rise(const struct values *of, const struct values *than)
{
    double least = INFINITY;

    for (unsigned int i = 1; i < of->count; i++)
        least = fmin(least, of->list[i] / of->list[i - 1]);
    return least;
}

static double largest_ratio(const struct values *of, const struct values *than)
{
    return largest(of) / smallest(than);
}

static double smallest_ratio(const struct values *of, const struct values *than)
{
    return smallest(of) / largest(than);
}

static const struct shape {
    const char *name;
    bool compares; /* with the values of "than" */
    bool (*matches)(double number, const struct values *of, const struct values *than);
    const char *condition; /* in words */
    double added;          /* to the number, for the ratio in those words */
    bool least;            /* the number is the least ratio that matches, not the largest */
    double (*ratio)(const struct values *of, const struct values *than);
} shapes[] = {
    { "flat", false, is_flat, "the largest is at most %.4g times the smallest", 1, false, spread },
    { "rises", false, rises, "each is at least %.4g times the one before", 1, true, least_rise },
    { "below", true, is_below, "less than %.4g times", 0, false, largest_ratio },
    { "above", true, is_above, "more than %.4g times", 0, true, smallest_ratio },
};

static const struct shape *shape_of(const json_t *check)
{
    for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
        if (json_is_number(json_object_get(check, shapes[i].name)))
            return &shapes[i];
    }
    return NULL;
}

static void say_point(struct outcome *out, const struct paper_row *row, const json_t *what)
{
    struct reference reference;
    char error[256], x[32];

    if (paper_db_reference_read(row, what, &reference, error, sizeof(error)))
        return;
    say_criterion(out, "%s", reference.series);
    if (!reference.all)
        say_criterion(out, " at %s", option_number_text((uint64_t)reference.x, x, sizeof(x)));
    if (paper_db_text(what, "adapter"))
        say_criterion(out, " on %s", reference.adapter);
    if (paper_db_text(what, "set"))
        say_criterion(out, " with %s", reference.set);
    if (paper_db_text(what, "run"))
        say_criterion(out, " of %s", reference.run);
}

static void say_points(struct outcome *out, const struct paper_row *row, const json_t *list)
{
    const json_t *what;
    size_t i;

    json_array_foreach(list, i, what)
    {
        say_criterion(out, i ? ", " : "");
        say_point(out, row, what);
    }
}

static void say_condition(struct outcome *out, const struct paper_row *row, const json_t *check,
                          const struct shape *shape, double number)
{
    say_criterion(out, *out->criterion ? "; " : "");
    say_points(out, row, json_object_get(check, "of"));
    say_criterion(out, ": ");
    say_criterion(out, shape->condition, number + shape->added);
    if (shape->compares) {
        say_criterion(out, " ");
        say_points(out, row, json_object_get(check, "than"));
    }
}

static void say_values(struct outcome *out, const struct values *values)
{
    for (unsigned int i = 0; i < values->count; i++)
        say(out, "%s%.4g", i ? ", " : "", values->list[i]);
}

static double excess_of(const struct shape *shape, double number, double ratio)
{
    double excess = log(ratio / (number + shape->added));

    return shape->least ? -excess : excess;
}

/* Appends the values of the check to out->text, or why there are none. */
static int evaluate_check(const struct evaluation *evaluation, const struct paper_row *row,
                          const json_t *check, struct outcome *out)
{
    const struct shape *shape = shape_of(check);
    struct values of, than = { 0 };
    double number, ratio;

    if (!shape)
        return say(out, "unknown kind of check");
    number = json_number_value(json_object_get(check, shape->name));
    say_condition(out, row, check, shape, number);
    if (gather(evaluation, row, json_object_get(check, "of"), &of, out) ||
        (shape->compares && gather(evaluation, row, json_object_get(check, "than"), &than, out)))
        return -1;
    ratio = shape->ratio(&of, &than);
    say_criterion(out, " (measured: %.4g)", ratio);
    out->excess = fmax(out->excess, excess_of(shape, number, ratio));
    if (!shape->matches(number, &of, &than)) {
        out->verdict = VERDICT_MISSES;
        say(out, "not %s: ", shape->name);
    }
    say_values(out, &of);
    if (shape->compares) {
        say(out, " against ");
        say_values(out, &than);
    }
    return 0;
}

/* out->text gets the values of all checks, or only the text of the first that did not match. */
static int evaluate_shape(const struct evaluation *evaluation, const struct paper_row *row,
                          struct outcome *out)
{
    struct outcome said = { 0 };
    const json_t *check;
    size_t i;

    out->verdict = VERDICT_MATCHES;
    json_array_foreach(json_object_get(row->spec, "checks"), i, check)
    {
        bool matched = out->verdict == VERDICT_MATCHES;

        out->text[0] = '\0';
        if (evaluate_check(evaluation, row, check, out)) {
            out->excess = NAN;
            return -1;
        }
        if (matched && out->verdict != VERDICT_MATCHES)
            said.text[0] = '\0';
        if (matched)
            say(&said, "%s%s", *said.text ? "; " : "", out->text);
    }
    memcpy(out->text, said.text, sizeof(out->text));
    return 0;
}

/* Returns the largest x at which the curve still reaches 'share' of its peak. */
static double last_x_at_share(const struct values *values, double share)
{
    double found = -INFINITY;

    for (unsigned int i = 0; i < values->count; i++) {
        if (values->list[i] >= share * largest(values))
            found = fmax(found, values->x[i]);
    }
    return found;
}

/* Computes the row's value: a point, the largest point of a curve, or by how many percent it is
 * over or under another. */
static int compute(const struct evaluation *evaluation, const struct paper_row *row,
                   struct outcome *out)
{
    const json_t *over = json_object_get(row->spec, "over");
    const json_t *under = json_object_get(row->spec, "under");
    const json_t *scale = json_object_get(row->spec, "scale");
    const json_t *peak_share = json_object_get(row->spec, "peak_share");
    struct values mine = { 0 }, other = { 0 };

    if (add_values(evaluation, row, json_object_get(row->spec, "value"), &mine, out))
        return -1;
    if (over || under) {
        if (add_values(evaluation, row, over ? over : under, &other, out))
            return -1;
        if (mine.count != other.count)
            return say(out, "the curves have different points");
        for (unsigned int i = 0; i < mine.count; i++)
            mine.list[i] =
                100 * (over ? mine.list[i] / other.list[i] - 1 : 1 - mine.list[i] / other.list[i]);
    }
    out->ours =
        (peak_share ? last_x_at_share(&mine, json_number_value(peak_share)) : largest(&mine)) *
        (scale ? json_number_value(scale) : 1);
    return 0;
}

/* Percentages of times, saved or added. */
static bool is_saving(const struct paper_row *row)
{
    return json_object_get(row->spec, "over") || json_object_get(row->spec, "under");
}

/* A saving is a ratio of two times, and judged as such: of a saving of 6%, 5% would be nothing, and
 * 5 points nearly all. "Up to 47%" is the largest, as compute() takes it. */
static int evaluate_saving(const struct evaluation *evaluation, const struct paper_row *row,
                           struct outcome *out)
{
    double sign = json_object_get(row->spec, "over") ? 1 : -1, paper = 1 + sign * row->value / 100;

    say_criterion(out, "%.6g%%, a ratio of %.4g, up to %.4g%% more or less", row->value, paper,
                  evaluation->tolerance);
    if (compute(evaluation, row, out))
        return -1;
    out->points = out->ours - row->value;
    out->error = 100 * ((1 + sign * out->ours / 100) / paper - 1);
    say_criterion(out, " (ours / paper: %.4g, %+.1f points)", 1 + out->error / 100, out->points);
    out->verdict = fabs(out->error) <= evaluation->tolerance ? VERDICT_MATCHES : VERDICT_MISSES;
    return 0;
}

/* "Up to 4 MB" is what the paper has measured, not a limit that anything below keeps. */
static int evaluate_value(const struct evaluation *evaluation, const struct paper_row *row,
                          struct outcome *out)
{
    if (is_saving(row))
        return evaluate_saving(evaluation, row, out);
    say_criterion(out, "%.6g %s, up to %.4g%% more or less", row->value, row->fields[FIELD_UNIT],
                  evaluation->tolerance);
    if (compute(evaluation, row, out))
        return -1;
    say_criterion(out, " (ours / paper: %.4g)", out->ours / row->value);
    out->error = 100 * (out->ours / row->value - 1);
    out->verdict = fabs(out->error) <= evaluation->tolerance ? VERDICT_MATCHES : VERDICT_MISSES;
    return 0;
}

void evaluate_row(const struct evaluation *evaluation, const struct paper_row *row,
                  struct outcome *out)
{
    const char *reason = paper_db_text(row->spec, "not_run");

    *out = (struct outcome){
        .verdict = VERDICT_NOT_RUN, .ours = NAN, .error = NAN, .points = NAN, .excess = NAN
    };
    if (reason) {
        say(out, "%s", reason);
        return;
    }
    if (json_object_get(row->spec, "checks") ? evaluate_shape(evaluation, row, out)
                                             : evaluate_value(evaluation, row, out))
        out->verdict = VERDICT_NOT_RUN;
}
