/* SPDX-License-Identifier: BSD-2-Clause */
/* What can be seen of the model: which of it is wanted, and who writes it at the end. */
#ifndef SIM_OBSERVE_OBSERVE_H
#define SIM_OBSERVE_OBSERVE_H

#include "hca/layout.h"
#include "sim/observe/explain.h"
#include "sim/observe/stats.h"

#include <limits.h>

struct observe {
    char trace[PATH_MAX]; /* files, or empty */
    char pcap[PATH_MAX];
    char stats_file[PATH_MAX];   /* as JSON */
    char failures[PATH_MAX];     /* where the command learns which of them could not be written */
    bool failed;                 /* the trace and the capture end here */
    uint32_t members[MAX_PROCS]; /* words of the processes attached to the modelled fabric */
    struct explain explain;
    struct stats stats;
    uint64_t trace_count; /* messages and packets in the trace */
};

/* Set by whoever attaches this process to the modelled fabric. */
extern struct observe *observe;

/* The first process reads from the environment what is wanted. Both return 0 or an errno value with
 * the reason logged, and are called with the segment's sim_lock held. */
int observe_init(void);
int observe_join(bool first);

/* This process is leaving. The last one prints and writes what was asked for. */
void observe_leave(void);

/* Writes out what this process has recorded. */
void observe_flush(void);

#endif
