/* SPDX-License-Identifier: BSD-2-Clause */
/* Observation of the model: which outputs are enabled, and which process writes them. */
#ifndef SIM_OBSERVE_OBSERVE_H
#define SIM_OBSERVE_OBSERVE_H

#include "hca/layout.h"
#include "sim/observe/explain.h"
#include "sim/observe/stats.h"

#include <limits.h>

/* How large a file has become, and may become. */
struct observe_size {
    uint64_t bytes, limit;
    bool full; /* it has ended before the run did */
};

struct observe {
    char trace[PATH_MAX]; /* path, or empty */
    char pcap[PATH_MAX];
    char stats_file[PATH_MAX];   /* as JSON */
    char failures[PATH_MAX];     /* the command reads write errors from this file */
    bool failed;                 /* trace and capture have stopped after a write error */
    uint32_t members[MAX_PROCS]; /* proc_word() of the attached processes */
    struct explain explain;
    struct stats stats;
    uint64_t trace_count; /* messages and packets in the trace */
    struct observe_size trace_size, pcap_size;
};

/* Set by sim_attach(). */
extern struct observe *observe;

/* The first process reads the settings from the environment. Both return 0 or an errno value with
 * the reason logged. The caller holds seg->sim_lock. */
int observe_init(void);
int observe_join(bool first);

/* This process leaves. The last one prints and writes the results. */
void observe_leave(void);

/* Writes out what this process has recorded. */
void observe_flush(void);

#endif
