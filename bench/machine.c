/* SPDX-License-Identifier: BSD-2-Clause */
/* What one core of this machine can do: cycles a second, and bytes that it reads and writes when it
 * copies what no cache holds. */
#include "harness.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COPY_BYTES  (128ul << 20)
#define COPY_ROUNDS 5
#define CHAIN_STEPS (200ul << 20)

/* Each step needs the one before, and takes one cycle. */
static double clock_rate(void)
{
    double start = harness_now();
    uint64_t sum = 0;

    for (uint64_t i = 0; i < CHAIN_STEPS; i += 8)
        __asm__ volatile("add $1, %0\n\tadd $1, %0\n\tadd $1, %0\n\tadd $1, %0\n\t"
                         "add $1, %0\n\tadd $1, %0\n\tadd $1, %0\n\tadd $1, %0"
                         : "+r"(sum));
    return sum / (harness_now() - start);
}

static double copy_rate(const char *from, char *to)
{
    double best = 0;

    for (int i = 0; i < COPY_ROUNDS; i++) {
        double start = harness_now(), rate;

        memcpy(to, from, COPY_BYTES);
        rate = 2 * COPY_BYTES / (harness_now() - start);
        best = rate > best ? rate : best;
    }
    return best;
}

int main(void)
{
    char *from = malloc(COPY_BYTES), *to = malloc(COPY_BYTES);
    int status = EXIT_FAILURE;

    if (!from || !to) {
        fprintf(stderr, "bench-machine: no memory for two buffers of %lu bytes\n", COPY_BYTES);
        goto out;
    }
    memset(from, 1, COPY_BYTES);
    memset(to, 2, COPY_BYTES);
    printf("{\"hertz\": %.4g, \"copied\": %.4g}\n", clock_rate(), copy_rate(from, to));
    status = EXIT_SUCCESS;
out:
    free(to);
    free(from);
    return status;
}
