/* SPDX-License-Identifier: BSD-2-Clause */
/* What a verbs device does in cases that programs must be able to rely on. Prints one line for
 * each, "group<TAB>case<TAB>outcome"; which outcome is right is not decided here. */
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
