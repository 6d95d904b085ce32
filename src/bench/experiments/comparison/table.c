/* SPDX-License-Identifier: BSD-2-Clause */
/* What else the same machines can do, for comparison. */
#include "bench/experiments/groups.h"
#include "runs.h"

const struct experiment experiments_comparison[] = {
    {
        .name = "tcp",
        .title = "What do sockets achieve on the same machines?",
        .source = "VI Architecture section 3.3",
        .options = "--sizes 1..4M",
        .quick = "--sizes 8,1K,64K --iterations 200 --repetitions 3",
        .ranks = 2,
        .run = tcp_run,
    },
    { .name = NULL },
};
