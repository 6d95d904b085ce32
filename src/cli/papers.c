/* SPDX-License-Identifier: BSD-2-Clause */
#include "papers.h"
#include "launch.h"
#include "results/allocate.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>

/* Papers that stand in for installed ones must not do so unnoticed. */
static void print_replaced(const struct paper_db *db)
{
    for (unsigned int i = 0; i < db->replaced_count; i++)
        fprintf(stderr, "verbena: note: paper '%s' of %s is replaced by one of --papers\n",
                db->replaced[i].name, db->replaced[i].path);
}

struct directories {
    const char **list;
    unsigned int count;
};

static void add_directory(struct directories *directories, const char *path)
{
    directories->list =
        allocate_one_more(directories->list, directories->count, sizeof(*directories->list));
    directories->list[directories->count++] = path;
}

static int read_papers(const struct invocation *invocation, bool all, struct paper_db *db)
{
    const char *given = option_value(invocation, "papers");
    char installed[PATH_MAX], pattern[PATH_MAX + 4], error[PATH_MAX + 512], *list, *rest, *directory;
    struct directories directories = { 0 };
    glob_t below = { 0 };
    int status;

    if (!launch_file("papers", installed))
        return CLI_FAILED;
    if (!given)
        given = getenv("VERBENA_PAPERS");
    add_directory(&directories, installed);
    snprintf(pattern, sizeof(pattern), "%s/*/", installed);
    if (all && !glob(pattern, 0, NULL, &below)) {
        for (size_t i = 0; i < below.gl_pathc; i++)
            add_directory(&directories, below.gl_pathv[i]);
    }
    rest = list = allocate_text(given);
    while ((directory = strsep(&rest, ":"))) {
        if (*directory)
            add_directory(&directories, directory);
    }
    status = paper_db_read(directories.list, directories.count, db, error, sizeof(error));
    free(directories.list);
    globfree(&below);
    free(list);
    if (status) {
        cli_error("%s", error);
        return CLI_FAILED;
    }
    print_replaced(db);
    return CLI_OK;
}

int papers_read(const struct invocation *invocation, struct paper_db *db)
{
    return read_papers(invocation, false, db);
}

int papers_read_all(const struct invocation *invocation, struct paper_db *db)
{
    return read_papers(invocation, true, db);
}
