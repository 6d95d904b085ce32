/* SPDX-License-Identifier: BSD-2-Clause */
/* Address translation: what it costs when messages use many buffers. */
#include "bench/experiments/groups.h"
#include "reuse.h"

const struct experiment experiments_translation[] = {
    {
        .name = "reuse-1",
        .title = "Does the adapter cache the translations of several buffers?",
        .source = "MIBA section 5.2.2, scheme 1, and figures 6a and 6b",
        .options = "--sizes 2..64K --reuse 100,50,25,10,5,1 --iterations 1000",
        .quick = "--sizes 8,4K,64K --reuse 100,25,1 --iterations 200 --repetitions 3",
        .ranks = 2,
        .run = reuse_run,
        .spec = &reuse_few_buffers,
    },
    {
        .name = "reuse-2",
        .title = "What does a message cost whose buffer the adapter has not translated yet?",
        .source = "MIBA section 5.2.2, scheme 2, and figures 6c and 6d; Mem/MemFree table 1",
        .options = "--sizes 2..1M --reuse 100,75,50,25,0 --iterations 1000",
        .quick = "--sizes 8,4K,64K --reuse 100,50,0 --iterations 200 --repetitions 3",
        .ranks = 2,
        .run = reuse_run,
        .spec = &reuse_new_buffers,
    },
    { .name = NULL },
};
