/* SPDX-License-Identifier: BSD-2-Clause */
/* verbena calibrate: an adapter file from measured results. */
#include "calibrate/calibrate.h"
#include "calibrate/data.h"
#include "calibrate/leave_out.h"
#include "commands.h"
#include "papers.h"
#include "report.h"
#include "results/schema.h"
#include "sim/adapter/adapter_file.h"
#include "util/file.h"

#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int write_adapter(const struct invocation *invocation, const struct calibration *calibration,
                         const char *path)
{
    char *command = options_invocation_text(invocation, NULL);
    struct file_text file;
    FILE *out = file_begin(&file);

    if (!out || !command) {
        cli_error("out of memory");
        return CLI_FAILED;
    }
    calibrate_write(calibration, command, out);
    free(command);
    if (!file_end(&file, path))
        return CLI_OK;
    cli_error("%s: %s", path, strerror(errno));
    return CLI_FAILED;
}

static void print_json(const json_t *document)
{
    json_dumpf(document, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(RESULTS_DIGITS));
    putchar('\n');
}

/* The modelled curves come from this command; that of their last run names temporary files. */
static int write_page(const struct invocation *invocation, struct results *measured,
                      struct results *modelled, const char *path)
{
    static const char *const labels[] = { "measured", "modelled" };
    struct results *runs[] = { measured, modelled };
    char *command = options_invocation_text(invocation, NULL);

    if (!command) {
        cli_error("out of memory");
        return CLI_FAILED;
    }
    free(modelled->command);
    modelled->command = command;
    return report_runs(runs, labels, 2, path);
}

static int conclude(const struct invocation *invocation, struct results *measured,
                    const struct calibration *calibration)
{
    const char *path = option_value(invocation, "output"), *page = option_value(invocation, "page");
    int status = path ? write_adapter(invocation, calibration, path) : CLI_OK;

    if (option_value(invocation, "json")) {
        json_t *document = calibrate_json(calibration);

        print_json(document);
        json_decref(document);
    } else {
        calibrate_print(calibration, stdout);
    }
    if (!status && page)
        status = write_page(invocation, measured, calibration->modelled, page);
    return status;
}

static void warn_of_version(const struct results *file)
{
    if (strcmp(file->version, VERBENA_VERSION))
        cli_error("%s is from Verbena %s, this is %s: experiments may have changed in between",
                  file->path, file->version, VERBENA_VERSION);
}

static int calibrate(const struct invocation *invocation, struct results **files,
                     unsigned int count)
{
    const struct calibrate_spec spec = {
        .start = option_value(invocation, "start"),
        .held_out = option_value(invocation, "hold-out"),
        .fit = option_value(invocation, "fit"),
        .at_once = option_number(invocation, "jobs", 0),
    };
    struct calibration calibration;
    char error[PATH_MAX + 512];
    int status = calibrate_run(&spec, files, count, &calibration, error, sizeof(error));

    if (status > 0)
        return CLI_SIGNALLED + status;
    if (status) {
        cli_error("%s", error);
        return CLI_FAILED;
    }
    status = conclude(invocation, files[0], &calibration);
    calibrate_free(&calibration);
    return status;
}

/* A calibration takes minutes: find out now whether its results can be written. */
static int check_directory(const char *output)
{
    char path[PATH_MAX];

    if (!output)
        return CLI_OK;
    snprintf(path, sizeof(path), "%s", output);
    if (!access(dirname(path), W_OK))
        return CLI_OK;
    cli_error("%s: %s", output, strerror(errno));
    return CLI_FAILED;
}

/* ---- the values of a paper ---- */

static int make_directory(const char *path)
{
    if (!path || ((!mkdir(path, 0777) || errno == EEXIST) && !access(path, W_OK | X_OK)))
        return CLI_OK;
    cli_error("%s: %s", path, strerror(errno));
    return CLI_FAILED;
}

static int select_rows(struct paper_db *db, const char *papers, const char *rows, char *error,
                       size_t size)
{
    char *list = strdup(rows ? rows : papers), *rest = list, *name;
    int status = list ? 0 : -1;

    while (!status && (name = strsep(&rest, ",")))
        status = paper_db_select(db, name, error, size);
    for (unsigned int i = 0; !status && i < db->row_count; i++) {
        if (db->rows[i].selected && !data_is_listed(papers, db->rows[i].paper->name)) {
            snprintf(error, size, "%s is not a value of paper '%s'", db->rows[i].fields[FIELD_ID],
                     papers);
            status = -1;
        }
    }
    free(list);
    return status;
}

static int write_json(const json_t *document, const char *path)
{
    struct file_text file;
    FILE *out = file_begin(&file);

    if (!out) {
        cli_error("out of memory");
        return CLI_FAILED;
    }
    json_dumpf(document, out, JSON_INDENT(1) | JSON_REAL_PRECISION(RESULTS_DIGITS));
    fputc('\n', out);
    if (!file_end(&file, path))
        return CLI_OK;
    cli_error("%s: %s", path, strerror(errno));
    return CLI_FAILED;
}

static int leave_out(const struct invocation *invocation, const struct paper_db *db,
                     const char *papers)
{
    char *first = strndup(papers, strcspn(papers, ","));
    const struct leave_out_spec spec = { .all = !option_value(invocation, "leave-one-out"),
                                         .paper = option_value(invocation, "leave-one-out") ? first
                                                                                            : NULL,
                                         .curves = option_value(invocation, "by-curve"),
                                         .refit = option_value(invocation, "refit"),
                                         .keep = option_value(invocation, "keep-runs"),
                                         .at_once = option_number(invocation, "jobs", 0) };
    const char *output = option_value(invocation, "output");
    char *command, error[PATH_MAX + 512];
    struct leave_out result;
    json_t *document;
    int status = leave_out_run(db, &spec, &result, error, sizeof(error));

    free(first);
    if (status > 0)
        return CLI_SIGNALLED + status;
    if (status) {
        cli_error("%s", error);
        return CLI_FAILED;
    }
    command = options_invocation_text(invocation, "output");
    document = leave_out_json(&result, command);
    status = output ? write_json(document, output) : CLI_OK;
    if (option_value(invocation, "json"))
        print_json(document);
    else
        leave_out_print(&result, stdout);
    json_decref(document);
    free(command);
    leave_out_free(&result);
    return status;
}

static int calibrate_papers(const struct invocation *invocation, const char *papers)
{
    static const char *const others[] = { "start", "hold-out", "fit", "page" };
    char error[512];
    struct paper_db db;
    int status;

    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        if (option_value(invocation, others[i]))
            return cli_usage_error(invocation->command, "--%s does not go with --paper", others[i]);
    }
    if (invocation->operand_count)
        return cli_usage_error(invocation->command, "give result files or --paper, not both");
    if (option_value(invocation, "by-curve") && !option_value(invocation, "leave-one-out"))
        return cli_usage_error(invocation->command, "--by-curve needs --leave-one-out");
    if (option_value(invocation, "refit") && option_value(invocation, "by-curve"))
        return cli_usage_error(invocation->command, "--refit does not go with --by-curve");
    if (option_value(invocation, "refit") && !option_value(invocation, "leave-one-out"))
        return cli_usage_error(invocation->command, "--refit needs --leave-one-out");
    if (check_directory(option_value(invocation, "output")) ||
        make_directory(option_value(invocation, "keep-runs")) || papers_read(invocation, &db))
        return CLI_FAILED;
    if (select_rows(&db, papers, option_value(invocation, "rows"), error, sizeof(error)))
        status = cli_usage_error(invocation->command, "%s", error);
    else
        status = leave_out(invocation, &db, papers);
    paper_db_free(&db);
    return status;
}

/* ---- measured results ---- */

/* Rejects mistakes before anything runs. */
static int check(const struct invocation *invocation)
{
    static const char *const of_papers[] = { "leave-one-out", "by-curve", "rows", "refit",
                                             "keep-runs" };
    const char *start = option_value(invocation, "start"),
               *output = option_value(invocation, "output");
    char error[PATH_MAX + 512];
    struct keys *keys;
    int status = CLI_OK;

    for (size_t i = 0; i < sizeof(of_papers) / sizeof(*of_papers); i++) {
        if (option_value(invocation, of_papers[i]))
            return cli_usage_error(invocation->command, "--%s needs --paper", of_papers[i]);
    }
    if (!invocation->operand_count)
        return cli_usage_error(invocation->command, "no result files given");
    if (!start)
        return cli_usage_error(invocation->command,
                               "--start is missing: name the adapter that comes closest "
                               "(verbena list adapters)");
    if (output && !adapter_suffixed(output))
        return cli_usage_error(invocation->command, "--output must end in .adapter, not '%s'",
                               output);
    keys = malloc(sizeof(*keys));
    if (!keys)
        return CLI_FAILED;
    if (keys_read(start, keys, error, sizeof(error)) ||
        keys_choose(keys, option_value(invocation, "fit"), error, sizeof(error)))
        status = cli_usage_error(invocation->command, "%s", error);
    else if (output && file_same(output, keys->path))
        status =
            cli_usage_error(invocation->command, "--output would overwrite --start %s", keys->path);
    free(keys);
    if (!status)
        status = check_directory(output);
    return status ? status : check_directory(option_value(invocation, "page"));
}

int cli_calibrate(const struct invocation *invocation)
{
    const char *papers = option_value(invocation, "paper");
    unsigned int count = 0;
    struct results **files;
    char error[512];
    int status;

    if (papers)
        return calibrate_papers(invocation, papers);
    status = check(invocation);
    if (status)
        return status;
    files = calloc(invocation->operand_count, sizeof(*files));
    if (!files)
        return CLI_FAILED;
    for (int i = 0; !status && i < invocation->operand_count; i++) {
        if (results_read(invocation->operands[i], &files[i], error, sizeof(error))) {
            cli_error("%s", error);
            status = CLI_FAILED;
        } else {
            warn_of_version(files[count++]);
        }
    }
    if (!status)
        status = calibrate(invocation, files, count);
    for (unsigned int i = 0; i < count; i++)
        results_free(files[i]);
    free(files);
    return status;
}
