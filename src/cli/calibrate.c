/* SPDX-License-Identifier: BSD-2-Clause */
/* verbena calibrate: an adapter file from measured results. */
#include "calibrate/calibrate.h"
#include "commands.h"
#include "report.h"
#include "results/schema.h"
#include "sim/adapter/adapter_file.h"
#include "util/file.h"

#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int write_adapter(const struct invocation *invocation,
                         const struct calibration *calibration, const char *path)
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

static int conclude(const struct invocation *invocation, struct results *measured,
                    const struct calibration *calibration)
{
    static const char *const labels[] = { "measured", "modelled" };
    struct results *runs[] = { measured, calibration->modelled };
    const char *path = option_value(invocation, "output"), *page = option_value(invocation, "page");
    int status = path ? write_adapter(invocation, calibration, path) : CLI_OK;

    if (option_value(invocation, "json")) {
        json_t *document = calibrate_json(calibration);

        json_dumpf(document, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(RESULTS_DIGITS));
        putchar('\n');
        json_decref(document);
    } else {
        calibrate_print(calibration, stdout);
    }
    if (!status && page)
        status = report_runs(runs, labels, 2, page);
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

/* Rejects mistakes before anything runs. */
static int check(const struct invocation *invocation)
{
    const char *start = option_value(invocation, "start"),
               *output = option_value(invocation, "output");
    char error[PATH_MAX + 512];
    struct keys *keys;
    int status = CLI_OK;

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
        status = cli_usage_error(invocation->command, "--output would overwrite --start %s",
                                 keys->path);
    free(keys);
    if (!status)
        status = check_directory(output);
    return status ? status : check_directory(option_value(invocation, "page"));
}

int cli_calibrate(const struct invocation *invocation)
{
    unsigned int count = 0;
    struct results **files;
    int status = check(invocation);
    char error[512];

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
