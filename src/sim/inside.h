/* What can be seen of the model: which of it is wanted, and who writes it at the end. */
#ifndef SIM_INSIDE_H
#define SIM_INSIDE_H

#include "hca/layout.h"

#include <limits.h>

struct inside {
    char trace[PATH_MAX]; /* files, or empty */
    char pcap[PATH_MAX];
    char stats[PATH_MAX]; /* as JSON */
    uint32_t members[MAX_PROCS]; /* words of the processes in the modelled world */
};

/* The first process reads from the environment what is wanted. Both return 0 or an errno value with
 * the reason logged, and are called with the world's lock held. */
int inside_init(void);
int inside_join(bool first);

/* This process takes no part any more. The last one says what was asked for. */
void inside_leave(void);

extern bool inside_records;
void inside_flush_files(void);

/* Before the turn goes to another process: what this one has recorded comes first. */
static inline void inside_flush(void)
{
    if (unlikely(inside_records))
        inside_flush_files();
}

#endif
