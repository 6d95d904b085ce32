#include "reproduce.h"
#include "results/allocate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct wanting {
    const struct judge *judge;
    const struct paper *paper;
    struct jobs *jobs;
};

static void want(const struct wanting *wanting, const char *run, const char *adapter,
                 const char *set)
{
    char *line = paper_db_run_line(wanting->paper, run, wanting->judge->quick), *whole_set;
    const char *name;

    judge_variation_index(wanting->judge->variation, adapter, set, &name, &whole_set);
    jobs_want(wanting->jobs, wanting->paper->name, run, name, whole_set, line);
    free(whole_set);
    free(line);
}

static int want_reference(const struct reference *reference, void *context)
{
    want(context, reference->run, reference->adapter, reference->set);
    return 0;
}

static void want_figures(const struct paper_db *book, struct wanting *wanting)
{
    const json_t *figure, *adapter;
    size_t i, k;

    json_array_foreach(json_object_get(wanting->paper->document, "figures"), i, figure)
    {
        if (!paper_db_row_chosen(book, wanting->paper, figure))
            continue;
        json_array_foreach(json_object_get(figure, "adapters"), k, adapter)
            want(wanting, paper_db_text(figure, "run"), json_string_value(adapter), NULL);
    }
}

void reproduce_want(const struct paper_db *book, const struct judge *judge, struct jobs *jobs)
{
    struct wanting wanting = { .judge = judge, .jobs = jobs };

    for (unsigned int i = 0; i < book->row_count; i++) {
        const struct paper_row *row = &book->rows[i];

        wanting.paper = row->paper;
        if (row->chosen && !paper_db_text(row->how, "not_run"))
            paper_db_row_references(row, want_reference, &wanting);
    }
    for (unsigned int i = 0; i < book->paper_count; i++) {
        wanting.paper = &book->papers[i];
        want_figures(book, &wanting);
    }
}

void reproduce_judge(const struct paper_db *book, const struct judge *now,
                        const struct judge *before, struct reproduction *out)
{
    *out = (struct reproduction){ .book = book, .now = *now, .changed = before != NULL };
    if (before)
        out->before = *before;
    for (unsigned int i = 0; i < book->row_count; i++) {
        struct judged *judged;

        if (!book->rows[i].chosen)
            continue;
        out->rows = allocate_one_more(out->rows, out->count, sizeof(*out->rows));
        judged = &out->rows[out->count++];
        judged->row = &book->rows[i];
        judge_row(now, judged->row, &judged->now);
        if (before)
            judge_row(before, judged->row, &judged->before);
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

static const char *number_or_dash(double number, const char *format, char *text, size_t size)
{
    if (isnan(number))
        return "-";
    snprintf(text, size, format, number);
    return text;
}

static void print_row(const struct reproduction *reproduction, const struct judged *judged,
                      FILE *out)
{
    const struct outcome *now = &judged->now;
    char paper[32], ours[32], before[32], error[32];

    fprintf(out, "  %-24s %10s", judged->row->fields[FIELD_ID],
            number_or_dash(judged->row->value, "%.6g", paper, sizeof(paper)));
    if (reproduction->changed)
        fprintf(out, " %10s", number_or_dash(judged->before.ours, "%.5g", before, sizeof(before)));
    fprintf(out, " %10s %-6s %8s  %s", number_or_dash(now->ours, "%.5g", ours, sizeof(ours)),
            judged->row->fields[FIELD_UNIT],
            number_or_dash(now->error, "%+.1f%%", error, sizeof(error)),
            judge_verdict_name(now->verdict));
    fprintf(out, *now->text && now->verdict != VERDICT_HOLDS ? ": %s\n" : "\n", now->text);
}

void reproduce_print(const struct reproduction *reproduction, FILE *out)
{
    const struct paper *paper = NULL;
    unsigned int misses = reproduce_count(reproduction, VERDICT_MISSES);

    for (unsigned int i = 0; i < reproduction->count; i++) {
        const struct judged *judged = &reproduction->rows[i];

        if (judged->row->paper != paper) {
            paper = judged->row->paper;
            fprintf(out, "\n%s (%s)\n  %-24s %10s", paper_db_text(paper->document, "short"), paper->name,
                    "ID", "PAPER");
            if (reproduction->changed)
                fprintf(out, " %10s", "BEFORE");
            fprintf(out, " %10s %-6s %8s  %s\n", "OURS", "UNIT", "ERROR", "VERDICT");
        }
        print_row(reproduction, judged, out);
    }
    fprintf(out, "\n%u of %u hold; %u %s, %u not run\n",
            reproduce_count(reproduction, VERDICT_HOLDS), reproduction->count, misses,
            misses == 1 ? "misses" : "miss", reproduce_count(reproduction, VERDICT_NOT_RUN));
}
