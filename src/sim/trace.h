/* What happens in the model, as a Chrome trace (the "JSON Array Format" of the Trace Event Format):
 * what each server does when, and the way of each message and packet stage by stage. */
#ifndef SIM_TRACE_H
#define SIM_TRACE_H

#include <stdbool.h>
#include <stdint.h>

struct flight;
struct queue;
struct request;
struct server;

extern bool trace_on;

/* The first process also names the servers. Returns 0 or an errno value with the reason logged. */
int trace_open(const char *path, bool first);
void trace_flush(void);
/* No process is left. */
void trace_close(void);

/* Whom the servers work for from here on; either may be NULL. */
extern const struct queue *trace_queue;
extern const struct flight *trace_flight;

static inline void trace_about(const struct queue *queue, const struct flight *flight)
{
    trace_queue = queue;
    trace_flight = flight;
}

/* What they do, if that is not to carry a packet. */
extern const char *trace_work;

/* The server works from 'start' to 'end'. */
void trace_busy(const struct server *server, uint64_t start, uint64_t end);

/* Nothing will happen to it any more. */
void trace_message(const struct request *message);
void trace_packet(const struct flight *flight);

#endif
