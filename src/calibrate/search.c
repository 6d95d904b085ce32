/* SPDX-License-Identifier: BSD-2-Clause */
#include "calibrate/search.h"

#include "calibrate/adjust.h"
#include "results/allocate.h"
#include "util/sorted.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define REACH     16 /* a value is searched up to that of START times REACH */
#define GRID      12 /* values of the first round, besides those of the axes */
#define ROUNDS    6  /* of narrowing it down */
#define NEAR      1.2 /* no minimum is looked for between values in this ratio */
#define TRIES_MAX 128
#define BESIDE    2 /* sizes of a cache on both sides: of neighbours, one may fit and the next not */
#define SAME      0.01 /* relative difference of losses that do not differ */
#define STILL     1e-4

/* In the order of their values. */
struct tries {
    unsigned int count;
    struct try {
        double value, loss;
        double *out; /* by point */
    } list[TRIES_MAX];
};

struct search {
    struct fit *fit;
    unsigned int key;
    const bool *experiments; /* that the key moves */
    enum search_pass pass;
    double *still; /* nearby: the output at the present values, of all experiments */
    struct tries tries;
};

/* How many tries have a smaller value. */
static unsigned int place_of(const struct tries *tries, double value)
{
    unsigned int place = 0;

    while (place < tries->count && tries->list[place].value < value)
        place++;
    return place;
}

static bool is_tried(const struct tries *tries, double value)
{
    unsigned int place = place_of(tries, value);

    return place < tries->count && tries->list[place].value == value;
}

static void add_try(struct tries *tries, struct try try)
{
    unsigned int place = place_of(tries, try.value);

    memmove(tries->list + place + 1, tries->list + place,
            (tries->count - place) * sizeof(*tries->list));
    tries->list[place] = try;
    tries->count++;
}

static bool any_of(const bool *flags, unsigned int count)
{
    return memchr(flags, true, count);
}

static void take_moves(const struct fit *fit, const double *still, const double *moved, bool *moves)
{
    for (unsigned int i = 0; i < fit->point_count; i++) {
        unsigned int point = fit->points_of[i];

        if (!(fabs(moved[point] - still[point]) < STILL))
            moves[fit->data->points[point].experiment] = true;
    }
}

/* The experiments to run with a value. One that does not differ between the nearest smaller and the
 * nearest larger try is the same in between. */
static void choose_experiments(const struct search *search, double value, bool *chosen)
{
    const struct tries *tries = &search->tries;
    unsigned int place = place_of(tries, value), all = search->fit->data->experiment_count;

    memcpy(chosen, search->experiments, all);
    if (!place || place == tries->count)
        return;
    memset(chosen, 0, all);
    take_moves(search->fit, tries->list[place - 1].out, tries->list[place].out, chosen);
    for (unsigned int i = 0; i < all; i++)
        chosen[i] &= search->experiments[i];
}

static void copy_rest(const struct search *search, double value, const bool *chosen, double *out)
{
    const struct data *data = search->fit->data;
    unsigned int place = place_of(&search->tries, value);

    for (unsigned int i = 0; place && i < data->point_count; i++) {
        if (!chosen[data->points[i].experiment])
            out[i] = search->tries.list[place - 1].out[i];
    }
}

static void copy_other_experiments(const struct search *search, double *out)
{
    const struct data *data = search->fit->data;

    for (unsigned int i = 0; i < data->point_count; i++) {
        if (!search->experiments[data->points[i].experiment])
            out[i] = search->still[i];
    }
}

static double loss_of(const struct search *search, const double *out)
{
    if (search->pass == SEARCH_NEARBY)
        return adjust_loss(search->fit, search->still, out);
    return fit_loss(search->fit, out, search->experiments, search->pass == SEARCH_SHAPES);
}

/* Runs the key's experiments with each of these values, all of which are new. */
static int run_values(struct search *search, const double *wanted, unsigned int count)
{
    struct fit *fit = search->fit;
    size_t keys = fit->keys->count, all = fit->data->experiment_count;
    struct runs_trial trials[TRIES_MAX];
    struct try found[TRIES_MAX];
    double *values = allocate_zeroed((count * keys + 1) * sizeof(*values));
    bool *chosen = allocate_zeroed(count * all + 1);
    int status;

    for (unsigned int i = 0; i < count; i++) {
        found[i].value = wanted[i];
        found[i].out = allocate_zeroed((fit->data->point_count + 1) * sizeof(double));
        fit_values(fit, values + i * keys);
        values[i * keys + search->key] = wanted[i];
        choose_experiments(search, wanted[i], chosen + i * all);
        trials[i] = (struct runs_trial){ .values = values + i * keys,
                                         .experiments = chosen + i * all,
                                         .out = found[i].out };
    }
    status = runs_evaluate(fit->runs, trials, count, fit->keys->list[search->key].row->key);
    for (unsigned int i = 0; i < count; i++)
        copy_rest(search, wanted[i], chosen + i * all, found[i].out);
    for (unsigned int i = 0; i < count; i++) {
        if (search->still)
            copy_other_experiments(search, found[i].out);
        found[i].loss = loss_of(search, found[i].out);
        add_try(&search->tries, found[i]);
    }
    free(values);
    free(chosen);
    return status;
}

/* Chooses among sorted values: both ends at first, then the middle one of each gap. */
static unsigned int next_values(const struct tries *tries, const double *wanted, unsigned int count,
                                double *out)
{
    unsigned int some = 0;

    if (!tries->count) {
        out[some++] = wanted[0];
        if (count > 1)
            out[some++] = wanted[count - 1];
        return some;
    }
    for (unsigned int i = 0, end; i < count; i = end) {
        for (end = i; end < count && place_of(tries, wanted[end]) == place_of(tries, wanted[i]);)
            end++;
        out[some++] = wanted[(i + end) / 2];
    }
    return some;
}

/* Keeps the values of a sorted list that are new, each once. Returns how many. */
static unsigned int keep_new(const struct tries *tries, double *wanted, unsigned int count)
{
    unsigned int kept = 0;

    for (unsigned int i = 0; i < count && tries->count + kept < TRIES_MAX; i++) {
        if (!is_tried(tries, wanted[i]) && (!kept || wanted[i] != wanted[kept - 1]))
            wanted[kept++] = wanted[i];
    }
    return kept;
}

/* Tries the values that are new, from the outside to the inside. */
static int try_values(struct search *search, double *wanted, unsigned int count)
{
    const struct key *key = &search->fit->keys->list[search->key];
    double next[TRIES_MAX];
    int status = 0;

    for (unsigned int i = 0; i < count; i++)
        wanted[i] = keys_valid(key, wanted[i]);
    sorted_make(wanted, count);
    while (!status && (count = keep_new(&search->tries, wanted, count)))
        status = run_values(search, next, next_values(&search->tries, wanted, count, next));
    return status;
}

static void free_tries(struct tries *tries)
{
    while (tries->count)
        free(tries->list[--tries->count].out);
}

static double lowest(const struct key *key)
{
    return fmax(1, key->row->minimum); /* 0 often stands for "all" */
}

static double highest(const struct key *key)
{
    return keys_valid(key, keys_seed(key) * REACH);
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

/* The size of a cache places a step in curves, wherever the curves lie. How high the step is, other
 * counts and latencies decide together: counts wait until the latencies are right. */
static bool is_cache_size(const struct key *key)
{
    size_t length = strlen(key->row->key), end = strlen("_entries");

    return length > end && !strcmp(key->row->key + length - end, "_entries");
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
        if (tries->list[i].loss < tries->list[best].loss)
            best = i;
    }
    return best;
}

/* The square of a standard error, in units of the loss. */
static double noise_of(const struct search *search)
{
    return search->fit->misfit * search->fit->misfit;
}

/* The difference of losses that do not differ. The last pass looks for all values that may be the
 * right one, the others for those that are as good as the best. */
static double same(const struct search *search)
{
    if (search->pass == SEARCH_NEARBY)
        return ADJUST_BETTER * noise_of(search);
    return SAME * search->tries.list[best_of(&search->tries)].loss + noise_of(search);
}

/* The values that fit as well as the best one: its neighbours, and in the last pass any others. */
static void plateau(const struct search *search, unsigned int *first, unsigned int *last)
{
    const struct tries *tries = &search->tries;
    unsigned int best = best_of(tries);
    double most = tries->list[best].loss + same(search);
    bool gaps = search->pass == SEARCH_NEARBY;

    *first = *last = best;
    for (unsigned int i = best; i-- && (gaps || *first == i + 1);) {
        if (tries->list[i].loss <= most)
            *first = i;
    }
    for (unsigned int i = best + 1; i < tries->count && (gaps || *last == i - 1); i++) {
        if (tries->list[i].loss <= most)
            *last = i;
    }
}

/* The value in the middle of the gap above a try, if there is one. */
static unsigned int add_middle(const struct tries *tries, unsigned int below, double *wanted,
                               unsigned int count)
{
    double low = tries->list[below].value, high = tries->list[below + 1].value;

    if (high - low > 1)
        wanted[count++] = sqrt(fmax(1, low) * high);
    return count;
}

static double worst_loss(const struct tries *tries)
{
    double worst = 0;

    for (unsigned int i = 0; i < tries->count; i++)
        worst = fmax(worst, tries->list[i].loss);
    return worst;
}

/* Whether curves differ between a try and the next one, and a minimum may lie there: neither the
 * values nor the losses say that it cannot. */
static bool may_hide_minimum(const struct search *search, unsigned int below)
{
    const struct tries *tries = &search->tries;
    const struct try *low = &tries->list[below], *high = low + 1;
    double half = (tries->list[best_of(tries)].loss + worst_loss(tries)) / 2;
    bool *differ, any;

    if (high->value <= low->value * NEAR || fmin(low->loss, high->loss) > half)
        return false;
    differ = allocate_zeroed(search->fit->data->experiment_count + 1);
    choose_experiments(search, high->value, differ);
    any = any_of(differ, search->fit->data->experiment_count);
    free(differ);
    return any;
}

/* Halves the gaps in which a minimum may hide. */
static int look_between(struct search *search)
{
    const struct tries *tries = &search->tries;
    double wanted[TRIES_MAX];
    unsigned int count, before;
    int status;

    do {
        before = tries->count;
        count = 0;
        for (unsigned int i = 0; i + 1 < before; i++) {
            if (may_hide_minimum(search, i))
                count = add_middle(tries, i, wanted, count);
        }
        status = try_values(search, wanted, count);
    } while (!status && tries->count > before);
    return status;
}

/* Halves the gaps on both sides of the plateau until they are small. */
static int narrow(struct search *search)
{
    const struct tries *tries = &search->tries;
    int status = 0;

    for (int round = 0; !status && round < ROUNDS; round++) {
        unsigned int first, last, count = 0;
        double wanted[2];

        plateau(search, &first, &last);
        if (first)
            count = add_middle(tries, first - 1, wanted, count);
        if (last + 1 < tries->count)
            count = add_middle(tries, last, wanted, count);
        if (!count)
            break;
        status = try_values(search, wanted, count);
    }
    return status;
}

static double loss_at(const struct tries *tries, double value)
{
    unsigned int place = place_of(tries, value);

    return is_tried(tries, value) ? tries->list[place].loss : INFINITY;
}

static bool start_is_possible(const struct search *search)
{
    const struct key *key = &search->fit->keys->list[search->key];
    const struct tries *tries = &search->tries;
    double least = tries->list[best_of(tries)].loss;

    return (key->start >= key->low && key->start <= key->high) ||
           loss_at(tries, key->start) <= least + ADJUST_BETTER * noise_of(search);
}

/* Takes the middle of the values that fit equally well, or the present one if it is among them. START
 * goes before both, unless it fits clearly worse; the last pass does not ask that again. */
static bool conclude(struct search *search)
{
    struct key *key = &search->fit->keys->list[search->key];
    const struct tries *tries = &search->tries;
    double before = key->value;
    unsigned int first, last;
    bool open;

    plateau(search, &first, &last);
    open = !first || last + 1 == tries->count; /* the data exclude one side only */
    key->low = tries->list[first].value;
    key->high = tries->list[last].value;
    key->origin = KEY_FITTED;
    key->value =
        keys_valid(key, open ? (first ? key->low : key->high) : sqrt(key->low * key->high));
    if (before >= key->low && before <= key->high)
        key->value = before;
    if (search->pass != SEARCH_NEARBY && start_is_possible(search))
        key->value = key->start;
    key->low = fmin(key->low, key->value);
    key->high = fmax(key->high, key->value);
    if (open && key->value == key->start)
        key->origin = KEY_UNDETERMINED;
    return key->value != before;
}

static unsigned int choose_everywhere(const struct search *search, double *values)
{
    const struct key *key = &search->fit->keys->list[search->key];
    double low = lowest(key), high = highest(key);
    unsigned int count = 0;

    for (int i = 0; i <= GRID; i++)
        values[count++] = low * pow(high / low, (double)i / GRID);
    values[count++] = key->value;
    return is_cache_size(key) ? add_axis_values(search, low, high, values, count) : count;
}

static unsigned int choose_nearby(const struct search *search, double *values)
{
    const struct key *key = &search->fit->keys->list[search->key];
    const double some[] = { lowest(key), key->low / NEAR,  key->low,    key->value,
                            key->high,   key->high * NEAR, highest(key) };
    unsigned int count = sizeof(some) / sizeof(*some);

    memcpy(values, some, sizeof(some));
    for (int i = 1; i <= BESIDE && is_cache_size(key); i++) {
        values[count++] = fmax(key->low - i, lowest(key));
        values[count++] = key->high + i;
    }
    return count;
}

static int search_key(struct search *search, bool *changed)
{
    bool nearby = search->pass == SEARCH_NEARBY;
    double wanted[TRIES_MAX];
    unsigned int count = nearby ? choose_nearby(search, wanted) : choose_everywhere(search, wanted);
    int status = try_values(search, wanted, count);

    if (!status && search->pass == SEARCH_SHAPES)
        status = look_between(search);
    if (!status)
        status = narrow(search);
    if (!status)
        *changed = conclude(search);
    return status;
}

/* A mechanism that START does not have, and of which the data only tell that it is there. */
static bool may_be_off(const struct key *key)
{
    return key->variation == KEY_SMOOTH && key->origin == KEY_UNDETERMINED && !key->start;
}

int search_switched_off(struct fit *fit)
{
    size_t points = fit->data->point_count, keys = fit->keys->count;
    struct runs_trial *trials = allocate_zeroed((keys + 1) * sizeof(*trials));
    double *values = allocate_zeroed((keys + 1) * keys * sizeof(double) + 1);
    double *outs = allocate_zeroed((keys + 1) * points * sizeof(double) + 1);
    bool *chosen = allocate_zeroed(fit->data->experiment_count + 1);
    unsigned int *key_of = allocate_zeroed((keys + 1) * sizeof(*key_of)), count = 1;
    double most;
    int status = 0;

    fit_experiments(fit, chosen);
    for (unsigned int i = 0; i < keys; i++) {
        if (may_be_off(&fit->keys->list[i]))
            key_of[count++] = i;
    }
    for (unsigned int i = 0; i < count; i++) {
        fit_values(fit, values + i * keys);
        if (i)
            values[i * keys + key_of[i]] = 0;
        trials[i] = (struct runs_trial){ .values = values + i * keys,
                                         .experiments = chosen,
                                         .out = outs + i * points };
    }
    if (count > 1)
        status = runs_evaluate(fit->runs, trials, count, "what START has switched off");
    most = fit_loss(fit, outs, chosen, false) + ADJUST_BETTER * fit->misfit * fit->misfit;
    for (unsigned int i = 1; !status && i < count; i++) {
        if (fit_loss(fit, outs + i * points, chosen, false) > most)
            fit->keys->list[key_of[i]].origin = KEY_FITTED;
    }
    free(trials);
    free(values);
    free(outs);
    free(chosen);
    free(key_of);
    return status;
}

static bool is_searched(const struct key *key, enum search_pass pass)
{
    if (key->variation != KEY_DISCRETE)
        return false;
    if (pass == SEARCH_NEARBY)
        return key->origin == KEY_FITTED;
    return is_cache_size(key) == (pass != SEARCH_COUNTS);
}

/* What the model gives at the present values; most of it is known. */
static int run_present(struct search *search)
{
    struct fit *fit = search->fit;
    double *values = allocate_zeroed((fit->keys->count + 1) * sizeof(*values));
    bool *chosen = allocate_zeroed(fit->data->experiment_count + 1);
    struct runs_trial trial = { .values = values, .experiments = chosen };
    int status;

    search->still = allocate_zeroed((fit->data->point_count + 1) * sizeof(double));
    trial.out = search->still;
    fit_experiments(fit, chosen);
    fit_values(fit, values);
    status = runs_evaluate(fit->runs, &trial, 1, fit->keys->list[search->key].row->key);
    free(values);
    free(chosen);
    return status;
}

int search_run(struct fit *fit, const struct search_map *map, enum search_pass pass, bool *changed,
               bool *any)
{
    unsigned int all = fit->data->experiment_count;
    int status = 0;

    *any = false;
    for (unsigned int i = 0; !status && i < fit->keys->count; i++) {
        struct search search = {
            .fit = fit, .key = i, .experiments = map->moves + (size_t)i * all, .pass = pass
        };
        bool moved = false;

        if (!is_searched(&fit->keys->list[i], pass))
            continue;
        if (pass == SEARCH_NEARBY)
            status = run_present(&search);
        if (!any_of(search.experiments, all))
            fit->keys->list[i].origin = KEY_UNDETERMINED;
        else if (!status)
            status = search_key(&search, &moved);
        free_tries(&search.tries);
        free(search.still);
        for (unsigned int k = 0; moved && k < all; k++)
            changed[k] |= search.experiments[k];
        *any |= moved;
    }
    return status;
}
