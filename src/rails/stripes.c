/* SPDX-License-Identifier: BSD-2-Clause */
#include "stripes.h"

#include <math.h>

/* Rates within this ratio count as equal: noise must not make stripes unequal. */
#define RATE_CLOSE 0.6
#define RATE_FLOOR (1.0 / 16)

bool stripes_allowed(const struct rails_set *set, uint64_t size)
{
    return size >= set->traffic->limits.stripe_threshold;
}

void stripes_whole(struct rails_plan *plan, uint32_t rail, uint64_t size)
{
    plan->count = 1;
    plan->stripe[0] = (struct rails_stripe){ .rail = rail, .length = size };
}

static uint64_t total_weight(const struct stripes_shares *shares)
{
    uint64_t total = 0;

    for (uint32_t i = 0; i < shares->count; i++)
        total += shares->share[i].weight;
    return total;
}

static uint64_t part(uint64_t units, uint64_t weight, uint64_t total)
{
    return (unsigned __int128)units * weight / total;
}

static void drop_share(struct stripes_shares *shares, uint32_t which)
{
    shares->count--;
    for (uint32_t i = which; i < shares->count; i++)
        shares->share[i] = shares->share[i + 1];
}

static uint32_t lightest(const struct stripes_shares *shares)
{
    uint32_t found = 0;

    for (uint32_t i = 1; i < shares->count; i++) {
        if (shares->share[i].weight <= shares->share[found].weight)
            found = i;
    }
    return found;
}

/* Part of a buffer should take the same rail each time: its adapter has cached the translations. */
static void sort_by_rail(struct stripes_shares *shares)
{
    for (uint32_t i = 1; i < shares->count; i++) {
        struct stripes_share moved = shares->share[i];
        uint32_t place = i;

        for (; place && shares->share[place - 1].rail > moved.rail; place--)
            shares->share[place] = shares->share[place - 1];
        shares->share[place] = moved;
    }
}

void stripes_cut(struct rails_plan *plan, const struct rails_limits *limits, uint64_t size,
                 struct stripes_shares *shares)
{
    uint64_t unit = limits->alignment ? limits->alignment : 1;
    uint64_t units = size / unit;
    uint64_t minimum = (limits->minimum_stripe + unit - 1) / unit;
    uint64_t total = total_weight(shares), sum = 0, begin = 0;

    while (shares->count > 1) {
        uint32_t candidate = lightest(shares);
        uint64_t length = part(units, shares->share[candidate].weight, total);

        if (length && length >= minimum)
            break;
        total -= shares->share[candidate].weight;
        drop_share(shares, candidate);
    }
    sort_by_rail(shares);
    plan->count = shares->count;
    for (uint32_t i = 0; i < shares->count; i++) {
        uint64_t end;

        sum += shares->share[i].weight;
        end = i + 1 < shares->count ? part(units, sum, total) * unit : size;
        plan->stripe[i] = (struct rails_stripe){ .rail = shares->share[i].rail,
                                                 .offset = begin,
                                                 .length = end - begin };
        begin = end;
    }
}

void stripes_even(struct rails_set *set, uint64_t size, struct rails_plan *plan)
{
    struct stripes_shares shares = { .count = rails_up(set) };
    uint32_t first = set->next;

    for (uint32_t i = 0; i < shares.count; i++)
        shares.share[i] = (struct stripes_share){ .rail = stripes_next_up(set), .weight = 1 };
    stripes_cut(plan, &set->traffic->limits, size, &shares);
    set->next = first;
    for (uint32_t i = 0; i < plan->count; i++)
        stripes_next_up(set);
}

uint32_t stripes_nth_up(const struct rails_set *set, uint32_t n)
{
    uint32_t left = n % rails_up(set);

    for (uint32_t i = 0;; i++) {
        if (set->rail[i].up && !left--)
            return i;
    }
}

uint32_t stripes_next_up(struct rails_set *set)
{
    uint32_t rail = set->next % set->count;

    while (!set->rail[rail].up)
        rail = (rail + 1) % set->count;
    set->next = rail + 1;
    return rail;
}

void stripes_rates(const struct rails_set *set, double rate[RAILS_MAX])
{
    double sum = 0, lowest = INFINITY, highest = 0, mean;
    uint32_t known = 0;

    for (uint32_t i = 0; i < set->count; i++) {
        if (!set->rail[i].up || !set->rail[i].rate)
            continue;
        sum += set->rail[i].rate;
        lowest = fmin(lowest, set->rail[i].rate);
        highest = fmax(highest, set->rail[i].rate);
        known++;
    }
    mean = known ? sum / known : 1;
    for (uint32_t i = 0; i < set->count; i++) {
        bool own = set->rail[i].rate && lowest < RATE_CLOSE * highest;

        rate[i] = fmax(own ? set->rail[i].rate : mean, highest * RATE_FLOOR);
    }
}

uint32_t stripes_weight(double value, double largest)
{
    return fmax(1, rint(value / largest * STRIPES_WEIGHT_MAX));
}
