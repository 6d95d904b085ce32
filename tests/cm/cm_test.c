/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma_cm between two processes. `cm_test [CASE...]` */

#include "pair.h"

#include <stdio.h>
#include <string.h>

static const struct cm_case *const groups[] = {
    connect_cases,
    endpoint_cases,
    datagram_cases,
    fault_cases,
};

static bool wanted(const char *name, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return true;
    return argc < 2;
}

int main(int argc, char **argv)
{
    unsigned passed = 0, failed = 0;

    for (size_t g = 0; g < sizeof(groups) / sizeof(groups[0]); g++) {
        for (const struct cm_case *c = groups[g]; c->name; c++) {
            if (!wanted(c->name, argc, argv))
                continue;
            if (run_case(c))
                passed++;
            else
                failed++;
        }
    }
    printf("%u passed, %u failed\n", passed, failed);
    return failed != 0;
}
