/* SPDX-License-Identifier: BSD-2-Clause */
/* Every fault has a defined outcome; each case checks one, in its own process. */
#include "side.h"

#include <stdio.h>
#include <string.h>

struct job {
    const struct fault_case *one;
    bool remote;
};

static void run_job(const void *argument)
{
    const struct job *job = argument;

    job->one->run(job->remote);
}

static enum case_result run_one(const struct fault_case *one, bool remote)
{
    struct job job = { one, remote };
    char name[128];

    snprintf(name, sizeof(name), "%s/%s", one->name, remote ? "two-processes" : "one-process");
    return case_run(name, run_job, &job);
}

static void run_table(const struct fault_case *table, const char *only, int *tally)
{
    for (; table->name; table++) {
        if (only && strncmp(table->name, only, strlen(only)))
            continue;
        if (table->where != REMOTE_ONLY)
            tally[run_one(table, false)]++;
        if (table->where != LOCAL_ONLY)
            tally[run_one(table, true)]++;
    }
}

int main(int argc, char **argv)
{
    const char *only = argc > 1 ? argv[1] : NULL;
    int tally[CASE_SKIPPED + 1] = { 0 };

    run_table(queue_cases, only, tally);
    run_table(access_cases, only, tally);
    run_table(exit_cases, only, tally);
    run_table(system_cases, only, tally);
    printf("%d passed, %d failed, %d skipped\n", tally[CASE_OK], tally[CASE_FAILED],
           tally[CASE_SKIPPED]);
    return tally[CASE_FAILED] ? 1 : 0;
}
