/* SPDX-License-Identifier: BSD-2-Clause */
/* IS: ranks integer keys. Each rank sorts its keys into buckets, one exchange brings every bucket
 * to the rank that owns it, and the owner counts how often each key occurs. */
#include "random.h"
#include "run.h"

#include <stdio.h>
#include <string.h>

#define ITERATIONS 10
#define PROBES     5
#define TABLES     4 /* so that equal neighbouring keys do not wait for each other's increment */

/* The key at 'index' has rank 'rank' + 'slope' * iteration + 'offset'. */
struct probe {
    uint32_t index;
    int64_t rank;
    int slope, offset;
};

struct is_size {
    unsigned int keys_log2, limit_log2, buckets_log2;
    struct probe probes[PROBES];
};

/* clang-format off */
static const struct is_size sizes[NAS_CLASSES] = {
    [CLASS_S] = { 16, 11, 9,
        { { 48427, 0, 1, 0 }, { 17148, 18, 1, 0 }, { 23627, 346, 1, 0 },
          { 62548, 64917, -1, 0 }, { 4431, 65463, -1, 0 } } },
    [CLASS_W] = { 20, 16, 10,
        { { 357773, 1249, 1, -2 }, { 934767, 11698, 1, -2 }, { 875723, 1039987, -1, 0 },
          { 898999, 1043896, -1, 0 }, { 404505, 1048018, -1, 0 } } },
    [CLASS_A] = { 23, 19, 10,
        { { 2112377, 104, 1, -1 }, { 662041, 17523, 1, -1 }, { 5336171, 123928, 1, -1 },
          { 3642833, 8288932, -1, 1 }, { 4250760, 8388264, -1, 1 } } },
    [CLASS_B] = { 25, 21, 10,
        { { 41869, 33422937, -1, 0 }, { 812306, 10244, 1, 0 }, { 5102857, 59149, 1, 0 },
          { 18232239, 33135281, -1, 0 }, { 26860214, 99, 1, 0 } } },
    [CLASS_C] = { 27, 23, 10,
        { { 44172927, 61147, 1, 0 }, { 72999161, 882988, 1, 0 }, { 74326391, 266290, 1, 0 },
          { 129606274, 133997595, -1, 0 }, { 21736814, 133525895, -1, 0 } } },
};
/* clang-format on */

struct is {
    struct nas_run *run;
    const struct is_size *size;
    uint32_t share;     /* keys that are generated here */
    uint32_t buckets;   /* on all ranks */
    unsigned int shift; /* of a key to its bucket */
    uint32_t *keys;     /* as generated */
    uint32_t *bucketed; /* the keys in the order of their buckets */
    uint32_t *received; /* the keys that this rank ranks */
    uint32_t *ranks;    /* by key - first_key: keys of this rank that are not greater */
    uint32_t *tables;   /* TABLES histograms of this rank's keys */
    uint32_t *totals;   /* keys per bucket on all ranks, then the keys at the probes */
    uint32_t *cursors;  /* where the next key of a bucket goes */
    int *out_counts, *out_starts, *in_counts, *in_starts;
    uint32_t capacity; /* of 'received' */
    uint32_t received_count;
    uint32_t first_key, key_count; /* the keys that are owned here */
    uint64_t before;               /* keys on all ranks below first_key */
    uint64_t probes_right;
};

static void generate(struct is *is)
{
    uint64_t x = random_jump(RANDOM_SEED, 4ull * is->share * is->run->rank);
    double quarter = (double)(1u << is->size->limit_log2) / 4;

    for (uint32_t i = 0; i < is->share; i++) {
        double sum = random_next(&x);

        sum += random_next(&x);
        sum += random_next(&x);
        sum += random_next(&x);
        is->keys[i] = (uint32_t)(quarter * sum);
    }
}

/* Two keys change in each iteration, so that no iteration can be skipped. */
static void change_keys(struct is *is, unsigned int iteration)
{
    if (is->run->rank)
        return;
    is->keys[iteration] = iteration;
    is->keys[iteration + ITERATIONS] = (1u << is->size->limit_log2) - iteration;
}

static void set_probes(struct is *is)
{
    uint64_t first = (uint64_t)is->share * is->run->rank;

    for (unsigned int i = 0; i < PROBES; i++) {
        uint64_t index = is->size->probes[i].index;

        is->totals[is->buckets + i] =
            index >= first && index - first < is->share ? is->keys[index - first] : 0;
    }
}

static void count_buckets(struct is *is)
{
    uint32_t *tables = is->tables, buckets = is->buckets;
    const uint32_t *keys = is->keys;
    unsigned int shift = is->shift;

    memset(tables, 0, TABLES * buckets * sizeof(*tables));
    for (uint32_t i = 0; i < is->share; i += TABLES) {
        for (unsigned int table = 0; table < TABLES; table++)
            tables[table * buckets + (keys[i + table] >> shift)]++;
    }
    for (uint32_t bucket = 0; bucket < buckets; bucket++) {
        for (unsigned int table = 1; table < TABLES; table++)
            tables[bucket] += tables[table * buckets + bucket];
    }
}

static void fill_buckets(struct is *is)
{
    uint32_t *cursors = is->cursors, *to = is->bucketed, start = 0, share = is->share;
    const uint32_t *keys = is->keys;
    unsigned int shift = is->shift;

    for (uint32_t bucket = 0; bucket < is->buckets; bucket++) {
        cursors[bucket] = start;
        start += is->tables[bucket];
    }
    for (uint32_t i = 0; i < share; i++) {
        uint32_t key = keys[i];

        to[cursors[key >> shift]++] = key;
    }
    nas_work(WORK_KEYS_BUCKETED, share);
}

/* A bucket belongs to the rank into whose share of all keys its first key falls. */
static void divide_buckets(struct is *is)
{
    uint64_t below = 0;
    uint32_t start = 0;

    is->first_key = is->key_count = 0;
    is->before = 0;
    memset(is->out_counts, 0, is->run->ranks * sizeof(int));
    for (uint32_t bucket = 0; bucket < is->buckets; bucket++) {
        int owner = below / is->share;

        /* Empty buckets at the upper end come after all keys. */
        if (owner == is->run->ranks)
            owner--;
        is->out_counts[owner] += is->tables[bucket];
        if (owner == is->run->rank) {
            if (!is->key_count) {
                is->first_key = bucket << is->shift;
                is->before = below;
            }
            is->key_count += 1u << is->shift;
        }
        below += is->totals[bucket];
    }
    for (int i = 0; i < is->run->ranks; i++) {
        is->out_starts[i] = start;
        start += is->out_counts[i];
    }
}

static void exchange_keys(struct is *is)
{
    uint32_t start = 0;

    comm_alltoall(is->out_counts, 1, MPI_INT, is->in_counts, MPI_COMM_WORLD);
    for (int i = 0; i < is->run->ranks; i++) {
        is->in_starts[i] = start;
        start += is->in_counts[i];
    }
    is->received_count = start;
    comm_alltoallv(is->bucketed, is->out_counts, is->out_starts, is->received, is->in_counts,
                   is->in_starts, MPI_UINT32_T, MPI_COMM_WORLD);
}

static void count_keys(struct is *is)
{
    uint32_t *ranks = is->ranks, sum = 0;
    const uint32_t *keys = is->received;
    uint32_t first = is->first_key, count = is->received_count, key_count = is->key_count;

    memset(ranks, 0, is->key_count * sizeof(*ranks));
    for (uint32_t i = 0; i < count; i++)
        ranks[keys[i] - first]++;
    for (uint32_t i = 0; i < key_count; i++)
        ranks[i] = sum += ranks[i];
    nas_work(WORK_KEYS_RANKED, count);
}

static void check_probes(struct is *is, unsigned int iteration)
{
    for (unsigned int i = 0; i < PROBES; i++) {
        const struct probe *probe = &is->size->probes[i];
        uint32_t key = is->totals[is->buckets + i], offset = key - is->first_key;
        int64_t rank = is->before;

        if (key < is->first_key || offset >= is->key_count)
            continue;
        rank += offset ? is->ranks[offset - 1] : 0;
        is->probes_right += rank == probe->rank + probe->slope * (int64_t)iteration + probe->offset;
    }
}

static void sum_buckets(struct is *is, unsigned int iteration)
{
    change_keys(is, iteration);
    count_buckets(is);
    memcpy(is->totals, is->tables, is->buckets * sizeof(*is->totals));
    set_probes(is);
    comm_allreduce(is->totals, is->buckets + PROBES, MPI_UINT32_T, MPI_COMM_WORLD);
}

static void rank_keys(struct is *is, unsigned int iteration)
{
    sum_buckets(is, iteration);
    fill_buckets(is);
    divide_buckets(is);
    exchange_keys(is);
    count_keys(is);
    check_probes(is, iteration);
}

/* Sorts the keys, and returns how many have a greater left neighbour, on this rank or the one
 * before. */
static uint64_t count_disorder(struct is *is)
{
    int rank = is->run->rank;
    uint64_t disorder = 0;
    uint32_t *sorted = is->bucketed, last, *all = is->totals;

    for (uint32_t i = 0; i < is->received_count; i++)
        sorted[--is->ranks[is->received[i] - is->first_key]] = is->received[i];
    for (uint32_t i = 1; i < is->received_count; i++)
        disorder += sorted[i - 1] > sorted[i];
    last = is->received_count ? sorted[is->received_count - 1] : 0;
    comm_allgather(&last, 1, MPI_UINT32_T, all, MPI_COMM_WORLD);
    for (int i = 0; i < rank && is->received_count; i++)
        disorder += all[i] > sorted[0];
    comm_allreduce(&disorder, 1, MPI_UINT64_T, MPI_COMM_WORLD);
    return disorder;
}

static void verify(struct is *is)
{
    uint64_t disorder = count_disorder(is);

    comm_allreduce(&is->probes_right, 1, MPI_UINT64_T, MPI_COMM_WORLD);
    run_check(is->run, PROBES * ITERATIONS, is->probes_right, 0, "known ranks found");
    run_check(is->run, 0, disorder, 0, "keys out of order");
}

static int prepare(struct is *is)
{
    struct nas_run *run = is->run;
    uint32_t largest = 0;

    is->keys = run_allocate(run, is->share, sizeof(*is->keys));
    is->tables = run_allocate(run, TABLES * is->buckets, sizeof(*is->tables));
    is->totals = run_allocate(run, is->buckets + PROBES, sizeof(*is->totals));
    is->cursors = run_allocate(run, is->buckets, sizeof(*is->cursors));
    is->ranks = run_allocate(run, 1u << is->size->limit_log2, sizeof(*is->ranks));
    is->out_counts = run_allocate(run, run->ranks, sizeof(int));
    is->out_starts = run_allocate(run, run->ranks, sizeof(int));
    is->in_counts = run_allocate(run, run->ranks, sizeof(int));
    is->in_starts = run_allocate(run, run->ranks, sizeof(int));
    if (!is->keys || !is->tables || !is->totals || !is->cursors || !is->ranks || !is->out_counts ||
        !is->out_starts || !is->in_counts || !is->in_starts)
        return -1;
    generate(is);
    sum_buckets(is, 1);
    for (uint32_t bucket = 0; bucket < is->buckets; bucket++)
        largest = is->totals[bucket] > largest ? is->totals[bucket] : largest;
    /* As divide_buckets() does; each later iteration may add a key to the largest. */
    is->capacity = is->share + largest + 2 * ITERATIONS;
    is->bucketed = run_allocate(run, is->capacity, sizeof(*is->bucketed));
    is->received = run_allocate(run, is->capacity, sizeof(*is->received));
    return is->bucketed && is->received ? 0 : -1;
}

static int is_run(struct nas_run *run)
{
    const struct is_size *size = &sizes[run->class];
    struct is is = {
        .run = run,
        .size = size,
        .share = (1u << size->keys_log2) / run->ranks,
        .buckets = 1u << size->buckets_log2,
        .shift = size->limit_log2 - size->buckets_log2,
    };

    if ((uint32_t)run->ranks > is.buckets)
        return run_error(run, "%u buckets support at most as many ranks, not %d", is.buckets,
                         run->ranks);
    snprintf(run->problem, sizeof(run->problem), "2^%u keys below 2^%u", size->keys_log2,
             size->limit_log2);
    run->iterations = ITERATIONS;
    run->operations = (double)ITERATIONS * (1u << size->keys_log2);
    if (prepare(&is))
        return -1;
    rank_keys(&is, 1);
    is.probes_right = 0;
    run_begin(run);
    for (unsigned int iteration = 1; iteration <= ITERATIONS; iteration++) {
        rank_keys(&is, iteration);
        run_progress(run, iteration);
    }
    run_end(run);
    verify(&is);
    return 0;
}

const struct nas_kernel nas_is = { .name = "is", .title = "integer sort", .run = is_run };
