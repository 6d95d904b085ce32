/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests behaviour of a verbs device that programs rely on. Prints one line for each case,
 * "group<TAB>case<TAB>outcome", and does not judge the outcome. */
#include "bed.h"

#include <stdio.h>

static int empty;

static void print_case(const char *group, const char *name, const char *text)
{
    printf("%s\t%s\t%s\n", group, name, text);
    fflush(stdout);
    empty += !*text;
}

int main(void)
{
    run_states(print_case);
    run_posting(print_case);
    run_remote(print_case);
    run_datagrams(print_case);
    run_completions(print_case);
    run_limits(print_case);
    return empty ? 1 : 0;
}
