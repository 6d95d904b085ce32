/* SPDX-License-Identifier: BSD-2-Clause */
#include "calibrate/search.h"

#include "results/allocate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define REACH     16 /* a value is searched up to that of START times REACH */
#define GRID      12 /* values of the first round, besides those of the axes */
#define ROUNDS    6  /* of narrowing it down */
#define TRIES_MAX 64
#define SAME      0.01 /* relative difference of losses that do not differ */
#define STILL     1e-4
#define BETTER    6.0 /* least fall of the sum of squares that moves a value */

struct tries {
    unsigned int count;
    double value[TRIES_MAX], loss[TRIES_MAX];
};

struct search {
    struct fit *fit;
    unsigned int key;
    const bool *experiments; /* that the key moves */
    bool shape;
    struct tries tries;
};

static bool is_tried(const struct tries *tries, double value)
{
    for (unsigned int i = 0; i < tries->count; i++) {
        if (tries->value[i] == value)
            return true;
    }
    return false;
}

static void sort_tries(struct tries *tries)
{
    for (unsigned int i = 1; i < tries->count; i++) {
        for (unsigned int k = i; k && tries->value[k - 1] > tries->value[k]; k--) {
            double value = tries->value[k], loss = tries->loss[k];

            tries->value[k] = tries->value[k - 1];
            tries->loss[k] = tries->loss[k - 1];
            tries->value[k - 1] = value;
            tries->loss[k - 1] = loss;
        }
    }
}

/* Runs the key's experiments with each of these values. */
static int try_values(struct search *search, const double *wanted, unsigned int count)
{
    struct fit *fit = search->fit;
    struct runs_trial trials[TRIES_MAX];
    double *values = allocate_zeroed((size_t)TRIES_MAX * fit->keys->count * sizeof(double));
    double *outs = allocate_zeroed((size_t)TRIES_MAX * fit->data->point_count * sizeof(double) + 1);
    unsigned int first = search->tries.count, trial_count = 0;
    int status;

    for (unsigned int i = 0; i < count && search->tries.count < TRIES_MAX; i++) {
        double value = keys_valid(&fit->keys->list[search->key], wanted[i]);
        double *all = values + (size_t)trial_count * fit->keys->count;

        if (is_tried(&search->tries, value))
            continue;
        fit_values(fit, all);
        all[search->key] = value;
        search->tries.value[search->tries.count++] = value;
        trials[trial_count] =
            (struct runs_trial){ .values = all,
                                 .experiments = search->experiments,
                                 .out = outs + (size_t)trial_count * fit->data->point_count };
        trial_count++;
    }
    status = trial_count ? runs_evaluate(fit->runs, trials, trial_count,
                                         fit->keys->list[search->key].row->key)
                         : 0;
    for (unsigned int i = 0; !status && i < trial_count; i++)
        search->tries.loss[first + i] =
            fit_loss(fit, trials[i].out, search->experiments, search->shape);
    sort_tries(&search->tries);
    free(values);
    free(outs);
    return status;
}

static double lowest(const struct key *key)
{
    return fmax(1, key->row->minimum); /* 0 often stands for "all" */
}

static double highest(const struct key *key)
{
    return keys_valid(key, keys_seed(key) * REACH);
}

static void take_moves(const struct fit *fit, const double *still, const double *moved, bool *moves)
{
    for (unsigned int i = 0; i < fit->point_count; i++) {
        unsigned int point = fit->points_of[i];

        if (!(fabs(moved[point] - still[point]) < STILL))
            moves[fit->data->points[point].experiment] = true;
    }
}

int search_open(struct fit *fit, struct search_map *map)
{
    size_t points = fit->data->point_count, keys = fit->keys->count;
    size_t all = fit->data->experiment_count;
    struct runs_trial *trials = allocate_zeroed((2 * keys + 1) * sizeof(*trials));
    double *values = allocate_zeroed((2 * keys + 1) * keys * sizeof(double));
    double *outs = allocate_zeroed((2 * keys + 1) * points * sizeof(double) + 1);
    unsigned int *key_of = allocate_zeroed((2 * keys + 1) * sizeof(*key_of)), count = 1;
    bool *chosen = allocate_zeroed(all + 1);
    int status = 0;

    map->moves = allocate_zeroed(keys * all + 1);
    fit_experiments(fit, chosen);
    for (unsigned int i = 0; i < keys; i++) {
        const struct key *key = &fit->keys->list[i];

        if (key->variation != KEY_DISCRETE)
            continue;
        for (int k = 0; k < 2; k++, count++) {
            fit_values(fit, values + count * keys);
            values[count * keys + i] = k ? highest(key) : lowest(key);
            key_of[count] = i;
        }
    }
    fit_values(fit, values);
    for (unsigned int i = 0; i < count; i++)
        trials[i] = (struct runs_trial){ .values = values + i * keys,
                                         .experiments = chosen,
                                         .out = outs + i * points };
    if (count > 1)
        status = runs_evaluate(fit->runs, trials, count, "what depends on counts");
    for (unsigned int i = 1; !status && i < count; i++)
        take_moves(fit, outs, outs + i * points, map->moves + key_of[i] * all);
    free(trials);
    free(values);
    free(outs);
    free(key_of);
    free(chosen);
    return status;
}

void search_close(struct search_map *map)
{
    free(map->moves);
}

/* The counts at which the key's experiments were measured: between two of them lies a step. */
static unsigned int add_axis_values(const struct search *search, double low, double high,
                                    double *values, unsigned int count)
{
    const struct fit *fit = search->fit;

    for (unsigned int i = 0; i < fit->point_count && count < TRIES_MAX / 2; i++) {
        const struct data_point *point = &fit->data->points[fit->points_of[i]];
        bool known = *point->series->axis_unit || point->x < low || point->x > high ||
                     !search->experiments[point->experiment];

        for (unsigned int k = 0; k < count; k++)
            known |= values[k] == point->x;
        if (!known)
            values[count++] = point->x;
    }
    return count;
}

static unsigned int best_of(const struct tries *tries)
{
    unsigned int best = 0;

    for (unsigned int i = 1; i < tries->count; i++) {
        if (tries->loss[i] < tries->loss[best])
            best = i;
    }
    return best;
}

/* The neighbours of the best value that fit as well. */
static void plateau(const struct tries *tries, unsigned int *first, unsigned int *last)
{
    unsigned int best = best_of(tries);
    double most = tries->loss[best] * (1 + SAME) + 1e-9;

    *first = *last = best;
    while (*first && tries->loss[*first - 1] <= most)
        --*first;
    while (*last + 1 < tries->count && tries->loss[*last + 1] <= most)
        ++*last;
}

/* Halves the gaps on both sides of the plateau until they are small. */
static int narrow(struct search *search)
{
    int status = 0;

    for (int round = 0; !status && round < ROUNDS; round++) {
        const struct tries *tries = &search->tries;
        unsigned int first, last, count = 0;
        double wanted[2];

        plateau(tries, &first, &last);
        if (first && tries->value[first] - tries->value[first - 1] > 1)
            wanted[count++] = sqrt(fmax(1, tries->value[first]) * fmax(1, tries->value[first - 1]));
        if (last + 1 < tries->count && tries->value[last + 1] - tries->value[last] > 1)
            wanted[count++] = sqrt(fmax(1, tries->value[last]) * fmax(1, tries->value[last + 1]));
        if (!count)
            break;
        status = try_values(search, wanted, count);
    }
    return status;
}

static double loss_at(const struct tries *tries, double value)
{
    for (unsigned int i = 0; i < tries->count; i++) {
        if (tries->value[i] == value)
            return tries->loss[i];
    }
    return INFINITY;
}

/* Takes the middle of the values that fit equally well; that of START or the present one if it is
 * among them. */
static bool conclude(struct search *search)
{
    struct key *key = &search->fit->keys->list[search->key];
    const struct tries *tries = &search->tries;
    double before = key->value, noise = search->fit->misfit * search->fit->misfit;
    unsigned int first, last;
    bool open;

    plateau(tries, &first, &last);
    open = !first || last + 1 == tries->count; /* the data exclude one side only */
    key->low = tries->value[first];
    key->high = tries->value[last];
    key->origin = KEY_FITTED;
    key->value =
        keys_valid(key, open ? (first ? key->low : key->high) : sqrt(key->low * key->high));
    if ((before >= key->low && before <= key->high) ||
        loss_at(tries, before) - tries->loss[best_of(tries)] < BETTER * noise)
        key->value = before;
    if (key->start >= key->low && key->start <= key->high)
        key->value = key->start;
    if (open && key->value == key->start)
        key->origin = KEY_UNDETERMINED;
    return key->value != before;
}

static int search_key(struct search *search, bool *changed)
{
    struct key *key = &search->fit->keys->list[search->key];
    double low = lowest(key), high = highest(key), wanted[TRIES_MAX];
    unsigned int count = 0;
    int status;

    for (int i = 0; i <= GRID; i++)
        wanted[count++] = low * pow(high / low, (double)i / GRID);
    wanted[count++] = key->value;
    count = add_axis_values(search, low, high, wanted, count);
    status = try_values(search, wanted, count);
    if (!status)
        status = narrow(search);
    if (!status)
        *changed = conclude(search);
    return status;
}

/* The size of a cache places a step in curves, wherever the curves lie. How high the step is, other
 * counts and latencies decide together: counts wait until the latencies are right. */
static bool is_cache_size(const struct key *key)
{
    size_t length = strlen(key->row->key), end = strlen("_entries");

    return length > end && !strcmp(key->row->key + length - end, "_entries");
}

static bool any_of(const bool *flags, unsigned int count)
{
    return memchr(flags, true, count);
}

int search_run(struct fit *fit, const struct search_map *map, bool shape, bool *changed, bool *any)
{
    unsigned int all = fit->data->experiment_count;
    int status = 0;

    *any = false;
    for (unsigned int i = 0; !status && i < fit->keys->count; i++) {
        struct search search = {
            .fit = fit, .key = i, .experiments = map->moves + (size_t)i * all, .shape = shape
        };
        bool moved = false;

        if (fit->keys->list[i].variation != KEY_DISCRETE ||
            (shape && !is_cache_size(&fit->keys->list[i])))
            continue;
        if (any_of(search.experiments, all))
            status = search_key(&search, &moved);
        else
            fit->keys->list[i].origin = KEY_UNDETERMINED;
        for (unsigned int k = 0; moved && k < all; k++)
            changed[k] |= search.experiments[k];
        *any |= moved;
    }
    return status;
}
