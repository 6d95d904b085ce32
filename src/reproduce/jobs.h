/* The commands that make the curves, each once, several at a time. */
#ifndef REPRODUCE_JOBS_H
#define REPRODUCE_JOBS_H

#include "results/results.h"

#include <sys/types.h>

struct job {
    char *name; /* "pcie-latency-mt25208": of its files */
    char *adapter;
    char *set;     /* or NULL */
    char *line;    /* of the command, without "verbena" */
    char *failure; /* why there are no results, or NULL */
    struct results *results;
    pid_t process; /* 0: not running */
    double start;
    unsigned int place;
    bool begun, told_to_end;
};

struct jobs {
    unsigned int count;
    struct job *list;
};

struct jobs_spec {
    const char *directory; /* where the files of results go; this process is not in it */
    unsigned int at_once;  /* 0: as many as there are cores */
    double limit;          /* seconds for one job, 0: none */
    /* Called after each one. */
    void (*progress)(unsigned int done, unsigned int all, double seconds, const struct job *last);
};

/* Adds a job unless there is the same already. */
void jobs_want(struct jobs *jobs, const char *paper, const char *run, const char *adapter,
               const char *set, const char *line);
const struct job *jobs_find(const struct jobs *jobs, const char *adapter, const char *set,
                            const char *line);

/* Runs all of them. Each has results or a failure then. Returns 0, or the number of the signal that
 * ended it early. */
int jobs_run(struct jobs *jobs, const struct jobs_spec *spec);
void jobs_free(struct jobs *jobs);

/* As it can be typed; to be freed. */
char *job_command(const struct job *job);

#endif
