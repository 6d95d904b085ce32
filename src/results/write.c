/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes results to a file. */
#include "results.h"
#include "util/file.h"

#include <errno.h>
#include <string.h>

static bool is_csv(const char *path)
{
    size_t length = strlen(path);

    return length > 4 && !strcmp(path + length - 4, ".csv");
}

int results_write_file(const struct results *results, const char *path)
{
    struct file_text file;
    FILE *out = file_begin(&file);
    int error;

    if (!out)
        return -1;
    if (!(is_csv(path) ? results_write_csv(results, out) : results_write_json(results, out)))
        return file_end(&file, path);
    error = errno;
    file_drop(&file);
    errno = error;
    return -1;
}
