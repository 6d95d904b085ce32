/* Something that does one thing at a time, in the order of asking: busy until it is free. */
#ifndef SIM_MODELS_SERVER_H
#define SIM_MODELS_SERVER_H

#include "sim/model/observer.h"

#include <stdint.h>

struct server {
    uint64_t free_at;
    uint64_t busy; /* in all, for the statistics */
    uint64_t jobs;
    uint32_t track; /* in a trace, or 0 */
    uint32_t node;
};

static inline uint64_t ns_of(double ns)
{
    return (uint64_t)(ns + 0.5);
}

/* Returns when a job that is handed over now will be done. */
static inline uint64_t serve(struct server *server, uint64_t now, double service)
{
    uint64_t start = now > server->free_at ? now : server->free_at;

    server->free_at = start + ns_of(service);
    server->busy += ns_of(service);
    server->jobs++;
    if (__builtin_expect(model_observer.server_busy != NULL, 0))
        model_observer.server_busy(server, start, server->free_at);
    return server->free_at;
}

#endif
