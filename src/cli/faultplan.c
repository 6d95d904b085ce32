/* SPDX-License-Identifier: BSD-2-Clause */
#include "faultplan.h"
#include "check/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int check_file(const struct invocation *invocation, const char *path)
{
    FILE *file = fopen(path, "re");
    char *text = NULL, error[256];
    struct plan plan;
    size_t size = 0;
    int status = CLI_OK;

    if (!file)
        return cli_usage_error(invocation->command, "--inject-file %s: %s", path, strerror(errno));
    if (getdelim(&text, &size, '\0', file) >= 0 && plan_read(text, &plan, error, sizeof(error)))
        status = cli_usage_error(invocation->command, "%s: %s", path, error);
    free(text);
    fclose(file);
    return status;
}

int faultplan_check(const struct invocation *invocation)
{
    const char *text = option_value(invocation, "inject");
    const char *path = option_value(invocation, "inject-file");
    struct plan plan;
    char error[256];

    if (text && plan_read(text, &plan, error, sizeof(error)))
        return cli_usage_error(invocation->command, "%s", error);
    return path ? check_file(invocation, path) : CLI_OK;
}
