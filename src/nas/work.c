#include "work.h"

#include <string.h>

static const char *const names[WORK_KINDS] = {
    [WORK_KEYS_BUCKETED] = "keys bucketed",
    [WORK_KEYS_RANKED] = "keys ranked",
    [WORK_POINTS_TRANSFORMED] = "points transformed",
    [WORK_POINTS_EVOLVED] = "points evolved",
    [WORK_NONZEROS_MULTIPLIED] = "nonzeros multiplied",
    [WORK_ELEMENTS_UPDATED] = "elements updated",
    [WORK_POINTS_STENCILLED] = "points stencilled",
    [WORK_POINTS_RESTRICTED] = "points restricted",
    [WORK_POINTS_PROLONGED] = "points prolonged",
    [WORK_POINTS_SWEPT] = "points swept",
    [WORK_POINTS_BALANCED] = "points balanced",
};

static uint64_t counted[WORK_KINDS];

void nas_work(enum work_kind kind, uint64_t amount)
{
    counted[kind] += amount;
}

void nas_work_clear(void)
{
    memset(counted, 0, sizeof(counted));
}

void nas_work_totals(uint64_t totals[WORK_KINDS])
{
    memcpy(totals, counted, sizeof(counted));
}

const char *nas_work_name(enum work_kind kind)
{
    return names[kind];
}
