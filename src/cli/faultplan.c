/* SPDX-License-Identifier: BSD-2-Clause */
#include "faultplan.h"

int faultplan_read(const struct invocation *invocation, struct plan *plan)
{
    char error[256];

    if (plan_read(option_value(invocation, "inject"), option_value(invocation, "inject-file"), plan,
                  error, sizeof(error)))
        return cli_usage_error(invocation->command, "%s", error);
    return CLI_OK;
}
