/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libFuzzer target over the exported calls: the input is a program of calls with hostile arguments.
 * Objects are valid, as the API demands; sizes, counts, flags, enumerations, keys, addresses,
 * masks, ports, indexes and states are anything.
 */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_ACTIONS 64

static bool tracing;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    char fabric[64];

    snprintf(fabric, sizeof(fabric), "fuzz-%d", getpid());
    setenv("VERBENA_FABRIC", fabric, 1);
    setenv("VERBENA_LOG", "error", 0);
    tracing = getenv("FUZZ_TRACE") != NULL;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = { .data = data, .size = size };
    struct world world;

    world_begin(&world);
    for (int i = 0; i < MAX_ACTIONS && !input_done(&in); i++) {
        size_t pick = take8(&in) % (object_action_count + 2 * data_action_count);
        const struct action *action =
            pick < object_action_count
                ? &object_actions[pick]
                : &data_actions[(pick - object_action_count) % data_action_count];
        if (tracing)
            fprintf(stderr, "# %s\n", action->name);
        action->run(&world, &in);
    }
    world_end(&world);
    return 0;
}
