/* SPDX-License-Identifier: BSD-2-Clause */
/* Data layout: scatter/gather lists, strides and alignment. */
#include "bench/experiments/groups.h"
#include "sge_sweep.h"
#include "runs.h"

const struct experiment experiments_data_layout[] = {
    {
        .name = "multi-sge",
        .title = "What does a message in several segments cost?",
        .source = "MIBA figure 9",
        .options = "--sizes 64..64K --segments 1..16 --depth 64",
        .quick = "--sizes 64,1K,16K --segments 1,4,16 --iterations 500",
        .ranks = 2,
        .run = sge_sweep_run,
        .spec = &sge_sweep_segments,
    },
    {
        .name = "max-sge",
        .title = "Is a queue pair created for many segments slower with single ones?",
        .source = "MIBA figure 11",
        .options = "--sizes 4..64K --segments 1,4,16,30 --depth 64",
        .quick = "--sizes 8,4K --segments 1,16 --iterations 500 --repetitions 3",
        .ranks = 2,
        .run = sge_sweep_run,
        .spec = &sge_sweep_capability,
    },
    {
        .name = "strided",
        .title = "Who should scatter strided data: the program or the adapter?",
        .source = "VI Architecture figure 4",
        .options = "--strides 1..512 --segments 1024 --window 16",
        .quick = "--strides 1,8,64 --iterations 200 --repetitions 3",
        .ranks = 2,
        .run = strided_run,
    },
    {
        .name = "scatter",
        .title = "From which block size on should the adapter scatter a message?",
        .source = "VI Architecture figure 5",
        .options = "--blocks 8..16K --segments 32 --window 16",
        .quick = "--blocks 8,128,2K --iterations 200 --repetitions 3",
        .ranks = 2,
        .run = scatter_run,
    },
    {
        .name = "align",
        .title = "Does it matter where in a page or cache line a message starts?",
        .source = "this suite",
        .options = "--sizes 64,4K,64K --offsets 0,1,2,4..64,4032,4064,4080,4095",
        .quick = "--offsets 0,1,32,4095 --iterations 300 --repetitions 3",
        .ranks = 2,
        .run = align_run,
    },
    { .name = NULL },
};
