/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire.h"
#include "util/netif.h"

#include <stdlib.h>
#include <string.h>

int wire_export(const struct invocation *invocation)
{
    const char *adapter = option_value(invocation, "adapter");
    const char *interface = option_value(invocation, "wire");
    char error[512], fabric[NETIF_FABRIC];
    struct netif netif;

    if (!interface)
        return CLI_OK;
    if (adapter && strcmp(adapter, "live"))
        return cli_usage_error(invocation->command,
                               "--wire is for the software adapter, --adapter %s for a model: "
                               "choose one",
                               adapter);
    if (netif_find(interface, &netif, error, sizeof(error)))
        return cli_usage_error(invocation->command, "--wire: %s", error);
    netif_fabric(&netif, fabric);
    setenv("VERBENA_FABRIC", fabric, option_value(invocation, "fabric") == NULL);
    return CLI_OK;
}
