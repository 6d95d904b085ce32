/* SPDX-License-Identifier: BSD-2-Clause */
#include "origins.h"
#include "results/allocate.h"
#include "sim/adapter/adapter_file.h"
#include "sim/adapter/parameters.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ORIGIN_MAX 256
#define AS         "fitted, as "
#define FILES_MAX  16 /* based on each other */

struct origins {
    unsigned int file_count;
    char files[FILES_MAX][PATH_MAX];
    struct {
        const char *file;
        char text[ORIGIN_MAX];
    } keys[PARAMETER_ROWS_MAX];
};

struct walk {
    struct origins *origins;
    const char *file;
};

static void read_file(struct origins *origins, const char *path);

static void read_base(const struct walk *walk, const char *name)
{
    char path[PATH_MAX], error[PATH_MAX + 512];

    if (!parameters_find_base(walk->file, name, path, sizeof(path), error, sizeof(error)))
        read_file(walk->origins, path);
}

static int take_line(const struct adapter_line *line, void *context)
{
    const struct parameter_row *row = parameter_find(line->key);
    const struct walk *walk = context;

    if (!strcmp(line->key, "based-on"))
        read_base(walk, line->value);
    if (!row)
        return 0;
    walk->origins->keys[row - parameter_rows].file = walk->file;
    snprintf(walk->origins->keys[row - parameter_rows].text, ORIGIN_MAX, "%s", line->origin);
    return 0;
}

/* parameters_read() reports mistakes: here, what cannot be read has no origins. */
static void read_file(struct origins *origins, const char *path)
{
    struct walk walk = { .origins = origins };
    char error[PATH_MAX + 512];

    if (origins->file_count == FILES_MAX)
        return;
    walk.file = origins->files[origins->file_count++];
    snprintf((char *)walk.file, PATH_MAX, "%s", path);
    adapter_file_walk(path, take_line, &walk, error, sizeof(error));
}

struct origins *origins_read(const char *adapter)
{
    char path[PATH_MAX], error[PATH_MAX + 512];
    struct origins *origins;

    if (parameters_find(adapter, path, sizeof(path), error, sizeof(error)))
        return NULL;
    origins = allocate_zeroed(sizeof(*origins));
    read_file(origins, path);
    return origins;
}

void origins_free(struct origins *origins)
{
    free(origins);
}

const char *origins_text(const struct origins *origins, const char *key)
{
    return origins->keys[parameter_find(key) - parameter_rows].text;
}

const char *origins_leader(const struct origins *origins, const char *key)
{
    const char *text = origins_text(origins, key);
    const struct parameter_row *leader =
        strncmp(text, AS, strlen(AS)) ? NULL : parameter_find(text + strlen(AS));

    return leader ? leader->key : NULL;
}

const char *origins_file(const struct origins *origins, const char *key)
{
    return origins->keys[parameter_find(key) - parameter_rows].file;
}

bool origins_related(const struct origins *one, const struct origins *other)
{
    for (unsigned int i = 0; i < one->file_count; i++) {
        for (unsigned int k = 0; k < other->file_count; k++) {
            if (!strcmp(one->files[i], other->files[k]))
                return true;
        }
    }
    return false;
}
