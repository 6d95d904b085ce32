/* SPDX-License-Identifier: BSD-2-Clause */
/* Results as comma-separated values, one line per point. */
#include "csv.h"
#include "schema.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void csv_put_text(const char *text, FILE *out)
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

void csv_put_number(double number, FILE *out)
{
    if (schema_is_whole(number))
        fprintf(out, "%.0f", number);
    else
        fprintf(out, "%.*g", RESULTS_DIGITS, number);
}

static void put_head(FILE *out)
{
    fputs("experiment,series,quantity,unit,axis,axis_unit,x,count", out);
    for (unsigned int i = 0; i < results_statistic_count; i++)
        fprintf(out, ",%s", results_statistics[i].name);
    fputc('\n', out);
}

static void put_point(const struct experiment_result *result, const struct series *series,
                      const struct point *point, FILE *out)
{
    const char *const texts[] = { result->name, series->name, series->quantity,
                                  series->unit, series->axis, series->axis_unit };
    struct summary y = point->y;

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        csv_put_text(texts[i], out);
        fputc(',', out);
    }
    csv_put_number(point->x, out);
    fprintf(out, ",%" PRIu64, point->y.count);
    for (unsigned int i = 0; i < results_statistic_count; i++) {
        fputc(',', out);
        csv_put_number(*schema_statistic(&results_statistics[i], &y), out);
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

/* Reads one field and returns its terminator: a comma, a newline or EOF. */
static int read_field(FILE *in, char **out)
{
    bool quoted = false;
    size_t size;
    FILE *text = open_memstream(out, &size);
    int byte;

    while (text && (byte = fgetc(in)) != EOF) {
        if (byte == '"' && quoted) {
            byte = fgetc(in);
            if (byte == '"') {
                fputc(byte, text);
                continue;
            }
            quoted = false;
        } else if (byte == '"') {
            quoted = true;
            continue;
        }
        if (!quoted && (byte == ',' || byte == '\n' || byte == EOF))
            break;
        if (quoted || byte != '\r')
            fputc(byte, text);
    }
    if (!text)
        abort();
    fclose(text);
    return byte;
}

bool csv_read_line(FILE *in, char **fields, unsigned int capacity, unsigned int *count)
{
    int end = fgetc(in);

    *count = 0;
    if (end == EOF)
        return false;
    ungetc(end, in);
    do {
        char *field;

        end = read_field(in, &field);
        if (*count < capacity)
            fields[*count] = field;
        else
            free(field);
        ++*count;
    } while (end == ',');
    return true;
}
