/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/adapter/adapter_file.h"

#include "util/file.h"

#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *trimmed(char *text)
{
    char *end;

    while (isspace((unsigned char)*text))
        text++;
    end = text + strlen(text);
    while (end > text && isspace((unsigned char)end[-1]))
        end--;
    *end = '\0';
    return text;
}

int adapter_line_split(char *text, struct adapter_line *line)
{
    char *comment = strchr(text, '#'), *equals;

    if (comment)
        *comment++ = '\0';
    line->origin = comment ? trimmed(comment) : "";
    line->key = trimmed(text);
    if (!*line->key)
        return 0;
    equals = strchr(line->key, '=');
    if (!equals)
        return -1;
    *equals = '\0';
    line->key = trimmed(text);
    line->value = trimmed(equals + 1);
    return *line->key && *line->value ? 1 : -1;
}

static int walk_lines(char *text, const char *path,
                      int (*visit)(const struct adapter_line *line, void *context), void *context,
                      char *error, size_t size)
{
    struct adapter_line line = { .number = 0 };
    int status = 0;

    while (!status && text) {
        line.number++;
        switch (adapter_line_split(strsep(&text, "\n"), &line)) {
        case 1:
            status = visit(&line, context);
            break;
        case -1:
            snprintf(error, size, "%s:%u: expected 'key = value'", path, line.number);
            status = -1;
            break;
        }
    }
    return status;
}

int adapter_file_walk(const char *path,
                      int (*visit)(const struct adapter_line *line, void *context), void *context,
                      char *error, size_t size)
{
    size_t length;
    char *text = file_read(path, FILE_TEXT_MAX, &length, error, size);
    int status = text ? walk_lines(text, path, visit, context, error, size) : -1;

    free(text);
    return status;
}

/* The directory of the program or library this function is linked into. */
static bool own_directory(char *path)
{
    struct link_map *map = NULL;
    Dl_info info;
    char *slash;

    if (!dladdr1((void *)own_directory, &info, (void **)&map, RTLD_DL_LINKMAP))
        return false;
    if (!realpath(*map->l_name ? map->l_name : "/proc/self/exe", path))
        return false;
    slash = strrchr(path, '/');
    *slash = '\0';
    return true;
}

int adapter_directory(char *path, size_t path_size, char *error, size_t size)
{
    /* In a build directory, relative to the library or command; installed, relative to the command,
     * or to the library, which may be two or three levels below the prefix. */
    static const char *const candidates[] = {
        "adapters",
        "../adapters",
        "../" VERBENA_DATADIR "/verbena/adapters",
        "../../" VERBENA_DATADIR "/verbena/adapters",
        "../../../" VERBENA_DATADIR "/verbena/adapters",
    };
    const char *chosen = getenv("VERBENA_ADAPTERS");
    char own[PATH_MAX];

    if (chosen && *chosen) {
        if ((size_t)snprintf(path, path_size, "%s", chosen) < path_size)
            return 0;
        snprintf(error, size, "VERBENA_ADAPTERS: %s", strerror(ENAMETOOLONG));
        return -1;
    }
    if (!own_directory(own)) {
        snprintf(error, size, "cannot find the directory of this program: set VERBENA_ADAPTERS");
        return -1;
    }
    for (size_t i = 0; i < sizeof(candidates) / sizeof(*candidates); i++) {
        if ((size_t)snprintf(path, path_size, "%s/%s", own, candidates[i]) < path_size &&
            !access(path, X_OK))
            return 0;
    }
    snprintf(error, size, "no adapter files came with %s: set VERBENA_ADAPTERS", own);
    return -1;
}

bool adapter_suffixed(const char *name)
{
    size_t length = strlen(name), suffix = strlen(ADAPTER_SUFFIX);

    return length > suffix && !strcmp(name + length - suffix, ADAPTER_SUFFIX);
}

bool adapter_name_is_path(const char *name)
{
    return strchr(name, '/') || adapter_suffixed(name);
}

static int is_adapter(const struct dirent *entry)
{
    return adapter_suffixed(entry->d_name);
}

int adapter_list(void (*visit)(const char *name, void *context), void *context, char *error,
                 size_t size)
{
    char directory[PATH_MAX];
    struct dirent **entries;
    int count;

    if (adapter_directory(directory, sizeof(directory), error, size))
        return -1;
    count = scandir(directory, &entries, is_adapter, alphasort);
    if (count < 0) {
        snprintf(error, size, "%s: %s", directory, strerror(errno));
        return -1;
    }
    for (int i = 0; i < count; i++) {
        entries[i]->d_name[strlen(entries[i]->d_name) - strlen(ADAPTER_SUFFIX)] = '\0';
        visit(entries[i]->d_name, context);
        free(entries[i]);
    }
    free(entries);
    return 0;
}
