/* What can be seen of the model: which of it is wanted, and who writes it at the end. */
#ifndef SIM_INSIDE_H
#define SIM_INSIDE_H

#include "hca/layout.h"

#include <limits.h>

struct observe {
    char trace[PATH_MAX]; /* files, or empty */
    char pcap[PATH_MAX];
    char stats[PATH_MAX]; /* as JSON */
    uint32_t members[MAX_PROCS]; /* words of the processes in the modelled world */
};

/* The first process reads from the environment what is wanted. Both return 0 or an errno value with
 * the reason logged, and are called with the world's lock held. */
int observe_init(void);
int observe_join(bool first);

/* This process takes no part any more. The last one says what was asked for. */
void observe_leave(void);

extern bool observe_records;
void observe_flush_files(void);

/* Before the turn goes to another process: what this one has recorded comes first. */
static inline void observe_flush(void)
{
    if (unlikely(observe_records))
        observe_flush_files();
}

#endif
