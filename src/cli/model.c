/* SPDX-License-Identifier: BSD-2-Clause */
#include "model.h"
#include "wire.h"
#include "sim/sched/compute.h"
#include "sim/adapter/faults.h"
#include "sim/adapter/parameters.h"
#include "sim/adapter/shape.h"
#include "util/memory_file.h"
#include "util/output_limit.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_modelled(const struct invocation *invocation)
{
    const char *name = option_value(invocation, "adapter");

    return name && strcmp(name, "live");
}

int model_check(const struct invocation *invocation)
{
    static const char *const only_modelled[] = { "set",        "fabric-shape", "faults",
                                                 "compute",    "stats-file",   "explain",
                                                 "trace",      "pcap" };

    if ((option_value(invocation, "trace-limit") && !option_value(invocation, "trace")) ||
        (option_value(invocation, "pcap-limit") && !option_value(invocation, "pcap")))
        return cli_usage_error(invocation->command, "a limit needs its file: --trace or --pcap");
    if (is_modelled(invocation))
        return CLI_OK;
    for (size_t i = 0; i < sizeof(only_modelled) / sizeof(*only_modelled); i++) {
        if (!strcmp(only_modelled[i], "faults") && option_value(invocation, "wire"))
            continue; /* the wire injects them too */
        if (option_value(invocation, only_modelled[i]))
            return cli_usage_error(invocation->command,
                                   "--%s needs a modelled adapter: name one with "
                                   "--adapter",
                                   only_modelled[i]);
    }
    return CLI_OK;
}

static int check_faults(const struct invocation *invocation)
{
    const char *text = option_value(invocation, "faults");
    struct faults faults;
    char error[512];

    if (!text || !faults_read(text, &faults, error, sizeof(error)))
        return CLI_OK;
    return cli_usage_error(invocation->command, "%s", error);
}

static int check_compute(const struct invocation *invocation)
{
    const char *text = option_value(invocation, "compute");
    char error[512];
    double factor;

    if (!text)
        return CLI_OK;
    if (compute_read(text, &factor, error, sizeof(error)))
        return cli_usage_error(invocation->command, "%s", error);
    if (!strcmp(text, "copies") && strcmp(invocation->command->name, "run"))
        return cli_usage_error(invocation->command, "--compute copies is for verbena run: the MPI "
                                                    "component and the suite charge for copies anyway");
    return CLI_OK;
}

static const struct {
    const char *option, *variable;
    bool can_be_large;
} files[] = {
    { "trace", "VERBENA_TRACE", true },
    { "pcap", "VERBENA_PCAP", true },
    { "stats-file", "VERBENA_STATS_FILE", false },
};

/* A memfd in which processes report files that they could not write; -1: no output files. */
static int failures = -1;

/* The memfd is in this process, which outlives the writers. */
static int export_failures(void)
{
    char path[64];

    if (failures >= 0)
        return CLI_OK;
    failures = memory_file("verbena-failures", MFD_CLOEXEC);
    if (failures < 0) {
        cli_error("a file in memory: %s", strerror(errno));
        return CLI_FAILED;
    }
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), failures);
    setenv("VERBENA_FAILURES", path, 1);
    return CLI_OK;
}

/* Make the path absolute: the program may change its directory before the library opens the file.
 * An existing file is truncated. */
static int export_file(const struct invocation *invocation, const char *option,
                       const char *variable)
{
    const char *path = option_value(invocation, option);
    char whole[PATH_MAX];
    FILE *file;

    if (!path)
        return CLI_OK;
    file = fopen(path, "w");
    if (!file || !realpath(path, whole)) {
        cli_error("--%s: %s: %s", option, path, strerror(errno));
        if (file)
            fclose(file);
        return CLI_FAILED;
    }
    fclose(file);
    setenv(variable, whole, 1);
    return export_failures();
}

/* No program has written it. */
static void remove_if_empty(const char *path)
{
    struct stat status;

    if (path && !stat(path, &status) && S_ISREG(status.st_mode) && !status.st_size)
        remove(path);
}

static void print_size(const char *option, const char *path)
{
    static const char *const units[] = { "bytes", "KiB", "MiB", "GiB", "TiB" };
    struct stat status;
    int unit = 0;
    double size;

    if (!path || stat(path, &status) || !S_ISREG(status.st_mode))
        return;
    for (size = status.st_size; size >= 1024; unit++)
        size /= 1024;
    cli_error("--%s %s: %.*f %s", option, path, unit ? 1 : 0, size, units[unit]);
}

int model_finish(int status)
{
    char text[2 * PATH_MAX], *rest = text, *line;
    bool failed = false;
    ssize_t length;

    if (failures < 0)
        return status;
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        remove_if_empty(getenv(files[i].variable));
        if (files[i].can_be_large)
            print_size(files[i].option, getenv(files[i].variable));
    }
    length = pread(failures, text, sizeof(text) - 1, 0);
    text[length > 0 ? length : 0] = '\0';
    while ((line = strsep(&rest, "\n")) && *line) {
        bool note = !strncmp(line, OUTPUT_NOTE, strlen(OUTPUT_NOTE));

        cli_error("%s", line + (note ? strlen(OUTPUT_NOTE) : 0));
        failed |= !note;
    }
    return failed && !status ? CLI_FAILED : status;
}

/* --set and --fabric-shape, to be freed. The path of a file becomes absolute, for programs that
 * change their directory. */
static char *settings_of(const struct invocation *invocation)
{
    const char *shape = option_value(invocation, "fabric-shape");
    char whole[PATH_MAX];

    if (shape && strpbrk(shape, "./") && realpath(shape, whole))
        shape = whole;
    return shape_settings(option_value(invocation, "set"), shape);
}

/* Reads the parameters, and hands the adapter to the programs. */
static int export_adapter(const struct invocation *invocation, struct parameters *parameters)
{
    char path[PATH_MAX], whole[PATH_MAX], error[512] = "out of memory";
    char *settings = settings_of(invocation);

    if (!settings ||
        parameters_find(option_value(invocation, "adapter"), path, sizeof(path), error,
                        sizeof(error)) ||
        parameters_read(path, settings, parameters, error, sizeof(error))) {
        cli_error("%s", error);
        free(settings);
        return CLI_USAGE;
    }
    setenv("VERBENA_ADAPTER", realpath(path, whole) ? whole : path, 1);
    setenv("VERBENA_SET", settings, 1);
    free(settings);
    return CLI_OK;
}

int model_export(const struct invocation *invocation)
{
    char ports[16];
    struct parameters parameters;

    if (model_check(invocation) || wire_export(invocation))
        return CLI_USAGE;
    if (!is_modelled(invocation)) {
        unsetenv("VERBENA_ADAPTER");
        return check_faults(invocation);
    }
    if (export_adapter(invocation, &parameters) || check_faults(invocation) ||
        check_compute(invocation))
        return CLI_USAGE;
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        if (export_file(invocation, files[i].option, files[i].variable))
            return CLI_FAILED;
    }
    snprintf(ports, sizeof(ports), "%llu", (unsigned long long)parameters.link.ports);
    setenv("VERBENA_PORTS", ports, 0);
    return CLI_OK;
}

void model_export_seed(void)
{
    if (getenv("VERBENA_ADAPTER"))
        setenv("VERBENA_SEED", "1", 0);
}
