/* SPDX-License-Identifier: BSD-2-Clause */
/* verbena advise: recommendations from measured results. */
#include "commands.h"
#include "results/advice/json.h"
#include "util/file.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* Counts on the axis are exact; whatever was measured is not. */
static void print_evidence(FILE *out, const struct evidence *evidence, bool several)
{
    const struct series *series = evidence->series;
    char count[32];

    snprintf(count, sizeof(count), "%.0f", evidence->x);
    fprintf(out, "    %s, %s: %s %s, %s %s", evidence->experiment->name, series->name, series->axis,
            *series->axis_unit ? advice_quantity_text(evidence->x, series->axis_unit) : count,
            series->quantity, advice_quantity_text(evidence->value, series->unit));
    if (several)
        fprintf(out, " (%s)", evidence->file->path);
    fputc('\n', out);
}

static void print_parameter(FILE *out, const struct parameter *parameter)
{
    fprintf(out, "    %s", parameter->is_default ? "the default is right: " : "-> ");
    advice_parameter_put(parameter, out);
}

static void print_text(FILE *out, const struct advice_input *body, const struct advice *advices,
                       bool verbose)
{
    unsigned int found = 0;

    for (const struct advice *advice = advices; advice->adviser; advice++) {
        if (!advice->text) {
            if (verbose)
                fprintf(out, "%s: no advice: %s\n", advice->adviser->name, advice->reason);
            continue;
        }
        fprintf(out, "%s: %s\n", advice->adviser->name, advice->text);
        for (unsigned int i = 0; i < advice->evidence_count; i++)
            print_evidence(out, &advice->evidence[i], body->count > 1);
        for (unsigned int i = 0; i < advice->parameter_count; i++)
            print_parameter(out, &advice->parameters[i]);
        found++;
    }
    if (!found && !verbose)
        fputs("No advice follows from these results ('--verbose' says why).\n", out);
}

static void print_json(FILE *out, const struct advice *advices, bool verbose)
{
    json_t *array = json_array();

    for (const struct advice *advice = advices; advice->adviser; advice++) {
        if (advice->text || verbose)
            json_array_append_new(array, advice_json(advice));
    }
    json_dumpf(array, out, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
    fputc('\n', out);
    json_decref(array);
}

static void put_parameters(const struct advice *advice, FILE *out)
{
    fprintf(out, "\n# %s\n", advice->text);
    for (unsigned int i = 0; i < advice->parameter_count; i++) {
        if (advice->parameters[i].is_default)
            fputs("# The default is right: ", out);
        advice_parameter_put(&advice->parameters[i], out);
    }
}

static int write_parameters(const struct advice_input *body, const struct advice *advices,
                            const char *path)
{
    struct file_text file;
    FILE *out = file_begin(&file);

    if (!out) {
        cli_error("out of memory");
        return CLI_FAILED;
    }
    for (unsigned int i = 0; i < body->count; i++)
        fprintf(out, "# From %s, measured %s.\n", body->files[i]->path, body->files[i]->date);
    for (const struct advice *advice = advices; advice->adviser; advice++) {
        if (advice->parameter_count)
            put_parameters(advice, out);
    }
    if (!file_end(&file, path))
        return CLI_OK;
    cli_error("%s: %s", file_shown(path), strerror(errno));
    return CLI_FAILED;
}

static int advise_and_print(const struct invocation *invocation, const struct advice_input *body)
{
    struct advice *advices = advice_make(body);
    const char *path = option_value(invocation, "mca");
    bool verbose = option_value(invocation, "verbose");
    FILE *out = file_is_stdout(path) ? stderr : stdout;
    int status = CLI_OK;

    if (option_value(invocation, "json"))
        print_json(out, advices, verbose);
    else
        print_text(out, body, advices, verbose);
    if (path)
        status = write_parameters(body, advices, path);
    advice_free(advices);
    return status;
}

int cli_advise(const struct invocation *invocation)
{
    struct results **files;
    struct advice_input body = { 0 };
    int status = CLI_OK;
    char error[512];

    if (!invocation->operand_count)
        return cli_usage_error(invocation->command, "no result files given");
    files = calloc(invocation->operand_count, sizeof(*files));
    if (!files) {
        cli_error("out of memory");
        return CLI_FAILED;
    }
    body.files = files;
    for (int i = 0; !status && i < invocation->operand_count; i++) {
        if (!results_read(invocation->operands[i], &files[i], error, sizeof(error))) {
            body.count++;
        } else {
            cli_error("%s", error);
            status = CLI_FAILED;
        }
    }
    if (!status)
        status = advise_and_print(invocation, &body);
    for (unsigned int i = 0; i < body.count; i++)
        results_free(files[i]);
    free(files);
    return status;
}
