/* SPDX-License-Identifier: BSD-2-Clause */
#include "permutation.h"
#include "allocate.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* All ways to deal the rounds are tried if there are no more than this; otherwise this many. */
#define DEALS_MAX 4000

/* Added to the spread of a point, in which a few rounds may be close to each other by accident. */
#define SPREAD_FLOOR 0.01

struct deals {
    unsigned int rounds; /* of both runs */
    unsigned int a_rounds;
    unsigned int count;
    bool *in_b; /* 'rounds' for each deal; the first deal is the true one */
};

/* The rounds of a point as logarithms, so that differences are ratios. */
struct prepared {
    double *values;
    double observed; /* separation of the true runs */
    double spread;   /* within them */
};

/* The number of ways to choose k of n, or a number above 'limit'. */
static double choices(unsigned int n, unsigned int k, double limit)
{
    double ways = 1;

    for (unsigned int i = 1; i <= k && ways <= limit; i++)
        ways = ways * (n - k + i) / i;
    return round(ways);
}

static unsigned int deal_count(unsigned int a_rounds, unsigned int b_rounds)
{
    unsigned int smaller = a_rounds < b_rounds ? a_rounds : b_rounds;

    return (unsigned int)fmin(choices(a_rounds + b_rounds, smaller, DEALS_MAX), DEALS_MAX);
}

/* How many deals may separate the runs as clearly as the true one does. */
static unsigned int allowed_deals(unsigned int a_rounds, unsigned int b_rounds)
{
    return (unsigned int)(PERMUTATION_ALPHA * deal_count(a_rounds, b_rounds));
}

/* Runs of equal length are separated as clearly by the deal that swaps them. */
bool permutation_has_power(unsigned int a_rounds, unsigned int b_rounds)
{
    return a_rounds && b_rounds &&
           allowed_deals(a_rounds, b_rounds) >= (a_rounds == b_rounds ? 2 : 1);
}

/* Advances to the next way to choose, in lexicographic order, from the one that has all the
 * chosen rounds last. */
static void next_choice(bool *in_b, unsigned int rounds)
{
    unsigned int i = rounds - 1, ones = 0;

    while (!in_b[i])
        i--;
    for (; i && in_b[i]; i--)
        ones += 1;
    in_b[i] = true;
    memset(in_b + i + 1, 0, rounds - i - 1);
    for (unsigned int k = 0; k + 1 < ones; k++)
        in_b[rounds - 1 - k] = true;
}

/* The seed is fixed: the same files give the same verdicts. */
static void shuffle(bool *in_b, unsigned int rounds, uint64_t *random)
{
    for (unsigned int i = rounds - 1; i; i--) {
        unsigned int k;
        bool held = in_b[i];

        *random = *random * 6364136223846793005ull + 1442695040888963407ull;
        k = (unsigned int)((*random >> 33) % (i + 1));
        in_b[i] = in_b[k];
        in_b[k] = held;
    }
}

static struct deals make_deals(unsigned int a_rounds, unsigned int b_rounds)
{
    struct deals deals = { .rounds = a_rounds + b_rounds,
                           .a_rounds = a_rounds,
                           .count = deal_count(a_rounds, b_rounds) };
    bool all =
        choices(deals.rounds, a_rounds < b_rounds ? a_rounds : b_rounds, DEALS_MAX) <= DEALS_MAX;
    uint64_t random = 1;

    deals.in_b = allocate_zeroed((size_t)deals.count * deals.rounds);
    memset(deals.in_b + a_rounds, true, b_rounds);
    for (unsigned int i = 1; i < deals.count; i++) {
        bool *deal = deals.in_b + (size_t)i * deals.rounds;

        memcpy(deal, deal - deals.rounds, deals.rounds);
        if (all)
            next_choice(deal, deals.rounds);
        else
            shuffle(deal, deals.rounds, &random);
    }
    return deals;
}

static int ascending(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

/* The median of the rounds of one side; adds their distances from it to *distances. */
static double centre(const double *values, const bool *in_b, unsigned int rounds, bool side,
                     double *held, double *distances)
{
    unsigned int count = 0;
    double median;

    for (unsigned int i = 0; i < rounds; i++) {
        if (in_b[i] == side)
            held[count++] = values[i];
    }
    qsort(held, count, sizeof(*held), ascending);
    median = (held[(count - 1) / 2] + held[count / 2]) / 2;
    for (unsigned int i = 0; i < count; i++)
        *distances += fabs(held[i] - median);
    return median;
}

/* The distance between the medians in units of the spread around them. */
static double separation(const double *values, const bool *in_b, unsigned int rounds, double *held,
                         double *spread)
{
    double distances = 0;
    double a = centre(values, in_b, rounds, false, held, &distances);
    double b = centre(values, in_b, rounds, true, held, &distances);

    *spread = distances / rounds + SPREAD_FLOOR;
    return fabs(b - a) / *spread;
}

/* Without logarithms where they do not exist: then in units of the mean. */
static void prepare(const struct permutation_point *point, const struct deals *deals,
                    struct prepared *out)
{
    bool positive = true;
    double sum = 0;

    out->values = allocate_zeroed(deals->rounds * sizeof(*out->values));
    for (unsigned int i = 0; i < deals->rounds; i++) {
        out->values[i] = i < deals->a_rounds ? point->a[i] : point->b[i - deals->a_rounds];
        positive = positive && out->values[i] > 0;
        sum += fabs(out->values[i]);
    }
    for (unsigned int i = 0; i < deals->rounds; i++) {
        if (positive)
            out->values[i] = log(out->values[i]);
        else if (sum > 0)
            out->values[i] *= deals->rounds / sum;
    }
}

static unsigned int count_from(const double *largest, unsigned int count, double least)
{
    unsigned int found = 0;

    for (unsigned int i = 0; i < count; i++)
        found += largest[i] >= least;
    return found;
}

void permutation_test(struct permutation_point *points, unsigned int count, unsigned int a_rounds,
                      unsigned int b_rounds)
{
    struct deals deals = make_deals(a_rounds, b_rounds);
    struct prepared *prepared = allocate_zeroed(count * sizeof(*prepared));
    double *largest = allocate_zeroed(deals.count * sizeof(*largest));
    double *held = allocate_zeroed(deals.rounds * sizeof(*held)), spread;

    for (unsigned int i = 0; i < count; i++) {
        prepare(&points[i], &deals, &prepared[i]);
        prepared[i].observed =
            separation(prepared[i].values, deals.in_b, deals.rounds, held, &prepared[i].spread);
        for (unsigned int k = 0; k < deals.count; k++)
            largest[k] = fmax(largest[k],
                              separation(prepared[i].values, deals.in_b + (size_t)k * deals.rounds,
                                         deals.rounds, held, &spread));
    }
    for (unsigned int i = 0; i < count; i++)
        points[i].probability =
            (double)count_from(largest, deals.count, prepared[i].observed) / deals.count;
    qsort(largest, deals.count, sizeof(*largest), ascending);
    for (unsigned int i = 0; i < count; i++) {
        double needed = largest[deals.count - 1 - allowed_deals(a_rounds, b_rounds)];

        points[i].detectable = expm1(needed * prepared[i].spread);
        free(prepared[i].values);
    }
    free(held);
    free(largest);
    free(prepared);
    free(deals.in_b);
}
