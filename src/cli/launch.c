/* SPDX-License-Identifier: BSD-2-Clause */
#include "launch.h"
#include "binary.h"
#include "options.h"

#include <dlfcn.h>
#include <errno.h>
#include <libgen.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIBRARY         "libverbena.so"
#define PERSONALITY_ASK 0xffffffff

static const char *const dropin_names[] = { "libibverbs.so.1", "librdmacm.so.1" };

static bool own_directory(char *directory)
{
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);

    if (length < 0) {
        cli_error("/proc/self/exe: %s", strerror(errno));
        return false;
    }
    path[length] = '\0';
    strcpy(directory, dirname(path));
    return true;
}

static bool joined(char *path, const char *directory, const char *name)
{
    return snprintf(path, PATH_MAX, "%s/%s", directory, name) < PATH_MAX;
}

/* The library that the dynamic linker loads by this name without us; empty if there is none. */
static void system_library(const char *name, char *path)
{
    void *handle = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    struct link_map *map = NULL;

    *path = '\0';
    if (!handle)
        return;
    if (!dlinfo(handle, RTLD_DI_LINKMAP, &map) && map->l_name)
        snprintf(path, PATH_MAX, "%s", map->l_name);
    dlclose(handle);
}

/* Without a symbol version that the system's library defines, a drop-in would keep programs that
 * need this version from starting. */
static void choose_dropins(struct launch *launch)
{
    char directory[PATH_MAX], ours[PATH_MAX], theirs[PATH_MAX], missing[64];

    launch->dropins[0] = launch->why_no_dropins[0] = '\0';
    if (!joined(directory, launch->directory, "dropin"))
        return;
    for (size_t i = 0; i < sizeof(dropin_names) / sizeof(*dropin_names); i++) {
        if (!joined(ours, directory, dropin_names[i]))
            return;
        system_library(dropin_names[i], theirs);
        if (!binary_versions_cover(ours, theirs, missing, sizeof(missing))) {
            snprintf(launch->why_no_dropins, sizeof(launch->why_no_dropins), "%s lacks %s", ours,
                     missing);
            return;
        }
    }
    strcpy(launch->dropins, directory);
}

bool launch_find(struct launch *launch)
{
    static const char *const directories[] = { "lib", "../" VERBENA_LIBDIR "/verbena" };
    char own[PATH_MAX], candidate[PATH_MAX], library[PATH_MAX];

    if (!own_directory(own))
        return false;
    for (size_t i = 0; i < sizeof(directories) / sizeof(*directories); i++) {
        if (!joined(candidate, own, directories[i]) || !joined(library, candidate, LIBRARY) ||
            access(library, R_OK) || !realpath(candidate, launch->directory))
            continue;
        choose_dropins(launch);
        return true;
    }
    cli_error(LIBRARY " is neither in %s/%s nor in %s/%s", own, directories[0], own,
              directories[1]);
    return false;
}

/* Looks for 'name' in directories relative to this program. */
static bool find_beside(const char *const directories[2], const char *name, int mode, char *path)
{
    char own[PATH_MAX], directory[PATH_MAX];

    if (!own_directory(own))
        return false;
    for (int i = 0; i < 2; i++) {
        if (joined(directory, own, directories[i]) && joined(path, directory, name) &&
            !access(path, mode))
            return true;
    }
    cli_error("%s is neither in %s/%s nor in %s/%s", name, own, directories[0], own,
              directories[1]);
    return false;
}

bool launch_program(const char *name, char *path)
{
    static const char *const directories[] = { "libexec", "../" VERBENA_LIBEXECDIR "/verbena" };

    return find_beside(directories, name, X_OK, path);
}

bool launch_file(const char *name, char *path)
{
    static const char *const directories[] = { "share", "../" VERBENA_DATADIR "/verbena" };

    return find_beside(directories, name, R_OK, path);
}

static int prepend(const char *variable, const char *value)
{
    const char *present = getenv(variable);
    char *text;
    int status;

    if (!present || !*present)
        return setenv(variable, value, 1);
    if (asprintf(&text, "%s:%s", value, present) < 0)
        return -1;
    status = setenv(variable, text, 1);
    free(text);
    return status;
}

/* A library built with a sanitizer needs the sanitizer's runtime loaded before it. This program was
 * built with the same sanitizer and has the runtime loaded. The guest library precedes the runtime:
 * it must be called by the program itself. */
static int prepend_sanitizer(bool guest)
{
    static const char *const marks[] = { "__asan_init", "__tsan_init" };

    for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++) {
        void *mark = dlsym(RTLD_DEFAULT, marks[i]);
        Dl_info where;

        if (!mark || !dladdr(mark, &where) || !strstr(where.dli_fname, ".so"))
            continue;
        if (guest && prepend("ASAN_OPTIONS", "verify_asan_link_order=0"))
            return -1;
        return prepend("LD_PRELOAD", where.dli_fname);
    }
    return 0;
}

int launch_preload(const struct launch *launch, const char *name)
{
    char library[PATH_MAX];

    /* LD_PRELOAD is split at blanks, LD_LIBRARY_PATH is not. */
    if (strchr(launch->directory, ' '))
        return prepend("LD_PRELOAD", name);
    return joined(library, launch->directory, name) ? prepend("LD_PRELOAD", library) : -1;
}

int launch_environment(const struct launch *launch, const char *beside)
{
    int failed = 0;

    if (strchr(launch->directory, ':')) {
        cli_error("the dynamic linker cannot load from a path with a colon: %s", launch->directory);
        return -1;
    }
    if (strchr(launch->directory, ' '))
        failed |= prepend("LD_LIBRARY_PATH", launch->directory);
    failed |= launch_preload(launch, LIBRARY);
    failed |= prepend_sanitizer(beside);
    if (beside)
        failed |= launch_preload(launch, beside);
    if (*launch->dropins)
        failed |= prepend("LD_LIBRARY_PATH", launch->dropins);
    return failed;
}

void launch_fix_addresses(void)
{
    int present = personality(PERSONALITY_ASK);

    if (present >= 0)
        personality(present | ADDR_NO_RANDOMIZE);
}

int launch_status(int wait_status)
{
    if (WIFSIGNALED(wait_status))
        return CLI_SIGNALLED + WTERMSIG(wait_status);
    return WEXITSTATUS(wait_status);
}
