/* SPDX-License-Identifier: BSD-2-Clause */
/* verbena run: run a program on the software adapter, and clean up after it. */
#include "commands.h"
#include "binary.h"
#include "faultplan.h"
#include "guardian.h"
#include "launch.h"
#include "model.h"
#include "start.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

static bool gains_privileges(const char *path)
{
    struct stat status;

    if (stat(path, &status))
        return false;
    if ((status.st_mode & S_ISUID) && status.st_uid != getuid())
        return true;
    if ((status.st_mode & S_ISGID) && status.st_gid != getgid())
        return true;
    return getuid() && getxattr(path, "security.capability", NULL, 0) > 0;
}

static bool charges_copies(void)
{
    const char *compute = getenv("VERBENA_COMPUTE");

    return compute && !strcmp(compute, "copies");
}

/* Only a warning: the program may do nothing but start others. */
static void warn_if_not_preloadable(const char *path)
{
    switch (binary_type_of(path)) {
    case BINARY_STATIC:
        cli_error("warning: %s is statically linked, so no library can be preloaded; "
                  "it will not see the software adapter",
                  path);
        return;
    case BINARY_FOREIGN:
        cli_error("warning: %s is built for another word size or processor; "
                  "it will not see the software adapter",
                  path);
        return;
    case BINARY_NONE:
    case BINARY_DYNAMIC:
        break;
    }
    if (gains_privileges(path))
        cli_error("warning: %s gains privileges when it starts, so the dynamic linker "
                  "ignores LD_PRELOAD; it will not see the software adapter",
                  path);
}

static int check_node(const struct invocation *invocation)
{
    uint64_t nodes = option_number(invocation, "nodes", 1);
    uint64_t node = option_number(invocation, "node", 0);

    if (option_value(invocation, "nodes") && node >= nodes)
        return cli_usage_error(invocation->command,
                               "--node %llu: the fabric has %llu nodes, numbered from 0",
                               (unsigned long long)node, (unsigned long long)nodes);
    return CLI_OK;
}

int cli_run(const struct invocation *invocation)
{
    char path[PATH_MAX];
    struct launch launch;
    struct plan plan;
    bool modelled;
    int status;

    if (!invocation->operand_count)
        return cli_usage_error(invocation->command, "no program given");
    if (check_node(invocation) || faultplan_read(invocation, &plan))
        return CLI_USAGE;
    if (!launch_find(&launch))
        return CLI_FAILED;
    options_export(invocation);
    setenv("VERBENA_WARN_IDLE", "1", 0);
    status = model_export(invocation);
    if (status)
        return status;
    if (start_find(invocation->operands[0], path))
        warn_if_not_preloadable(path);
    modelled = getenv("VERBENA_ADAPTER") != NULL;
    if (launch_environment(&launch, modelled ? LAUNCH_GUEST : NULL) ||
        (modelled && charges_copies() && launch_preload(&launch, LAUNCH_COPIES)))
        return CLI_FAILED;
    if (modelled)
        launch_fix_addresses();
    guardian_begin();
    status = start_and_wait(invocation->operands[0], invocation->operands);
    guardian_end(status);
    return model_finish(status);
}
