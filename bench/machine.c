/* SPDX-License-Identifier: BSD-2-Clause */
/* What one core of this machine can do in a second, as JSON:
 *
 *   hertz   cycles
 *   fused   multiplications of doubles, each with an addition
 *   picked  doubles fetched at random from a vector that the second-level cache holds
 *   lines   cache lines read in turn out of the second-level cache
 *   copied  bytes read and written when it copies what no cache holds */
#include "harness.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COPY_BYTES  (128ul << 20)
#define ROUNDS      5
#define CHAIN_STEPS (200ul << 20)

#define LANES       8
#define CHAINS      8
#define FUSED_STEPS (8ul << 20)

#define VECTOR      14000u /* doubles: the vector of the NAS kernel CG, class A */
#define PICKS       4096u
#define PICK_PASSES 2000u

#define LINE_WORDS  8u
#define LINES       8192u
#define LINE_PASSES 1000u

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define HOT __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define HOT
#endif

typedef double lanes __attribute__((vector_size(LANES * sizeof(double))));

#if defined(__aarch64__)
#define ADD_ONE "add %0, %0, #1\n\t"
#else
#define ADD_ONE "add $1, %0\n\t"
#endif

static volatile double zero, sink; /* what the compiler must not know, or must not leave out */

/* Each step needs the one before, and takes one cycle. */
static double clock_rate(void)
{
    double start = harness_now();
    uint64_t sum = 0;

    for (uint64_t i = 0; i < CHAIN_STEPS; i += 8)
        __asm__ volatile(ADD_ONE ADD_ONE ADD_ONE ADD_ONE ADD_ONE ADD_ONE ADD_ONE ADD_ONE
                         : "+r"(sum));
    return sum / (harness_now() - start);
}

/* As many chains as a processor has under way at once. They need no constants, which would take
 * registers; values stay what they are, 0. */
HOT static void run_chains(void)
{
    lanes chains[CHAINS];

    for (int i = 0; i < CHAINS; i++)
        chains[i] = zero - (lanes){ 0 };
    for (uint64_t step = 0; step < FUSED_STEPS; step++) {
#pragma GCC unroll 8
        for (int i = 0; i < CHAINS; i++)
            chains[i] += chains[i] * chains[i];
    }
    for (int i = 0; i < CHAINS; i++)
        sink = chains[i][0];
}

static double fused_rate(void)
{
    double start = harness_now();

    run_chains();
    return (double)FUSED_STEPS * CHAINS * LANES / (harness_now() - start);
}

static double pick(const double *vector, const uint16_t *places)
{
    double a = 0, b = 0, c = 0, d = 0;

    for (unsigned int i = 0; i < PICKS; i += 4) {
        a += vector[places[i]];
        b += vector[places[i + 1]];
        c += vector[places[i + 2]];
        d += vector[places[i + 3]];
    }
    return (a + b) + (c + d);
}

static double pick_rate(const double *vector)
{
    uint16_t places[PICKS];
    double start;

    srandom(1);
    for (unsigned int i = 0; i < PICKS; i++)
        places[i] = random() % VECTOR;
    start = harness_now();
    for (unsigned int pass = 0; pass < PICK_PASSES; pass++)
        sink = pick(vector, places);
    return (double)PICK_PASSES * PICKS / (harness_now() - start);
}

static double line_rate(const double *words)
{
    double start = harness_now();

    for (unsigned int pass = 0; pass < LINE_PASSES; pass++) {
        double a = 0, b = 0, c = 0, d = 0;

        for (const double *line = words; line < words + LINES * LINE_WORDS;
             line += 4 * LINE_WORDS) {
            a += line[0];
            b += line[LINE_WORDS];
            c += line[2 * LINE_WORDS];
            d += line[3 * LINE_WORDS];
        }
        sink = (a + b) + (c + d);
    }
    return (double)LINE_PASSES * LINES / (harness_now() - start);
}

static double copy_rate(const void *from, void *to)
{
    double start = harness_now();

    memcpy(to, from, COPY_BYTES);
    return 2 * COPY_BYTES / (harness_now() - start);
}

static void keep_best(double *best, double rate)
{
    *best = rate > *best ? rate : *best;
}

int main(void)
{
    void *from = malloc(COPY_BYTES), *to = malloc(COPY_BYTES);
    double hertz = 0, fused = 0, picked = 0, lines = 0, copied = 0;
    int status = EXIT_FAILURE;

    if (!from || !to) {
        fprintf(stderr, "bench-machine: no memory for two buffers of %lu bytes\n", COPY_BYTES);
        goto out;
    }
    memset(from, 1, COPY_BYTES);
    memset(to, 2, COPY_BYTES);
    for (int i = 0; i < ROUNDS; i++) {
        keep_best(&hertz, clock_rate());
        keep_best(&fused, fused_rate());
        keep_best(&picked, pick_rate(from));
        keep_best(&lines, line_rate(from));
        keep_best(&copied, copy_rate(from, to));
    }
    printf("{\"hertz\": %.4g, \"fused\": %.4g, \"picked\": %.4g, \"lines\": %.4g, "
           "\"copied\": %.4g}\n",
           hertz, fused, picked, lines, copied);
    status = EXIT_SUCCESS;
out:
    free(to);
    free(from);
    return status;
}
