/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs for the search: flaky good|crash|status|assert. All but the first fail only if time runs
 * otherwise than on the adapter as it is. */
#include "bed.h"
#include "verbena.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t now_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ull + time.tv_nsec;
}

/* The time of a round trip. */
static uint64_t measure(struct bed *bed)
{
    uint64_t begin = now_ns();

    for (int i = 0; i < 2; i++) {
        BED_NEED(!bed_receive(bed, !i, 64, 1));
        BED_NEED(!bed_send(bed, i, 64, 2));
        bed_poll(bed);
        bed_poll(bed);
    }
    return now_ns() - begin;
}

int main(int count, char **words)
{
    struct bed bed;
    bool slow;

    bed_make(&bed);
    slow = measure(&bed) > 20000;
    bed_free(&bed);
    if (count != 2)
        return 2;
    printf("%s\n", slow ? "slow" : "fast");
    fflush(stdout);
    if (!strcmp(words[1], "crash") && slow)
        raise(SIGSEGV);
    if (!strcmp(words[1], "assert"))
        verbena_assert(!slow);
    return !strcmp(words[1], "status") && slow;
}
