#include "model.h"
#include "sim/parameters.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

int model_export(const struct invocation *invocation)
{
    const char *name = option_value(invocation, "adapter");
    const char *settings = option_value(invocation, "set");
    char path[PATH_MAX], whole[PATH_MAX], error[512], ports[16];
    struct parameters parameters;

    if (!name || !strcmp(name, "live")) {
        if (settings)
            return cli_usage_error(invocation->command, "--set is for an adapter that is modelled: "
                                                        "name one with --adapter");
        unsetenv("VERBENA_ADAPTER");
        return CLI_OK;
    }
    if (parameters_find(name, path, sizeof(path), error, sizeof(error)) ||
        parameters_read(path, settings, &parameters, error, sizeof(error))) {
        cli_error("%s", error);
        return CLI_USAGE;
    }
    setenv("VERBENA_ADAPTER", realpath(path, whole) ? whole : path, 1);
    if (settings)
        setenv("VERBENA_SET", settings, 1);
    else
        unsetenv("VERBENA_SET");
    snprintf(ports, sizeof(ports), "%llu", (unsigned long long)parameters.link.ports);
    setenv("VERBENA_PORTS", ports, 0);
    return CLI_OK;
}
