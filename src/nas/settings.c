/* SPDX-License-Identifier: BSD-2-Clause */
#include "settings.h"
#include "util/file.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* In the order of enum nas_kernel_id and enum nas_class. */
static const char kernel_names[NAS_KERNELS][3] = { "is", "ft", "cg", "mg", "lu" };
static const char class_letters[] = "SWABC";

const struct option_row nas_rows[] = { NAS_OPTION_ROWS, { .name = NULL } };

char nas_class_letter(enum nas_class class)
{
    return class_letters[class];
}

const char *nas_kernel_name(enum nas_kernel_id kernel)
{
    return kernel_names[kernel];
}

void nas_settings_init(struct nas_settings *settings)
{
    char error[256];

    memset(settings, 0, sizeof(*settings));
    for (const struct option_row *row = nas_rows; row->name; row++) {
        if (row->default_value)
            option_store(row, row->default_value, settings, error, sizeof(error));
    }
}

int nas_read_kernel(const char *name, enum nas_kernel_id *kernel, char *error, size_t size)
{
    for (*kernel = 0; *kernel < NAS_KERNELS; ++*kernel) {
        if (!strcmp(name, kernel_names[*kernel]))
            return 0;
    }
    snprintf(error, size, "unknown kernel '%s'; the kernels are " NAS_KERNEL_LIST, name);
    return -1;
}

int nas_check_ranks(uint64_t ranks, char *error, size_t size)
{
    if (ranks && !(ranks & (ranks - 1)))
        return 0;
    snprintf(error, size, "the number of ranks must be a power of two, not %llu",
             (unsigned long long)ranks);
    return -1;
}

int nas_check_output(const char *path, char *error, size_t size)
{
    static const char ending[] = ".json";
    size_t length = strlen(path), end = sizeof(ending) - 1;
    char directory[PATH_MAX];

    if (file_is_stdout(path))
        return 0;
    if (length <= end || strcmp(path + length - end, ending)) {
        snprintf(error, size, "--output needs a name that ends in .json, or -, not '%s'", path);
        return -1;
    }
    snprintf(directory, sizeof(directory), "%s", path);
    if (access(dirname(directory), W_OK)) {
        snprintf(error, size, "%s: %s", path, strerror(errno));
        return -1;
    }
    return 0;
}
