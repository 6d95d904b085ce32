/* SPDX-License-Identifier: BSD-2-Clause */
/* Decides by what the rails report, not by the name of the call. The number of other messages that
 * were in flight beside recent ones of the same class says how many rails each message should get:
 * alone, a message gets all; among many, it goes whole to the rail that will be free first.
 * Messages so long that striping costs next to nothing are always striped, because whole messages
 * leave rails idle at the end. */
#include "stripes.h"
#include "policies.h"

#include <math.h>

/* Striping is free if its cost is below this fraction of the time of the message. */
#define COST_SHARE 0.01

/* Completions are seen late, several at a time: a difference of up to this many messages between
 * equal rails means nothing. */
#define SEEN_LATE 6

struct candidate {
    uint32_t rail;
    double rate;
    double backlog; /* bytes ahead of a new stripe on this rail */
};

struct candidates {
    uint32_t count;
    struct candidate list[RAILS_MAX];
};

/* The share of this rail in what the process has outstanding on its port. */
static double port_backlog(const struct rails_set *set, const double *rate, uint32_t which)
{
    const struct rail *rail = &set->rail[which];
    double together = 0;

    for (uint32_t i = 0; i < set->count; i++) {
        if (set->rail[i].up && set->rail[i].load == rail->load)
            together += rate[i];
    }
    return (double)set->traffic->port[rail->load].bytes * rate[which] / together;
}

/* In round-robin order, so that equal rails alternate. */
static void gather(const struct rails_set *set, struct candidates *found)
{
    double rate[RAILS_MAX];

    stripes_rates(set, rate);
    found->count = 0;
    for (uint32_t i = 0; i < set->count; i++) {
        uint32_t which = (set->next + i) % set->count;

        if (!set->rail[which].up)
            continue;
        found->list[found->count++] = (struct candidate){
            .rail = which,
            .rate = rate[which],
            .backlog = fmax((double)set->rail[which].bytes, port_backlog(set, rate, which)),
        };
    }
}

/* Equal rails with nearly equal backlogs count as equally busy. */
static void equalize(struct candidates *candidates, uint64_t size)
{
    double least = INFINITY, most = 0;

    for (uint32_t i = 0; i < candidates->count; i++) {
        const struct candidate *one = &candidates->list[i];

        if (one->rate != candidates->list[0].rate)
            return;
        least = fmin(least, one->backlog);
        most = fmax(most, one->backlog);
    }
    for (uint32_t i = 0; i < candidates->count && most - least <= SEEN_LATE * (double)size; i++)
        candidates->list[i].backlog = most;
}

static double finish(const struct candidate *candidate, uint64_t size)
{
    return (candidate->backlog + (double)size) / candidate->rate;
}

/* Sorts by the time at which a stripe of this size would finish; stable. */
static void sort(struct candidates *candidates, uint64_t size)
{
    for (uint32_t i = 1; i < candidates->count; i++) {
        struct candidate moved = candidates->list[i];
        uint32_t place = i;

        for (; place && finish(&candidates->list[place - 1], size) > finish(&moved, size); place--)
            candidates->list[place] = candidates->list[place - 1];
        candidates->list[place] = moved;
    }
}

/* The rail for a whole message: the one that finishes first. Equal rails alternate as long as none
 * is a message ahead, because how much of a message has already been sent is not known. */
static uint32_t soonest(const struct candidates *candidates, uint64_t size)
{
    const struct candidate *best = &candidates->list[0];

    for (uint32_t i = 1; i < candidates->count; i++) {
        if (finish(&candidates->list[i], size) < finish(best, size))
            best = &candidates->list[i];
    }
    for (uint32_t i = 0; i < candidates->count; i++) {
        const struct candidate *one = &candidates->list[i];

        if (one->rate == best->rate && one->backlog <= best->backlog + (double)size)
            return one->rail;
    }
    return best->rail;
}

static bool striping_is_free(const struct rails_set *set, const struct candidates *candidates,
                             uint64_t size)
{
    double together = 0;

    for (uint32_t i = 0; i < candidates->count; i++)
        together += candidates->list[i].rate;
    return (double)set->traffic->limits.stripe_cost_ns * together <= COST_SHARE * (double)size;
}

static uint32_t rails_for(const struct rails_set *set, const struct candidates *candidates,
                          const struct rails_message *message)
{
    double sharing = 1 + set->traffic->overlap[message->class];
    double each = candidates->count / sharing;

    if (!stripes_allowed(set, message->size))
        return 1;
    if (striping_is_free(set, candidates, message->size))
        return candidates->count;
    return each < 1.5 ? 1 : (uint32_t)lrint(each);
}

/* When all candidates finish if they share the message. */
static double common_end(const struct candidates *candidates, uint64_t size)
{
    double bytes = (double)size, rate = 0;

    for (uint32_t i = 0; i < candidates->count; i++) {
        bytes += candidates->list[i].backlog;
        rate += candidates->list[i].rate;
    }
    return bytes / rate;
}

/* Lengths with which all candidates finish together; those busy beyond that time get nothing. */
static void balance(struct candidates *candidates, uint64_t size, struct stripes_shares *shares)
{
    double end, largest = 0;

    sort(candidates, 0);
    for (;;) {
        const struct candidate *last = &candidates->list[candidates->count - 1];

        end = common_end(candidates, size);
        if (candidates->count == 1 || last->backlog < end * last->rate)
            break;
        candidates->count--;
    }
    shares->count = candidates->count;
    for (uint32_t i = 0; i < shares->count; i++)
        largest = fmax(largest, end * candidates->list[i].rate - candidates->list[i].backlog);
    for (uint32_t i = 0; i < shares->count; i++) {
        const struct candidate *one = &candidates->list[i];

        shares->share[i].rail = one->rail;
        shares->share[i].weight = stripes_weight(end * one->rate - one->backlog, largest);
    }
}

/* Whether nothing is in flight to this peer, as far as completions tell. */
static bool is_alone(const struct rails_set *set)
{
    for (uint32_t i = 0; i < set->count; i++) {
        if (set->rail[i].up && set->rail[i].messages)
            return false;
    }
    return true;
}

static void plan_adaptive(struct rails_set *set, const struct rails_message *message,
                          struct rails_plan *plan)
{
    struct candidates candidates;
    struct stripes_shares shares;
    uint32_t wanted;

    if (!stripes_allowed(set, message->size) && is_alone(set)) {
        stripes_whole(plan, stripes_nth_up(set, set->home), message->size);
        set->next = plan->stripe[0].rail + 1;
        return;
    }
    gather(set, &candidates);
    equalize(&candidates, message->size);
    wanted = rails_for(set, &candidates, message);
    if (wanted == 1) {
        stripes_whole(plan, soonest(&candidates, message->size), message->size);
    } else {
        sort(&candidates, message->size / wanted);
        candidates.count = wanted;
        balance(&candidates, message->size, &shares);
        stripes_cut(plan, &set->traffic->limits, message->size, &shares);
    }
    if (wanted < set->count)
        set->next = plan->stripe[plan->count - 1].rail + 1;
}

const struct rails_policy rails_adaptive = {
    .name = "adaptive",
    .summary = "by what the rails report: how busy, how fast, how many messages at a time",
    .plan = plan_adaptive,
};
