/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of engines. The library selects one when it is loaded. */

#include "hca/engine.h"
#include "live/live.h"
#include "sim/engine.h"
#include "wire/wire.h"

#include <stdlib.h>
#include <string.h>

static bool names_model(void)
{
    const char *adapter = getenv("VERBENA_ADAPTER");

    return adapter && *adapter && strcmp(adapter, "live");
}

static bool names_interface(void)
{
    const char *interface = getenv("VERBENA_WIRE");

    return interface && *interface;
}

static bool always(void)
{
    return true;
}

/* Selects the first engine that is wanted. */
static const struct {
    const struct hca_engine *engine;
    bool (*is_wanted)(void);
} engines[] = {
    { &sim_engine, names_model },
    { &wire_engine, names_interface },
    { &live_engine, always },
};

__attribute__((constructor(101))) static void select_engine(void)
{
    size_t i = 0;

    while (!engines[i].is_wanted())
        i++;
    hca_engine = engines[i].engine;
}
