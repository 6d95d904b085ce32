/* SPDX-License-Identifier: BSD-2-Clause */
/* The commands that measure the curves. Each runs once, several of them at a time. */
#ifndef REPRODUCE_JOBS_H
#define REPRODUCE_JOBS_H

#include "results/results.h"

#include <sys/types.h>

struct job {
    char *name; /* base name of its files: "pcie-latency-mt25208" */
    char *adapter;
    char *set;     /* or NULL */
    char *line;    /* command line without "verbena" */
    char *failure; /* why there are no results, or NULL */
    struct results *results;
    pid_t process; /* 0: not running */
    double start;
    unsigned int slot;
    bool started, terminated;
};

struct jobs {
    unsigned int count;
    struct job *list;
};

struct jobs_spec {
    const char *directory; /* for the result files; not this process's working directory */
    unsigned int at_once;  /* 0: one for each core */
    double limit;          /* seconds for one job; 0: none */
    /* Called after each job. */
    void (*progress)(unsigned int done, unsigned int all, double seconds, const struct job *last);
};

/* Adds a job unless an identical one exists. */
void jobs_add(struct jobs *jobs, const char *paper, const char *run, const char *adapter,
              const char *set, const char *line);
const struct job *jobs_find(const struct jobs *jobs, const char *adapter, const char *set,
                            const char *line);

/* How many cores this process may use. */
unsigned int jobs_cores(void);

/* Runs all jobs. Afterwards each has results or a failure. Returns 0, or the number of the signal
 * that interrupted it. */
int jobs_run(struct jobs *jobs, const struct jobs_spec *spec);
void jobs_free(struct jobs *jobs);

/* The command as a user would type it. The caller frees it. */
char *job_command(const struct job *job);

#endif
