/* SPDX-License-Identifier: BSD-2-Clause */
/* Poll or block: the cost of being woken, and how long to poll before blocking. */
#include "advisers.h"
#include "results/allocate.h"

#include <math.h>
#include <stdlib.h>

/* Larger messages take longer because of their size. */
#define SMALL 1024

/* The acceptable cost of blocking, as a share of the wait. */
#define AFFORDABLE 0.1

#define MIN_RATIO  1.05

struct waiting {
    struct source poll, block;
};

static bool find(const struct advice_input *input, struct waiting *out)
{
    static const char *const names[][3] = {
        { "event", "poll", "block" },
        { "latency", "send poll", "send block" },
        { "latency", "write-imm poll", "write-imm block" },
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        if (advice_source_find(input, names[i][0], names[i][1], "latency", &out->poll) &&
            advice_source_find(input, names[i][0], names[i][2], "latency", &out->block))
            return true;
    }
    return false;
}

/* Computes the median difference at small sizes. Returns false if it is not clear of the noise. */
static bool extra_of(const struct curve *poll, const struct curve *block, double *extra,
                     unsigned int *middle)
{
    double *differences = allocate_zeroed((poll->count + 1) * sizeof(*differences));
    double ratio = INFINITY;
    struct summary summary;
    unsigned int count = 0;

    for (unsigned int i = 0; i < poll->count && (!i || poll->x[i] <= SMALL); i++) {
        double margin = 2 * (poll->noise[i] + block->noise[i]);

        differences[count++] = block->y[i] - poll->y[i];
        ratio = fmin(ratio, block->y[i] / poll->y[i] - margin);
    }
    histogram_of_values(differences, count, &summary);
    free(differences);
    *extra = summary.median;
    *middle = count / 2;
    return count && ratio > MIN_RATIO;
}

static void advise_block(const struct advice_input *input, struct advice *out)
{
    struct waiting waiting;
    struct curve poll, block;
    unsigned int at;
    double extra;

    if (!find(input, &waiting)) {
        advice_none(out, "no latency was measured both polling and blocking");
        return;
    }
    curve_of(waiting.poll.series, &poll);
    curve_of(waiting.block.series, &block);
    curves_match(&poll, &block);
    if (!extra_of(&poll, &block, &extra, &at)) {
        advice_none(out, "blocking is not clearly slower than polling");
    } else {
        advice_say(
            out,
            "Being woken costs %s: poll for %s before blocking; block at once only "
            "where the expected wait is above %s, ten times that cost.",
            advice_time_text(extra), advice_time_text(extra), advice_time_text(extra / AFFORDABLE));
        advice_found(out, "blocking_cost", extra, "us");
        advice_found(out, "affordable_wait", extra / AFFORDABLE, "us");
        advice_evidence(out, &waiting.poll, poll.x[at]);
        advice_evidence(out, &waiting.block, block.x[at]);
    }
    curve_free(&poll);
    curve_free(&block);
}

const struct adviser block_adviser = {
    .name = "poll-or-block",
    .question = "How long to poll before blocking?",
    .advise = advise_block,
};
