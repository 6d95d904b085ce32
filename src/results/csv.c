/* Results as comma-separated values: a line per point, for spreadsheets and plotting programs. */
#include "schema.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static void put_text(const char *text, FILE *out)
{
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

static void put_number(double number, FILE *out)
{
    if (number_whole(number))
        fprintf(out, "%.0f", number);
    else
        fprintf(out, "%.*g", RESULTS_DIGITS, number);
}

static void put_head(FILE *out)
{
    fputs("experiment,series,quantity,unit,axis,axis_unit,x,count", out);
    for (unsigned int i = 0; i < results_figure_count; i++)
        fprintf(out, ",%s", results_figures[i].name);
    fputc('\n', out);
}

static void put_point(const struct experiment_result *result, const struct series *series,
                      const struct point *point, FILE *out)
{
    const char *const texts[] = { result->name, series->name, series->quantity,
                                  series->unit, series->axis, series->axis_unit };
    struct summary figures = point->y;

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        put_text(texts[i], out);
        fputc(',', out);
    }
    put_number(point->x, out);
    fprintf(out, ",%" PRIu64, point->y.count);
    for (unsigned int i = 0; i < results_figure_count; i++) {
        fputc(',', out);
        put_number(*figure_of(&results_figures[i], &figures), out);
    }
    fputc('\n', out);
}

int results_write_csv(const struct results *results, FILE *out)
{
    if (!results_finite(results)) {
        errno = EDOM;
        return -1;
    }
    put_head(out);
    for (unsigned int i = 0; i < results->count; i++) {
        const struct experiment_result *result = &results->experiments[i];

        for (unsigned int j = 0; j < result->count; j++) {
            const struct series *series = &result->series[j];

            for (unsigned int k = 0; k < series->count; k++)
                put_point(result, series, &series->points[k], out);
        }
    }
    return fflush(out) || ferror(out) ? -1 : 0;
}
