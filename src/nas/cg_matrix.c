/* SPDX-License-Identifier: BSD-2-Clause */
#include "cg_matrix.h"
#include "random.h"
#include "util/util.h"

#include <math.h>
#include <stdlib.h>

#define MIDDLE 0.5

struct entry {
    uint32_t column;
    double value;
};

/* Sparse vectors of the same capacity. */
struct vectors {
    unsigned int capacity;
    unsigned int *counts;
    struct entry *entries;
};

struct maker {
    const struct cg_recipe *recipe;
    const struct cg_block *block;
    struct vectors vectors;
    uint64_t *starts;      /* of the rows, before equal columns are merged */
    struct entry *entries; /* of the block, by row */
};

static struct entry *find_column(struct entry *entries, unsigned int count, uint32_t column)
{
    for (unsigned int i = 0; i < count; i++) {
        if (entries[i].column == column)
            return &entries[i];
    }
    return NULL;
}

/* Draws values and columns until there are enough; columns beyond the order and duplicates do not
 * count. */
static unsigned int draw_vector(const struct cg_recipe *recipe, uint64_t *x, uint32_t row,
                                struct entry *entries)
{
    unsigned int count = 0;
    uint32_t range = 1;
    struct entry *middle;

    while (range < recipe->order)
        range *= 2;
    while (count < recipe->nonzeros) {
        double value = random_next(x);
        uint32_t column = (uint32_t)(range * random_next(x));

        if (column < recipe->order && !find_column(entries, count, column))
            entries[count++] = (struct entry){ column, value };
    }
    middle = find_column(entries, count, row);
    if (!middle)
        middle = &entries[count++];
    *middle = (struct entry){ row, MIDDLE };
    return count;
}

static int draw_vectors(struct maker *maker)
{
    struct vectors *vectors = &maker->vectors;
    uint32_t order = maker->recipe->order;
    uint64_t x = random_jump(RANDOM_SEED, 1);

    vectors->capacity = maker->recipe->nonzeros + 1;
    vectors->counts = malloc(order * sizeof(*vectors->counts));
    vectors->entries = malloc((size_t)order * vectors->capacity * sizeof(*vectors->entries));
    if (!vectors->counts || !vectors->entries)
        return -1;
    for (uint32_t row = 0; row < order; row++)
        vectors->counts[row] =
            draw_vector(maker->recipe, &x, row, vectors->entries + (size_t)row * vectors->capacity);
    return 0;
}

static bool has_row(const struct cg_block *block, uint32_t row)
{
    return row >= block->first_row && row < block->end_row;
}

static bool has_column(const struct cg_block *block, uint32_t column)
{
    return column >= block->first_column && column < block->end_column;
}

/* How many products fall into each row, as starts of the rows. */
static int count_products(struct maker *maker)
{
    const struct cg_block *block = maker->block;
    uint32_t rows = block->end_row - block->first_row;

    maker->starts = calloc(rows + 1, sizeof(*maker->starts));
    if (!maker->starts)
        return -1;
    for (uint32_t i = 0; i < maker->recipe->order; i++) {
        const struct entry *entries = maker->vectors.entries + (size_t)i * maker->vectors.capacity;
        unsigned int columns = 0;

        for (unsigned int k = 0; k < maker->vectors.counts[i]; k++)
            columns += has_column(block, entries[k].column);
        for (unsigned int k = 0; k < maker->vectors.counts[i]; k++) {
            if (has_row(block, entries[k].column))
                maker->starts[entries[k].column - block->first_row + 1] += columns;
        }
    }
    for (uint32_t row = 0; row < rows; row++)
        maker->starts[row + 1] += maker->starts[row];
    return 0;
}

static void add_products(struct maker *maker, const struct entry *vector, unsigned int count,
                         double weight, uint64_t *cursors)
{
    const struct cg_block *block = maker->block;

    for (unsigned int k = 0; k < count; k++) {
        uint32_t row = vector[k].column - block->first_row;

        if (!has_row(block, vector[k].column))
            continue;
        for (unsigned int l = 0; l < count; l++) {
            if (has_column(block, vector[l].column))
                maker->entries[cursors[row]++] =
                    (struct entry){ vector[l].column - block->first_column,
                                    weight * vector[k].value * vector[l].value };
        }
    }
}

static int make_products(struct maker *maker)
{
    const struct cg_recipe *recipe = maker->recipe;
    uint32_t rows = maker->block->end_row - maker->block->first_row;
    double weight = 1, ratio = pow(recipe->condition, 1.0 / recipe->order);
    uint64_t *cursors = malloc((rows + 1) * sizeof(*cursors));

    maker->entries = malloc((maker->starts[rows] + 1) * sizeof(*maker->entries));
    if (!maker->entries || !cursors) {
        free(cursors);
        return -1;
    }
    for (uint32_t row = 0; row < rows; row++)
        cursors[row] = maker->starts[row];
    for (uint32_t i = 0; i < recipe->order; i++, weight *= ratio)
        add_products(maker, maker->vectors.entries + (size_t)i * maker->vectors.capacity,
                     maker->vectors.counts[i], weight, cursors);
    free(cursors);
    return 0;
}

static int by_column(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;

    return (a->column > b->column) - (a->column < b->column);
}

/* Sorts each row, adds up entries of equal columns, and closes the gaps between rows. */
static void merge_rows(struct maker *maker)
{
    const struct cg_block *block = maker->block;
    uint32_t rows = block->end_row - block->first_row;
    uint64_t kept = 0;

    for (uint32_t row = 0; row < rows; row++) {
        uint64_t start = maker->starts[row], end = maker->starts[row + 1], first = kept;
        uint32_t diagonal = row + block->first_row - block->first_column;

        qsort(maker->entries + start, end - start, sizeof(*maker->entries), by_column);
        for (uint64_t i = start; i < end; i++) {
            struct entry entry = maker->entries[i];

            if (kept > first && maker->entries[kept - 1].column == entry.column)
                maker->entries[kept - 1].value += entry.value;
            else
                maker->entries[kept++] = entry;
        }
        /* Every vector has an entry at its own row, so the diagonal has one. */
        for (uint64_t i = first; i < kept; i++) {
            if (maker->entries[i].column == diagonal)
                maker->entries[i].value += maker->recipe->condition - maker->recipe->shift;
        }
        maker->starts[row] = first;
    }
    maker->starts[rows] = kept;
}

static int allocate_matrix(struct cg_matrix *matrix, struct nas_run *run)
{
    size_t row_count = (size_t)matrix->panels * matrix->rows;
    size_t capacity = matrix->nonzeros + row_count * (CG_GROUP - 1);

    matrix->starts = run_allocate(run, row_count + 1, sizeof(*matrix->starts));
    matrix->columns = run_allocate(run, capacity, sizeof(*matrix->columns));
    matrix->values = run_allocate(run, capacity, sizeof(*matrix->values));
    return matrix->starts && matrix->columns && matrix->values ? 0 : -1;
}

static int keep_matrix(const struct maker *maker, struct nas_run *run, struct cg_matrix *matrix)
{
    const struct cg_block *block = maker->block;
    uint64_t *start, kept = 0;

    matrix->rows = block->end_row - block->first_row;
    matrix->panels = (block->end_column - block->first_column + CG_PANEL - 1) / CG_PANEL;
    matrix->nonzeros = maker->starts[matrix->rows];
    if (allocate_matrix(matrix, run))
        return -1;
    start = matrix->starts;
    for (uint32_t panel = 0; panel < matrix->panels; panel++) {
        for (uint32_t row = 0; row < matrix->rows; row++) {
            *start++ = kept;
            for (uint64_t i = maker->starts[row]; i < maker->starts[row + 1]; i++) {
                if (maker->entries[i].column / CG_PANEL != panel)
                    continue;
                matrix->columns[kept] = maker->entries[i].column % CG_PANEL;
                matrix->values[kept++] = maker->entries[i].value;
            }
            kept = round_up(kept, CG_GROUP);
        }
    }
    *start = kept;
    return 0;
}

int cg_matrix_make(struct cg_matrix *matrix, struct nas_run *run, const struct cg_recipe *recipe,
                   const struct cg_block *block)
{
    struct maker maker = { .recipe = recipe, .block = block };
    int failed = draw_vectors(&maker) || count_products(&maker) || make_products(&maker);

    if (failed) {
        run_out_of_memory(run, "the matrix");
    } else {
        merge_rows(&maker);
        failed = keep_matrix(&maker, run, matrix);
    }
    free(maker.entries);
    free(maker.starts);
    free(maker.vectors.entries);
    free(maker.vectors.counts);
    return failed ? -1 : 0;
}
