/* SPDX-License-Identifier: BSD-2-Clause */
#include "papers.h"
#include "launch.h"
#include "results/allocate.h"

#include <stdlib.h>
#include <string.h>

/* Papers that stand in for installed ones must not do so unnoticed. */
static void print_replaced(const struct paper_db *db)
{
    for (unsigned int i = 0; i < db->replaced_count; i++)
        fprintf(stderr, "verbena: note: paper '%s' of %s is replaced by one of --papers\n",
                db->replaced[i].name, db->replaced[i].path);
}

int papers_read(const struct invocation *invocation, struct paper_db *db)
{
    const char *given = option_value(invocation, "papers");
    char installed[PATH_MAX], error[PATH_MAX + 512], *list, *rest, *directory;
    const char **directories;
    unsigned int count = 0;
    int status;

    if (!launch_file("papers", installed))
        return CLI_FAILED;
    if (!given)
        given = getenv("VERBENA_PAPERS");
    directories = allocate_one_more(NULL, count, sizeof(*directories));
    directories[count++] = installed;
    rest = list = allocate_text(given);
    while ((directory = strsep(&rest, ":"))) {
        if (!*directory)
            continue;
        directories = allocate_one_more(directories, count, sizeof(*directories));
        directories[count++] = directory;
    }
    status = paper_db_read(directories, count, db, error, sizeof(error));
    free(directories);
    free(list);
    if (status) {
        cli_error("%s", error);
        return CLI_FAILED;
    }
    print_replaced(db);
    return CLI_OK;
}
