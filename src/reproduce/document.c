/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes a reproduction as JSON and CSV: rows with their verdicts, figures with their curves. */
#include "reproduce.h"
#include "results/csv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static json_t *number_or_null(double number)
{
    return isfinite(number) ? json_real(number) : json_null();
}

static json_t *row_json(const struct reproduction *reproduction, const struct row_outcome *outcome)
{
    static const enum field copied[] = { FIELD_ID,    FIELD_PLATFORM, FIELD_EXPERIMENT,
                                         FIELD_SETUP, FIELD_METRIC,   FIELD_UNIT,
                                         FIELD_KIND,  FIELD_NOTE };
    const struct outcome *now = &outcome->now, *before = &outcome->before;
    json_t *object = json_object();

    for (size_t i = 0; i < sizeof(copied) / sizeof(*copied); i++)
        json_object_set_new(object, field_names[copied[i]],
                            json_string(outcome->row->fields[copied[i]]));
    json_object_set_new(object, "paper", number_or_null(outcome->row->value));
    json_object_set_new(object, "role", json_string(role_name(outcome->role)));
    json_object_set_new(object, "ours", number_or_null(now->ours));
    json_object_set_new(object, "error", number_or_null(now->error));
    json_object_set_new(object, "points", number_or_null(now->points));
    json_object_set_new(object, "unseen", number_or_null(outcome->unseen));
    json_object_set_new(object, "verdict", json_string(evaluate_verdict_name(now->verdict)));
    json_object_set_new(object, "observed", json_string(now->text));
    json_object_set_new(object, "criterion", json_string(now->criterion));
    if (reproduction->changed)
        json_object_set_new(object, "before",
                            json_pack("{so so ss ss}", "ours", number_or_null(before->ours),
                                      "error", number_or_null(before->error), "verdict",
                                      evaluate_verdict_name(before->verdict), "observed",
                                      before->text));
    return object;
}

/* The curve is named after its series and, if given, its adapter. 'label' distinguishes curves of
 * the same name. */
static json_t *curve_json(const struct series *series, const char *adapter, const char *label)
{
    json_t *points = json_array();
    json_t *name =
        json_sprintf("%s%s%s", series->name, adapter ? ", " : "", adapter ? adapter : "");

    for (unsigned int i = 0; i < series->count; i++)
        json_array_append_new(points,
                              json_pack("[ff]", series->points[i].x, series->points[i].y.median));
    return json_pack("{so ss? ss ss ss so}", "name", name, "run", label, "unit", series->unit,
                     "axis", series->axis, "axis_unit", series->axis_unit, "points", points);
}

static bool listed(const json_t *names, const char *name)
{
    const json_t *entry;
    size_t i;

    json_array_foreach(names, i, entry)
    {
        if (!strcmp(json_string_value(entry), name))
            return true;
    }
    return !names;
}

static bool has_text(const json_t *array, const char *text)
{
    return json_array_size(array) && listed(array, text);
}

/* Adds the job's curves and its command to the figure, or the reason why there are none. */
static void add_curves(json_t *object, const json_t *figure, const struct job *job,
                       const char *adapter, const char *label)
{
    json_t *commands = json_object_get(object, "commands");
    const struct experiment_result *experiment;
    char *command;

    if (!job || !job->results || !job->results->count) {
        json_object_set_new(object, "reason",
                            json_string(job && job->failure ? job->failure : "not run"));
        return;
    }
    command = job_command(job);
    if (has_text(commands, command)) {
        free(command);
        return;
    }
    json_array_append_new(commands, json_string(command));
    free(command);
    experiment = &job->results->experiments[0];
    for (unsigned int i = 0; i < experiment->count; i++) {
        const struct series *series = &experiment->series[i];

        if (!strcmp(series->quantity, paper_db_text(figure, "quantity")) &&
            listed(json_object_get(figure, "series"), series->name))
            json_array_append_new(json_object_get(object, "curves"),
                                  curve_json(series, adapter, label));
    }
}

/* Adds the curves of all adapters of the figure under one variation. */
static void add_variation(json_t *object, const json_t *figure, const struct paper *paper,
                          const struct evaluation *evaluation, const char *when)
{
    const json_t *adapters = json_object_get(figure, "adapters"), *adapter;
    bool several = json_array_size(adapters) > 1 && !evaluation->variation->adapter;
    size_t i;

    json_array_foreach(adapters, i, adapter)
    {
        const char *name = json_string_value(adapter);
        const struct job *job =
            evaluate_job(evaluation, paper, paper_db_text(figure, "run"), name, NULL);

        if (when)
            add_curves(object, figure, job, several ? name : NULL, when);
        else
            add_curves(object, figure, job, NULL, several ? name : NULL);
    }
}

/* The values that the paper quotes, in the curve's unit. */
static json_t *quoted_json(const struct reproduction *reproduction, const struct paper *paper,
                           const char *figure)
{
    json_t *array = json_array();

    for (unsigned int i = 0; i < reproduction->count; i++) {
        const struct paper_row *row = reproduction->rows[i].row;
        const char *at = paper_db_text(row->spec, "figure");
        const json_t *scale = json_object_get(row->spec, "scale");
        struct reference reference;
        char error[256];

        if (row->paper != paper || !at || strcmp(at, figure) || isnan(row->value) ||
            json_object_get(row->spec, "checks") ||
            paper_db_reference_read(row, json_object_get(row->spec, "value"), &reference, error,
                                    sizeof(error)))
            continue;
        json_array_append_new(
            array, json_pack("{ss sf sf}", "name", row->fields[FIELD_ID], "x", reference.x, "y",
                             row->value / (scale ? json_number_value(scale) : 1)));
    }
    return array;
}

static json_t *figure_json(const struct reproduction *reproduction, const struct paper *paper,
                           const json_t *figure)
{
    const char *log = paper_db_text(figure, "log");
    json_t *object =
        json_pack("{ss ss ss ss ss ss s[] s[] so}", "id", paper_db_text(figure, "id"), "source",
                  paper_db_text(figure, "source"), "title", paper_db_text(figure, "title"), "text",
                  paper_db_text(figure, "text"), "quantity", paper_db_text(figure, "quantity"),
                  "log", log ? log : "", "commands", "curves", "quoted",
                  quoted_json(reproduction, paper, paper_db_text(figure, "id")));

    if (reproduction->changed)
        add_variation(object, figure, paper, &reproduction->before, "before");
    add_variation(object, figure, paper, &reproduction->now,
                  reproduction->changed ? "after" : NULL);
    return object;
}

static json_t *paper_json(const struct reproduction *reproduction, const struct paper *paper)
{
    const json_t *all = json_object_get(paper->document, "figures"), *figure;
    json_t *rows = json_array(), *figures = json_array();
    size_t i;

    for (unsigned int k = 0; k < reproduction->count; k++) {
        if (reproduction->rows[k].row->paper == paper)
            json_array_append_new(rows, row_json(reproduction, &reproduction->rows[k]));
    }
    json_array_foreach(all, i, figure)
    {
        if (paper_db_figure_selected(reproduction->db, paper, figure))
            json_array_append_new(figures, figure_json(reproduction, paper, figure));
    }
    return json_pack("{ss ss ss ss ss ss so so}", "number", paper->number, "name", paper->name,
                     "short", paper_db_text(paper->document, "short"), "authors",
                     paper_db_text(paper->document, "authors"), "title",
                     paper_db_text(paper->document, "title"), "about",
                     paper_db_text(paper->document, "about"), "rows", rows, "figures", figures);
}

static json_t *summary_json(const struct reproduction *reproduction)
{
    struct reproduce_summary summary = reproduce_summarise(reproduction);
    json_t *object =
        json_pack("{si si s{si si si si}}", "independent", (int)summary.independent, "not_run",
                  (int)summary.not_run, "unseen", "all", (int)summary.unseen, "estimated",
                  (int)summary.unseen_estimated, "within", (int)summary.unseen_within,
                  "within_twice", (int)summary.unseen_within_twice);

    for (int role = 0; role < ROLES; role++)
        json_object_set_new(object, role_name(role),
                            json_pack("{si si si}", "all", (int)summary.all[role], "within",
                                      (int)summary.within[role], "within_twice",
                                      (int)summary.within_twice[role]));
    return object;
}

static json_t *change_json(const struct reproduction *reproduction)
{
    const struct variation *variation = reproduction->now.variation;
    const char *adapter = variation->adapter, *set = variation->set;

    if (!reproduction->changed)
        return json_null();
    if (variation->longer)
        return json_sprintf("%u times the warm-up and iterations", variation->longer);
    return json_sprintf("%s%s%s%s%s", adapter ? "--adapter " : "", adapter ? adapter : "",
                        adapter && set ? " " : "", set ? "--set " : "", set ? set : "");
}

json_t *document_json(const struct reproduction *reproduction, const char *version,
                      const char *date, const char *command)
{
    json_t *papers = json_array();
    const struct paper *paper = NULL;

    for (unsigned int i = 0; i < reproduction->count; i++) {
        if (reproduction->rows[i].row->paper == paper)
            continue;
        paper = reproduction->rows[i].row->paper;
        json_array_append_new(papers, paper_json(reproduction, paper));
    }
    return json_pack("{ss ss ss ss sb sf so so so}", "schema", REPRODUCTION_SCHEMA, "version",
                     version, "date", date, "command", command, "quick", reproduction->now.quick,
                     "tolerance", reproduction->now.tolerance, "change", change_json(reproduction),
                     "summary", summary_json(reproduction), "papers", papers);
}

static void put_number(double number, FILE *out)
{
    fputc(',', out);
    if (!isnan(number))
        csv_put_number(number, out);
}

static void put_text(const char *text, FILE *out)
{
    fputc(',', out);
    csv_put_text(text, out);
}

void document_csv(const struct reproduction *reproduction, FILE *out)
{
    fputs(reproduction->changed
              ? "id,role,unit,paper,ours,error,points,unseen,verdict,observed,criterion,before\n"
              : "id,role,unit,paper,ours,error,points,unseen,verdict,observed,criterion\n",
          out);
    for (unsigned int i = 0; i < reproduction->count; i++) {
        const struct row_outcome *outcome = &reproduction->rows[i];

        csv_put_text(outcome->row->fields[FIELD_ID], out);
        put_text(role_name(outcome->role), out);
        put_text(outcome->row->fields[FIELD_UNIT], out);
        put_number(outcome->row->value, out);
        put_number(outcome->now.ours, out);
        put_number(outcome->now.error, out);
        put_number(outcome->now.points, out);
        put_number(outcome->unseen, out);
        put_text(evaluate_verdict_name(outcome->now.verdict), out);
        put_text(outcome->now.text, out);
        put_text(outcome->now.criterion, out);
        if (reproduction->changed)
            put_number(outcome->before.ours, out);
        fputc('\n', out);
    }
}

static void put_curve(const char *paper, const json_t *figure, const json_t *curve, FILE *out)
{
    static const char *const texts[] = { "name", "run", "unit", "axis", "axis_unit" };
    const json_t *point;
    size_t i;

    json_array_foreach(json_object_get(curve, "points"), i, point)
    {
        csv_put_text(paper, out);
        put_text(paper_db_text(figure, "source"), out);
        put_text(paper_db_text(figure, "quantity"), out);
        for (size_t k = 0; k < sizeof(texts) / sizeof(*texts); k++)
            put_text(paper_db_text(curve, texts[k]) ? paper_db_text(curve, texts[k]) : "", out);
        put_number(json_number_value(json_array_get(point, 0)), out);
        put_number(json_number_value(json_array_get(point, 1)), out);
        fputc('\n', out);
    }
}

void document_curves_csv(const json_t *reproduction, FILE *out)
{
    const json_t *paper, *figure, *curve;
    size_t i, j, k;

    fputs("paper,figure,quantity,curve,run,unit,axis,axis_unit,x,y\n", out);
    json_array_foreach(json_object_get(reproduction, "papers"), i, paper)
    {
        json_array_foreach(json_object_get(paper, "figures"), j, figure)
        {
            json_array_foreach(json_object_get(figure, "curves"), k, curve)
                put_curve(paper_db_text(paper, "name"), figure, curve, out);
        }
    }
}
