/* SPDX-License-Identifier: BSD-2-Clause */
#include "reproduce.h"
#include "left_out.h"
#include "results/allocate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct job_collector {
    const struct evaluation *evaluation;
    const struct paper *paper;
    struct jobs *jobs;
};

static void add_job(const struct job_collector *collector, const char *run, const char *adapter,
                    const char *set)
{
    char *line = evaluate_run_line(collector->evaluation, collector->paper, run), *whole_set;
    const char *name;

    evaluate_apply_variation(collector->evaluation->variation, adapter, set, &name, &whole_set);
    jobs_add(collector->jobs, collector->paper->name, run, name, whole_set, line);
    free(whole_set);
    free(line);
}

static int add_reference_jobs(const struct reference *reference, void *context)
{
    add_job(context, reference->run, reference->adapter, reference->set);
    return 0;
}

static void add_figure_jobs(const struct paper_db *db, struct job_collector *collector)
{
    const json_t *figure, *adapter;
    size_t i, k;

    json_array_foreach(json_object_get(collector->paper->document, "figures"), i, figure)
    {
        if (!paper_db_figure_selected(db, collector->paper, figure))
            continue;
        json_array_foreach(json_object_get(figure, "adapters"), k, adapter)
            add_job(collector, paper_db_text(figure, "run"), json_string_value(adapter), NULL);
    }
}

void reproduce_add_row_jobs(const struct paper_row *row, const struct evaluation *evaluation,
                            struct jobs *jobs)
{
    struct job_collector collector = { .evaluation = evaluation,
                                       .paper = row->paper,
                                       .jobs = jobs };

    if (!paper_db_text(row->spec, "not_run"))
        paper_db_visit_references(row, add_reference_jobs, &collector, NULL, 0);
}

void reproduce_add_jobs(const struct paper_db *db, const struct evaluation *evaluation,
                        struct jobs *jobs)
{
    struct job_collector collector = { .evaluation = evaluation, .jobs = jobs };

    for (unsigned int i = 0; i < db->row_count; i++) {
        if (db->rows[i].selected)
            reproduce_add_row_jobs(&db->rows[i], evaluation, jobs);
    }
    for (unsigned int i = 0; i < db->paper_count; i++) {
        collector.paper = &db->papers[i];
        add_figure_jobs(db, &collector);
    }
}

void reproduce_evaluate(const struct paper_db *db, const struct evaluation *now,
                        const struct evaluation *before, struct reproduction *out)
{
    *out = (struct reproduction){ .db = db, .now = *now, .changed = before != NULL };
    if (before)
        out->before = *before;
    for (unsigned int i = 0; i < db->row_count; i++) {
        struct row_outcome *outcome;

        if (!db->rows[i].selected)
            continue;
        out->rows = allocate_one_more(out->rows, out->count, sizeof(*out->rows));
        outcome = &out->rows[out->count++];
        outcome->row = &db->rows[i];
        outcome->role = role_of(outcome->row);
        evaluate_row(now, outcome->row, &outcome->now);
        outcome->unseen = left_out_error(outcome->row, outcome->now.error);
        if (before)
            evaluate_row(before, outcome->row, &outcome->before);
    }
}

void reproduce_free(struct reproduction *reproduction)
{
    free(reproduction->rows);
    *reproduction = (struct reproduction){ 0 };
}

unsigned int reproduce_count(const struct reproduction *reproduction, enum verdict verdict)
{
    unsigned int count = 0;

    for (unsigned int i = 0; i < reproduction->count; i++)
        count += reproduction->rows[i].now.verdict == verdict;
    return count;
}

static void add_unseen(struct reproduce_summary *summary, const struct row_outcome *outcome,
                       double tolerance)
{
    if (isnan(outcome->unseen))
        return;
    summary->unseen++;
    summary->unseen_estimated += left_out_is_estimate(outcome->row);
    summary->unseen_within += fabs(outcome->unseen) <= tolerance;
    summary->unseen_within_twice += fabs(outcome->unseen) <= 2 * tolerance;
}

struct reproduce_summary reproduce_summarise(const struct reproduction *reproduction)
{
    struct reproduce_summary summary = { 0 };

    for (unsigned int i = 0; i < reproduction->count; i++) {
        const struct outcome *now = &reproduction->rows[i].now;
        enum role role = reproduction->rows[i].role;
        bool within = now->verdict == VERDICT_MATCHES;

        summary.all[role]++;
        summary.within[role] += within;
        summary.within_twice[role] += within || fabs(now->error) <= 2 * reproduction->now.tolerance;
        summary.not_run += now->verdict == VERDICT_NOT_RUN;
        if (role == ROLE_FITTED)
            add_unseen(&summary, &reproduction->rows[i], reproduction->now.tolerance);
    }
    summary.independent = summary.all[ROLE_PREDICTED] + summary.all[ROLE_FITTED];
    return summary;
}

static double moved_by(const struct row_outcome *outcome)
{
    return 100 * ((100 + outcome->now.error) / (100 + outcome->before.error) - 1);
}

unsigned int reproduce_print_moved(const struct reproduction *reproduction, double tolerance,
                                   FILE *out)
{
    unsigned int count = 0, values = 0;

    for (unsigned int i = 0; i < reproduction->count; i++) {
        const struct row_outcome *outcome = &reproduction->rows[i];
        double moved = moved_by(outcome);

        values += !isnan(moved);
        if (!(fabs(moved) > tolerance) && outcome->now.verdict == outcome->before.verdict)
            continue;
        count++;
        fprintf(out, "%s has not converged: ", outcome->row->fields[FIELD_ID]);
        if (isnan(moved))
            fprintf(out, "%s, then %s\n", evaluate_verdict_name(outcome->before.verdict),
                    evaluate_verdict_name(outcome->now.verdict));
        else
            fprintf(out, "%.5g, then %.5g, %+.1f%%\n", outcome->before.ours, outcome->now.ours,
                    moved);
    }
    fprintf(out,
            "%u of %u rows, %u with values, move by more than %g%% with %u times the warm-up "
            "and iterations\n",
            count, reproduction->count, values, tolerance, reproduction->now.variation->longer);
    return count;
}

static const char *number_or_dash(double number, const char *format, char *text, size_t size)
{
    if (isnan(number))
        return "-";
    snprintf(text, size, format, number);
    return text;
}

static void print_row(const struct reproduction *reproduction, const struct row_outcome *outcome,
                      FILE *out)
{
    const struct outcome *now = &outcome->now;
    char paper[32], ours[32], before[32], error[32], unseen[32], points[32];

    fprintf(out, "  %-24s %10s", outcome->row->fields[FIELD_ID],
            number_or_dash(outcome->row->value, "%.6g", paper, sizeof(paper)));
    if (reproduction->changed)
        fprintf(out, " %10s", number_or_dash(outcome->before.ours, "%.5g", before, sizeof(before)));
    fprintf(out, " %10s %-6s %8s %8s  %-9s  %s%s",
            number_or_dash(now->ours, "%.5g", ours, sizeof(ours)), outcome->row->fields[FIELD_UNIT],
            number_or_dash(now->error, "%+.1f%%", error, sizeof(error)),
            number_or_dash(outcome->unseen, "%+.1f%%", unseen, sizeof(unseen)),
            role_name(outcome->role), evaluate_verdict_name(now->verdict),
            isnan(now->points)
                ? ""
                : number_or_dash(now->points, ", %+.1f points", points, sizeof(points)));
    fprintf(out, *now->text && now->verdict != VERDICT_MATCHES ? ": %s\n" : "\n", now->text);
}

static void print_summary(const struct reproduction *reproduction, FILE *out)
{
    struct reproduce_summary summary = reproduce_summarise(reproduction);
    double tolerance = reproduction->now.tolerance;

    fprintf(out,
            "\nnot counted: %u inputs, %u repeated values; not run: %u; fitted, and left out of no "
            "recorded fit: %u\n",
            summary.all[ROLE_INPUT], summary.all[ROLE_REPEATED], summary.not_run,
            summary.all[ROLE_FITTED] - summary.unseen);
    fprintf(
        out,
        "of %u independent values %u are predicted within %g%%, %u within %g%%; %u were left out "
        "of their fit, %u of them by estimate, %u never fitted; %u of %u fitted values "
        "match; %u of %u shapes match\n",
        summary.independent, summary.within[ROLE_PREDICTED] + summary.unseen_within, tolerance,
        summary.within_twice[ROLE_PREDICTED] + summary.unseen_within_twice, 2 * tolerance,
        summary.unseen, summary.unseen_estimated, summary.all[ROLE_PREDICTED],
        summary.within[ROLE_FITTED], summary.all[ROLE_FITTED], summary.within[ROLE_SHAPE], summary.all[ROLE_SHAPE]);
}

void reproduce_print(const struct reproduction *reproduction, FILE *out)
{
    const struct paper *paper = NULL;

    for (unsigned int i = 0; i < reproduction->count; i++) {
        const struct row_outcome *outcome = &reproduction->rows[i];

        if (outcome->row->paper != paper) {
            paper = outcome->row->paper;
            fprintf(out, "\n%s (%s)\n  %-24s %10s", paper_db_text(paper->document, "short"),
                    paper->name, "ID", "PAPER");
            if (reproduction->changed)
                fprintf(out, " %10s", "BEFORE");
            fprintf(out, " %10s %-6s %8s %8s  %-9s  %s\n", "OURS", "UNIT", "ERROR", "UNSEEN",
                    "ROLE", "VERDICT");
        }
        print_row(reproduction, outcome, out);
    }
    print_summary(reproduction, out);
}
