/* SPDX-License-Identifier: BSD-2-Clause */
#include "record.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VARIABLE "VERBENA_RECORD"

static unsigned long ranks;

/* The program may change its directory, so the path becomes absolute. */
int record_export(const struct invocation *invocation)
{
    const char *path = option_value(invocation, "record");
    char copy[PATH_MAX], directory[PATH_MAX], whole[2 * PATH_MAX];

    unsetenv(VARIABLE);
    if (!path)
        return CLI_OK;
    snprintf(copy, sizeof(copy), "%s", path);
    if (!realpath(dirname(copy), directory) || access(directory, W_OK)) {
        cli_error("--record %s: %s", path, strerror(errno));
        return CLI_FAILED;
    }
    snprintf(copy, sizeof(copy), "%s", path);
    snprintf(whole, sizeof(whole), "%s/%s", directory, basename(copy));
    setenv(VARIABLE, whole, 1);
    ranks = option_number(invocation, "ranks", 1);
    return CLI_OK;
}

static void part_path(char path[2 * PATH_MAX], unsigned long rank)
{
    snprintf(path, 2 * PATH_MAX, "%s.%lu", getenv(VARIABLE), rank);
}

/* Returns 0, or -1 with errno. */
static int append_part(FILE *out, const char *path)
{
    char bytes[1 << 16];
    FILE *part = fopen(path, "r");
    size_t length;

    if (!part)
        return -1;
    while ((length = fread(bytes, 1, sizeof(bytes), part)) > 0) {
        if (fwrite(bytes, 1, length, out) < length)
            break;
    }
    length = ferror(part) || ferror(out);
    fclose(part);
    return length ? -1 : 0;
}

static int join_parts(const char *joined)
{
    FILE *out = fopen(joined, "w");
    char part[2 * PATH_MAX];

    if (!out) {
        cli_error("--record: %s: %s", joined, strerror(errno));
        return -1;
    }
    for (unsigned long rank = 0; rank < ranks; rank++) {
        part_path(part, rank);
        if (append_part(out, part)) {
            cli_error(
                "--record: rank %lu left no schedule, %s: %s; does it call MPI_Finalize, with "
                "the component of Verbena?",
                rank, part, strerror(errno));
            fclose(out);
            return -1;
        }
    }
    if (fclose(out)) {
        cli_error("--record: %s: %s", joined, strerror(errno));
        return -1;
    }
    return 0;
}

int record_finish(int status)
{
    const char *path = getenv(VARIABLE);
    char joined[2 * PATH_MAX], part[2 * PATH_MAX];

    if (!path)
        return status;
    snprintf(joined, sizeof(joined), "%s.joining", path);
    if (status) {
        cli_error("--record: the program has failed, and left no schedule");
    } else if (join_parts(joined)) {
        remove(joined);
        status = CLI_FAILED;
    } else if (rename(joined, path)) {
        cli_error("--record: %s: %s", path, strerror(errno));
        remove(joined);
        status = CLI_FAILED;
    }
    for (unsigned long rank = 0; rank < ranks; rank++) {
        part_path(part, rank);
        remove(part);
    }
    return status;
}
