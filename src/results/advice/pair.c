/* SPDX-License-Identifier: BSD-2-Clause */
#include "pair.h"

#include <string.h>

bool pair_find(const struct advice_input *input, const char *experiment, const char *first,
               const char *second, const char *quantity, struct pair *out)
{
    struct curve a, b;

    if (!advice_source_find(input, experiment, first, quantity, &out->first) ||
        !advice_source_find(input, experiment, second, quantity, &out->second) ||
        strcmp(out->first.series->unit, out->second.series->unit))
        return false;
    curve_of(out->first.series, &a);
    curve_of(out->second.series, &b);
    curves_match(&a, &b);
    a.exact = advice_source_is_exact(&out->first);
    b.exact = advice_source_is_exact(&out->second);
    out->crossing = crossing_find(&a, &b, out->first.series->better);
    out->low = out->crossing.kind ? a.x[out->crossing.below] : 0;
    out->high = out->crossing.kind ? a.x[out->crossing.above] : 0;
    curve_free(&a);
    curve_free(&b);
    return true;
}

void pair_evidence(struct advice *advice, const struct pair *pair)
{
    advice_evidence(advice, &pair->first, pair->low);
    advice_evidence(advice, &pair->second, pair->low);
    if (pair->high == pair->low)
        return;
    advice_evidence(advice, &pair->first, pair->high);
    advice_evidence(advice, &pair->second, pair->high);
}
