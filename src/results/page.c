/* SPDX-License-Identifier: BSD-2-Clause */
#include "page.h"
#include "schema.h"
#include "util/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MARK "@DATA@"

/* In JSON, '<' occurs only in strings; in HTML it could end the script element. */
static void put_json(const char *json, FILE *out)
{
    for (; *json; json++) {
        if (*json == '<')
            fputs("\\u003c", out);
        else
            fputc(*json, out);
    }
}

static int put_page(const char *template, const char *mark, const char *json, const char *path,
                    char *error, size_t size)
{
    struct file_text file;
    FILE *out = file_begin(&file);
    bool failed = !out;

    if (out) {
        fwrite(template, 1, mark - template, out);
        put_json(json, out);
        fputs(mark + strlen(MARK), out);
        failed = file_end(&file, path);
    }
    if (failed)
        snprintf(error, size, "%s: %s", file_shown(path), strerror(errno));
    return failed ? -1 : 0;
}

int page_write(const char *template_path, const json_t *data, const char *path, char *error,
               size_t size)
{
    size_t length;
    char *template = file_read(template_path, FILE_DATA_MAX, &length, error, size);
    char *mark = template ? strstr(template, MARK) : NULL;
    char *json = mark ? json_dumps(data, JSON_COMPACT | JSON_REAL_PRECISION(RESULTS_DIGITS)) : NULL;
    int status = -1;

    if (json)
        status = put_page(template, mark, json, path, error, size);
    else if (template)
        snprintf(error, size, "%s: %s", template_path,
                 mark ? "out of memory for its data" : "has no " MARK "");
    free(json);
    free(template);
    return status;
}
