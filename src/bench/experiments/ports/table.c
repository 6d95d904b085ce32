/* SPDX-License-Identifier: BSD-2-Clause */
/* The adapter's ports, and its own memory. */
#include "bench/experiments/groups.h"
#include "runs.h"

const struct experiment experiments_ports[] = {
    {
        .name = "two-port",
        .title = "Does a second port help, by striping messages or by binding directions to ports?",
        .source = "PCI Express figures 8 to 11",
        .options = "--sizes 1K..1M --stripe 8K --iterations 512",
        .quick = "--sizes 4K,64K,512K --window 16 --iterations 64 --repetitions 3",
        .layout = LAYOUT_TWO_HOSTS,
        .ranks = 4,
        .run = two_port_run,
    },
    {
        .name = "hca-memory",
        .title = "How fast does the adapter reach its own memory, compared with the host's?",
        .source = "Mem/MemFree figure 2",
        .options = "--sizes 4..64K",
        .quick = "--sizes 8,1K,64K --iterations 500",
        .layout = LAYOUT_ONE_HOST,
        .ranks = 1,
        .run = hca_memory_run,
    },
    { .name = NULL },
};
