/* SPDX-License-Identifier: BSD-2-Clause */
/* Parameters of the Open MPI component that follow from advice. */
#include "advice.h"
#include "results/allocate.h"
#include "util/option.h"

#include <math.h>

/* Measured values are precise to a few percent; more digits would pretend otherwise. */
#define STEPS 64

static const struct {
    const char *name;
    int default_value, minimum, maximum;
} numbers[] = {
#define ROW(name, default_value, minimum, maximum, help) { #name, default_value, minimum, maximum },
    MTL_NUMBER_ROWS(ROW)
#undef ROW
};

static double rounded(double value)
{
    double step = value < STEPS ? 1 : exp2(floor(log2(value / STEPS)));

    return round(value / step) * step;
}

void advice_parameter(struct advice *advice, enum mtl_number number, double value)
{
    double fits = fmin(fmax(rounded(value), numbers[number].minimum), numbers[number].maximum);

    advice->parameters =
        allocate_one_more(advice->parameters, advice->parameter_count, sizeof(*advice->parameters));
    advice->parameters[advice->parameter_count++] =
        (struct parameter){ numbers[number].name, (uint64_t)fits,
                            fits == numbers[number].default_value };
}

void advice_parameter_put(const struct parameter *parameter, FILE *out)
{
    char text[24];

    fprintf(out, ADVICE_PREFIX "%s = %s\n", parameter->name,
            option_number_text(parameter->value, text, sizeof(text)));
}
