/* SPDX-License-Identifier: BSD-2-Clause */
#include "calibrate/identify.h"

#include "results/allocate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SWEEPS_MAX 60
#define TINY       1e-12
#define SHARP      0.15 /* relative standard error of a key that is determined */
#define VAGUE      0.5  /* of one that is not */
#define FAR        1.0  /* logarithm of a factor that START alone does not allow */
#define PART       0.25 /* least component of a key in a direction that it has part in */
#define SURE       0.05 /* relative standard error of a sum that is worth naming */

/* The information of the data about the keys, as eigenvalues and eigenvectors. START adds 1 in
 * every direction. */
struct spectrum {
    unsigned int size;
    double *matrix;  /* JtJ; its diagonal ends as the eigenvalues */
    double *vectors; /* by column */
};

static double *at(double *matrix, unsigned int size, unsigned int row, unsigned int column)
{
    return &matrix[(size_t)column * size + row];
}

/* One rotation of Jacobi's method: makes element (p, q) zero. */
static void rotate(struct spectrum *spectrum, unsigned int p, unsigned int q)
{
    unsigned int n = spectrum->size;
    double off = *at(spectrum->matrix, n, p, q);
    double theta = (*at(spectrum->matrix, n, q, q) - *at(spectrum->matrix, n, p, p)) / (2 * off);
    double t = (theta < 0 ? -1 : 1) / (fabs(theta) + sqrt(theta * theta + 1));
    double c = 1 / sqrt(t * t + 1), s = t * c;

    for (unsigned int i = 0; i < n; i++) {
        double a = *at(spectrum->matrix, n, i, p), b = *at(spectrum->matrix, n, i, q);

        *at(spectrum->matrix, n, i, p) = c * a - s * b;
        *at(spectrum->matrix, n, i, q) = s * a + c * b;
    }
    for (unsigned int i = 0; i < n; i++) {
        double a = *at(spectrum->matrix, n, p, i), b = *at(spectrum->matrix, n, q, i);
        double u = *at(spectrum->vectors, n, i, p), v = *at(spectrum->vectors, n, i, q);

        *at(spectrum->matrix, n, p, i) = c * a - s * b;
        *at(spectrum->matrix, n, q, i) = s * a + c * b;
        *at(spectrum->vectors, n, i, p) = c * u - s * v;
        *at(spectrum->vectors, n, i, q) = s * u + c * v;
    }
}

static void diagonalise(struct spectrum *spectrum)
{
    unsigned int n = spectrum->size;

    for (int sweep = 0; sweep < SWEEPS_MAX; sweep++) {
        bool done = true;

        for (unsigned int p = 0; p < n; p++) {
            for (unsigned int q = p + 1; q < n; q++) {
                double scale =
                    *at(spectrum->matrix, n, p, p) + *at(spectrum->matrix, n, q, q) + TINY;

                if (fabs(*at(spectrum->matrix, n, p, q)) < TINY * scale)
                    continue;
                rotate(spectrum, p, q);
                done = false;
            }
        }
        if (done)
            return;
    }
}

static void spectrum_open(const struct fit *fit, struct spectrum *spectrum)
{
    unsigned int n = fit->key_count;

    spectrum->size = n;
    spectrum->matrix = allocate_zeroed((size_t)n * n * sizeof(double) + 1);
    spectrum->vectors = allocate_zeroed((size_t)n * n * sizeof(double) + 1);
    for (unsigned int p = 0; p < n; p++) {
        *at(spectrum->vectors, n, p, p) = 1;
        for (unsigned int q = 0; q < n; q++) {
            double sum = 0;

            for (unsigned int i = 0; fit->jacobian && i < fit->point_count; i++)
                sum += fit->jacobian[(size_t)p * fit->point_count + i] *
                       fit->jacobian[(size_t)q * fit->point_count + i];
            *at(spectrum->matrix, n, p, q) = sum;
        }
    }
}

static void spectrum_close(struct spectrum *spectrum)
{
    free(spectrum->matrix);
    free(spectrum->vectors);
}

/* The variance that is left in the direction of an eigenvector. */
static double variance(const struct spectrum *spectrum, unsigned int j)
{
    return 1 / (fmax(0, *at(spectrum->matrix, spectrum->size, j, j)) + 1);
}

/* The variance of the sum of 'weights' times the logarithms of the keys. */
static double variance_of(const struct spectrum *spectrum, const double *weights)
{
    double sum = 0;

    for (unsigned int j = 0; j < spectrum->size; j++) {
        double part = 0;

        for (unsigned int i = 0; i < spectrum->size; i++)
            part += weights[i] * *at(spectrum->vectors, spectrum->size, i, j);
        sum += part * part * variance(spectrum, j);
    }
    return sum;
}

static double error_of(const struct spectrum *spectrum, unsigned int key)
{
    double *weights = allocate_zeroed(spectrum->size * sizeof(*weights));
    double error;

    weights[key] = 1;
    error = sqrt(variance_of(spectrum, weights));
    free(weights);
    return error;
}

/* The keys that a poorly determined direction ties together get the same number. */
static void tie(const struct spectrum *spectrum, double misfit, const bool *loose,
                unsigned int *group)
{
    unsigned int n = spectrum->size;

    for (unsigned int j = 0; j < n; j++) {
        unsigned int first = n;

        if (misfit * sqrt(variance(spectrum, j)) < SHARP)
            continue;
        for (unsigned int i = 0; i < n; i++) {
            unsigned int old = group[i];

            if (!loose[i] || fabs(*at(spectrum->vectors, n, i, j)) < PART)
                continue;
            if (first == n)
                first = i;
            for (unsigned int k = 0; k < n; k++) {
                if (group[k] == old)
                    group[k] = group[first];
            }
        }
    }
}

static void find_direction(const struct spectrum *spectrum, const unsigned int *members,
                           struct identify_group *out)
{
    unsigned int n = spectrum->size, weakest = 0;
    double most = -1, largest = TINY;

    for (unsigned int j = 0; j < n; j++) {
        double inside = 0;

        for (unsigned int i = 0; i < out->count; i++)
            inside += pow(*at(spectrum->vectors, n, members[i], j), 2);
        if (inside * variance(spectrum, j) > most) {
            most = inside * variance(spectrum, j);
            weakest = j;
        }
    }
    for (unsigned int i = 0; i < out->count; i++) {
        out->direction[i] = *at(spectrum->vectors, n, members[i], weakest);
        largest = fmax(largest, fabs(out->direction[i]));
    }
    for (unsigned int i = 0; i < out->count; i++)
        out->direction[i] /= largest;
}

static void describe(const struct fit *fit, const struct spectrum *spectrum,
                     const unsigned int *members, struct identify_group *out)
{
    double *weights = allocate_zeroed(spectrum->size * sizeof(*weights));

    out->is_sum = true;
    for (unsigned int i = 0; i < out->count; i++) {
        out->keys[i] = fit->keys_of[members[i]];
        out->is_sum &= fit->keys->list[out->keys[i]].row->unit == UNIT_TIME;
        out->sum += fit->keys->list[out->keys[i]].value;
    }
    for (unsigned int i = 0; i < out->count; i++)
        weights[members[i]] = fit->keys->list[out->keys[i]].value / out->sum;
    out->error = sqrt(variance_of(spectrum, weights));
    out->is_sum &= out->error < SURE;
    out->error *= fit->misfit;
    find_direction(spectrum, members, out);
    free(weights);
}

/* A key that went far from START was driven there by the data, even if it has become so small that
 * they do not see it any more. */
static void settle(struct key *key, double error)
{
    bool far = key->start > 0 && fabs(log(key->value / key->start)) > FAR;

    key->error = error;
    key->origin = error < VAGUE || far ? KEY_FITTED : KEY_UNDETERMINED;
}

void identify_keys(struct fit *fit, struct identify *out)
{
    unsigned int n = fit->key_count;
    bool *loose = allocate_zeroed(n + 1);
    unsigned int *group = allocate_zeroed((n + 1) * sizeof(*group));
    struct spectrum spectrum;

    memset(out, 0, sizeof(*out));
    spectrum_open(fit, &spectrum);
    for (unsigned int i = 0; i < n; i++) {
        /* Whether the data say anything of the key if all others were known. */
        loose[i] = *at(spectrum.matrix, n, i, i) > 1;
        group[i] = i;
    }
    diagonalise(&spectrum);
    for (unsigned int i = 0; i < n; i++) {
        settle(&fit->keys->list[fit->keys_of[i]], error_of(&spectrum, i));
        loose[i] = loose[i] && fit->misfit * fit->keys->list[fit->keys_of[i]].error > SHARP;
    }
    tie(&spectrum, fit->misfit, loose, group);
    for (unsigned int i = 0; i < n; i++)
        fit->keys->list[fit->keys_of[i]].error *= fit->misfit;
    for (unsigned int i = 0; i < n; i++) {
        struct identify_group *next = &out->groups[out->count];
        unsigned int members[PARAMETER_ROWS_MAX];

        next->count = 0;
        for (unsigned int k = i; k < n; k++) {
            if (loose[k] && group[k] == group[i] && loose[i])
                members[next->count++] = k;
        }
        if (next->count < 2)
            continue;
        out->count++;
        describe(fit, &spectrum, members, next);
        for (unsigned int k = 0; k < next->count; k++) {
            fit->keys->list[next->keys[k]].origin = KEY_SHARED;
            fit->keys->list[next->keys[k]].combined = out->count;
            loose[members[k]] = false;
        }
    }
    spectrum_close(&spectrum);
    free(loose);
    free(group);
}
