#include "page.h"
#include "schema.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MARK "@DATA@"

static char *read_whole(const char *path, char *error, size_t size)
{
    FILE *in = fopen(path, "r");
    char *text = NULL;
    size_t room = 0;
    ssize_t length = -1;

    errno = 0;
    if (in)
        length = getdelim(&text, &room, '\0', in);
    if (length < 0) {
        snprintf(error, size, "%s: %s", path, errno ? strerror(errno) : "is empty");
        free(text);
        text = NULL;
    }
    if (in)
        fclose(in);
    return text;
}

/* In JSON a '<' can only stand within a string; in a page it could end the element. */
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
    FILE *out = fopen(path, "w");
    bool failed = !out;

    if (out) {
        fwrite(template, 1, mark - template, out);
        put_json(json, out);
        fputs(mark + strlen(MARK), out);
        failed = ferror(out);
        failed |= fclose(out) != 0;
    }
    if (failed)
        snprintf(error, size, "%s: %s", path, strerror(errno));
    return failed ? -1 : 0;
}

int page_write(const char *template_path, const json_t *data, const char *path, char *error,
               size_t size)
{
    char *template = read_whole(template_path, error, size);
    char *mark = template ? strstr(template, MARK) : NULL;
    char *json = mark ? json_dumps(data, JSON_COMPACT | JSON_REAL_PRECISION(RESULTS_DIGITS)) : NULL;
    int status = -1;

    if (json)
        status = put_page(template, mark, json, path, error, size);
    else if (template)
        snprintf(error, size, "%s: %s", template_path,
                 mark ? "out of memory for its data" : "has no place for the data");
    free(json);
    free(template);
    return status;
}
