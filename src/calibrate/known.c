/* SPDX-License-Identifier: BSD-2-Clause */
#include "calibrate/known.h"

#include "results/allocate.h"

#include <stdlib.h>
#include <string.h>

struct known_run {
    unsigned int experiment;
    bool whole;
    double *numbers; /* values of all keys, then the experiment's points */
};

bool known_find(const struct known *known, unsigned int experiment, bool whole,
                const double *values, double *out)
{
    const struct data_experiment *entry = &known->data->experiments[experiment];

    for (unsigned int i = 0; i < known->count; i++) {
        const struct known_run *run = &known->runs[i];

        if (run->experiment != experiment || run->whole != whole ||
            memcmp(run->numbers, values, known->key_count * sizeof(*values)))
            continue;
        memcpy(out + entry->first_point, run->numbers + known->key_count,
               entry->count * sizeof(*out));
        return true;
    }
    return false;
}

void known_keep(struct known *known, unsigned int experiment, bool whole, const double *values,
                const double *out)
{
    const struct data_experiment *entry = &known->data->experiments[experiment];
    double *numbers = allocate_zeroed((known->key_count + entry->count) * sizeof(*numbers));

    memcpy(numbers, values, known->key_count * sizeof(*numbers));
    memcpy(numbers + known->key_count, out + entry->first_point, entry->count * sizeof(*numbers));
    known->runs = allocate_one_more(known->runs, known->count, sizeof(*known->runs));
    known->runs[known->count++] = (struct known_run){ experiment, whole, numbers };
}

void known_free(struct known *known)
{
    for (unsigned int i = 0; i < known->count; i++)
        free(known->runs[i].numbers);
    free(known->runs);
    known->runs = NULL;
    known->count = 0;
}
