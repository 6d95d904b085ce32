/* SPDX-License-Identifier: BSD-2-Clause */
/* verbena report: results as an HTML page. */
#include "commands.h"
#include "launch.h"
#include "report.h"
#include "reproduce/reproduce.h"
#include "results/advice/json.h"
#include "results/json.h"
#include "results/page.h"
#include "util/file.h"

#include <libgen.h>
#include <stdlib.h>
#include <string.h>

#define REPORT_SCHEMA "verbena-report/1"

static json_t *advice_of(struct results *results)
{
    struct advice_input body = { .count = 1, .files = &results };
    struct advice *advices = advice_make(&body);
    json_t *array = json_array();

    for (const struct advice *advice = advices; advice->adviser; advice++) {
        if (advice->text)
            json_array_append_new(array, advice_json(advice));
    }
    advice_free(advices);
    return array;
}

/* The file name identifies the run. */
static json_t *label_of(const char *path)
{
    char *copy = strdup(path);
    char *name = copy ? basename(copy) : "";
    char *dot = strrchr(name, '.');
    json_t *label = json_stringn(name, dot && dot > name ? (size_t)(dot - name) : strlen(name));

    free(copy);
    return label ? label : json_string("results");
}

static void add_run(json_t *runs, struct results *results, json_t *label)
{
    json_t *run = results_json(results);

    json_object_set_new(run, "label", label);
    json_object_set_new(run, "advice", advice_of(results));
    json_array_append_new(runs, run);
}

static int add_results(json_t *runs, const char *path)
{
    struct results *results;
    char error[512];

    if (results_read(path, &results, error, sizeof(error))) {
        cli_error("%s", error);
        return CLI_FAILED;
    }
    add_run(runs, results, label_of(path));
    results_free(results);
    return CLI_OK;
}

static bool is_reproduction(const char *path, json_t **out)
{
    char error[512];
    json_t *document = json_read(path, error, sizeof(error));
    const char *schema = json_string_value(json_object_get(document, "schema"));

    if (schema && !strcmp(schema, REPRODUCTION_SCHEMA)) {
        *out = document;
        return true;
    }
    json_decref(document);
    return false;
}

static json_t *new_document(void)
{
    return json_pack("{ss ss s[] sn}", "schema", REPORT_SCHEMA, "version", VERBENA_VERSION, "runs",
                     "reproduction");
}

static int fill(const struct invocation *invocation, json_t *document)
{
    json_t *runs = json_object_get(document, "runs");
    bool reproduced = false;

    for (int i = 0; i < invocation->operand_count; i++) {
        const char *path = invocation->operands[i];
        json_t *reproduction;

        if (!is_reproduction(path, &reproduction)) {
            if (add_results(runs, path))
                return CLI_FAILED;
            continue;
        }
        json_object_set_new(document, "reproduction", reproduction);
        if (reproduced)
            return cli_usage_error(invocation->command, "%s: a page shows one reproduction only",
                                   path);
        reproduced = true;
    }
    return CLI_OK;
}

static bool find_template(char *path)
{
    if (launch_file("report.html", path))
        return true;
    cli_error("Verbena was built without the report page, which needs npm and its registry. "
              "Install npm (Debian: apt-get install npm), and run make again with network access");
    return false;
}

static int write_page(const char *template, const json_t *document, const char *path)
{
    char error[PATH_MAX + 128];

    if (page_write(template, document, path, error, sizeof(error))) {
        cli_error("%s", error);
        return CLI_FAILED;
    }
    return CLI_OK;
}

int report_reproduction(json_t *reproduction, const char *path)
{
    char template[PATH_MAX];
    json_t *document;
    int status;

    if (!find_template(template))
        return CLI_OK;
    document = new_document();
    json_object_set(document, "reproduction", reproduction);
    status = write_page(template, document, path);
    json_decref(document);
    return status;
}

int report_runs(struct results *const *runs, const char *const *labels, unsigned int count,
                const char *path)
{
    char template[PATH_MAX];
    json_t *document;
    int status;

    if (!find_template(template))
        return CLI_FAILED;
    document = new_document();
    for (unsigned int i = 0; i < count; i++)
        add_run(json_object_get(document, "runs"), runs[i], json_string(labels[i]));
    status = write_page(template, document, path);
    json_decref(document);
    return status;
}

int cli_report(const struct invocation *invocation)
{
    const char *path = option_value_or_default(invocation, "output");
    char template[PATH_MAX];
    json_t *document;
    int status;

    if (!invocation->operand_count)
        return cli_usage_error(invocation->command, "no result files given");
    document = new_document();
    status = fill(invocation, document);
    if (!status)
        status = find_template(template) ? write_page(template, document, path) : CLI_FAILED;
    json_decref(document);
    if (!status && !file_is_stdout(path))
        printf("%s\n", path);
    return status;
}
