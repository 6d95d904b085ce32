/* SPDX-License-Identifier: BSD-2-Clause */
#include "calibrate/kept_runs.h"

#include "calibrate/data.h"
#include "calibrate/keys.h"
#include "results/allocate.h"
#include "util/file.h"
#include "util/hash.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

/* What decides the results of a run, besides the model itself: its command, and every number of its
 * adapter. */
static char *text_of(const struct job *job)
{
    struct keys *keys = allocate_zeroed(sizeof(*keys));
    struct file_text file;
    FILE *out = data_begin_lines(&file);
    char error[512];

    fprintf(out, "%s\n%s\n", job->line, job->set ? job->set : "");
    if (!keys_read(job->adapter, keys, error, sizeof(error)))
        keys_write_trial(keys, NULL, out);
    free(keys);
    return data_take_lines(&file);
}

static void path_of(const char *directory, const struct job *job, char *path, size_t size)
{
    char *text = text_of(job);

    snprintf(path, size, "%s/%016llx.json", directory, (unsigned long long)hash_text(text));
    free(text);
}

void kept_runs_take(const char *directory, struct jobs *jobs)
{
    char path[PATH_MAX], error[PATH_MAX + 512];

    for (unsigned int i = 0; i < jobs->count; i++) {
        struct job *job = &jobs->list[i];

        path_of(directory, job, path, sizeof(path));
        if (!access(path, R_OK) && !results_read(path, &job->results, error, sizeof(error)))
            job->started = true;
    }
}

int kept_runs_put(const char *directory, const char *from, const struct job *job)
{
    char path[PATH_MAX], source[PATH_MAX], error[PATH_MAX + 512], *text;
    size_t length;
    int status;

    snprintf(source, sizeof(source), "%s/%s.json", from, job->name);
    text = file_read(source, FILE_DATA_MAX, &length, error, sizeof(error));
    if (!text)
        return -1;
    path_of(directory, job, path, sizeof(path));
    status = file_write(path, text, length);
    free(text);
    return status;
}
