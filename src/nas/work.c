/* SPDX-License-Identifier: BSD-2-Clause */
#include "work.h"

#include "util/vtime.h"

#include <stdio.h>
#include <string.h>

/* Operations, as NPB counts them, of one unit. Over a whole run the sum is within a few percent of
 * NPB's formula. A kernel with several kinds of work divides its operations as its arithmetic. */
static const struct {
    const char *name;
    double operations;
} kinds[WORK_KINDS] = {
    [WORK_KEYS_BUCKETED] = { "keys bucketed", 0.5 },
    [WORK_KEYS_RANKED] = { "keys ranked", 0.5 },
    [WORK_POINTS_TRANSFORMED] = { "points transformed", 5 },
    [WORK_POINTS_EVOLVED] = { "points evolved", 6 },
    [WORK_NONZEROS_MULTIPLIED] = { "nonzeros multiplied", 2 },
    [WORK_ELEMENTS_UPDATED] = { "elements updated", 2 },
    [WORK_POINTS_STENCILLED] = { "points stencilled", 15 },
    [WORK_POINTS_RESTRICTED] = { "points restricted", 2.5 },
    [WORK_POINTS_PROLONGED] = { "points prolonged", 2 },
    [WORK_POINTS_SWEPT] = { "points swept", 768 },
    [WORK_POINTS_BALANCED] = { "points balanced", 485 },
};

static uint64_t counted[WORK_KINDS];
static double operation_ns; /* 0: not in virtual time, or computation is free */
static double due_ns;

void nas_work_begin(const char *kernel)
{
    char key[32];
    double rate;

    vtime_find();
    snprintf(key, sizeof(key), "nas.%s", kernel);
    if (vtime.on && !vtime.parameter(key, &rate) && rate > 0)
        operation_ns = 1e3 / rate;
}

void nas_work(enum work_kind kind, uint64_t amount)
{
    counted[kind] += amount;
    due_ns += (double)amount * kinds[kind].operations * operation_ns;
}

void nas_work_charge(void)
{
    uint64_t whole = (uint64_t)due_ns;

    if (!whole)
        return;
    due_ns -= (double)whole;
    vtime.compute(whole);
}

void nas_work_clear(void)
{
    memset(counted, 0, sizeof(counted));
    due_ns = 0;
}

void nas_work_totals(uint64_t totals[WORK_KINDS])
{
    memcpy(totals, counted, sizeof(counted));
}

const char *nas_work_name(enum work_kind kind)
{
    return kinds[kind].name;
}
