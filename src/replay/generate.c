/* SPDX-License-Identifier: BSD-2-Clause */
/* In each step of these collectives a rank posts a receive, sends, and waits for both. */
#include "replay/generate.h"

#include "mtl/record_notes.h"
#include "rails/rails.h"
#include "util/util.h"

#include <inttypes.h>

static uint32_t log2_up(uint32_t ranks)
{
    uint32_t steps = 0;

    while (1ull << steps < ranks)
        steps++;
    return steps;
}

static uint32_t ring_steps(uint32_t ranks)
{
    return 2 * (ranks - 1);
}

static void ring_step(uint32_t ranks, uint32_t rank, uint32_t step, uint32_t *to, uint32_t *from)
{
    *to = (rank + 1) % ranks;
    *from = (rank + ranks - 1) % ranks;
}

static uint64_t ring_bytes(uint32_t ranks, uint64_t size)
{
    return (size + ranks - 1) / ranks;
}

static uint32_t doubling_steps(uint32_t ranks)
{
    return ranks & (ranks - 1) ? 0 : log2_up(ranks);
}

static void doubling_step(uint32_t ranks, uint32_t rank, uint32_t step, uint32_t *to,
                          uint32_t *from)
{
    *to = *from = rank ^ 1u << step;
}

static void dissemination_step(uint32_t ranks, uint32_t rank, uint32_t step, uint32_t *to,
                               uint32_t *from)
{
    uint32_t distance = 1u << step;

    *to = (rank + distance) % ranks;
    *from = (rank + ranks - distance % ranks) % ranks;
}

static uint32_t pairwise_steps(uint32_t ranks)
{
    return ranks - 1;
}

static void pairwise_step(uint32_t ranks, uint32_t rank, uint32_t step, uint32_t *to,
                          uint32_t *from)
{
    *to = (rank + step + 1) % ranks;
    *from = (rank + ranks - step - 1) % ranks;
}

static uint64_t whole_bytes(uint32_t ranks, uint64_t size)
{
    return size;
}

const struct generate_pattern generate_patterns[] = {
    { .name = "allreduce-ring",
      .help = "reduce-scatter and allgather around a ring, --size / --ranks bytes a step",
      .default_size = 1 << 20,
      .steps = ring_steps,
      .step = ring_step,
      .bytes = ring_bytes },
    { .name = "allreduce-doubling",
      .help = "recursive doubling, --size bytes a step; the number of ranks is a power of two",
      .default_size = 1 << 20,
      .steps = doubling_steps,
      .needs = "a power of two",
      .step = doubling_step,
      .bytes = whole_bytes },
    { .name = "barrier",
      .help = "dissemination, --size bytes a step",
      .default_size = 8,
      .steps = log2_up,
      .step = dissemination_step,
      .bytes = whole_bytes },
    { .name = "alltoall",
      .help = "pairwise exchange, --size bytes to each rank",
      .default_size = 4096,
      .steps = pairwise_steps,
      .step = pairwise_step,
      .bytes = whole_bytes },
    { .name = NULL },
};

const struct generate_pattern *generate_find(const char *name)
{
    for (const struct generate_pattern *row = generate_patterns; row->name; row++) {
        if (!strcmp(row->name, name))
            return row;
    }
    return NULL;
}

/* Labels: r0 and s0 in the first step, and so on. */
static void write_rank(const struct generate_pattern *pattern, const struct generate_job *job,
                       uint32_t rank, FILE *out)
{
    uint32_t steps = pattern->steps(job->ranks);
    uint64_t bytes = pattern->bytes(job->ranks, job->size);

    fprintf(out, "rank %u {\n", rank);
    for (uint32_t i = 0; i < steps * job->repeat; i++) {
        uint32_t to, from;

        pattern->step(job->ranks, rank, i % steps, &to, &from);
        fprintf(out, "r%u: recv %" PRIu64 "b from %u\n", i, bytes, from);
        fprintf(out, "s%u: send %" PRIu64 "b to %u\n", i, bytes, to);
        fprintf(out, "s%u irequires r%u\n", i, i);
        if (i)
            fprintf(out, "r%u requires r%u\nr%u requires s%u\n", i, i - 1, i, i - 1);
    }
    fprintf(out, "}\n");
}

int generate_write(const struct generate_pattern *pattern, const struct generate_job *job,
                   FILE *out, char *error, size_t size)
{
    if (!pattern->steps(job->ranks)) {
        snprintf(error, size, "%s: the number of ranks must be %s, not %u", pattern->name,
                 pattern->needs ? pattern->needs : "2 or more", job->ranks);
        return -1;
    }
    fprintf(out, RECORD_SENDS_ARE "%s\nnum_ranks %u\n", rails_class_names[RAILS_COLLECTIVE],
            job->ranks);
    for (uint32_t rank = 0; rank < job->ranks; rank++)
        write_rank(pattern, job, rank, out);
    return 0;
}
