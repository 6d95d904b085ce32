/* SPDX-License-Identifier: BSD-2-Clause */
/* A stream: a window of messages in flight, from the lower rank of a flow to the higher one or both
 * ways, as fast as possible. */
#ifndef BENCH_MEASURE_STREAM_H
#define BENCH_MEASURE_STREAM_H

#include "flow.h"

struct stream_plan {
    enum window_style style;
    unsigned int window;
    uint64_t messages; /* each way; rounded up to whole windows and signalled intervals */
    bool both_ways;
    bool reverse; /* one way, but from the higher rank to the lower one */

    /* Called for each message that completes a receive, before the receive is posted again; or
     * NULL. */
    void (*arrived)(void *context, const struct flow *flow, const struct slot *slot);
    void *arrived_context;

    /* Computation between posting and waiting, or NULL. */
    void (*work)(void *context);
    void *work_context;
};

/* Collective over the two ranks of the flow. The lower one gets the time from the first post until
 * it knows that the last message has arrived, and how many messages went each way. */
int stream_run(struct flow *flow, const struct stream_plan *plan, uint64_t *ticks,
               uint64_t *messages);

/* The parts of stream_run(), for callers that time several flows at once: what comes before the
 * clock starts, and what comes between the barriers. stream_pass() may run in a thread. */
int stream_prepare(struct flow *flow, const struct stream_plan *plan);
int stream_pass(struct flow *flow, const struct stream_plan *plan, uint64_t *messages);

/* stream_pass() for a receiver of several flows. 'shares' gets the messages of each flow that had
 * arrived when the first flow ended, 'messages' the number of messages of each flow. */
int stream_gather(struct flow *flows, unsigned int count, const struct stream_plan *plan,
                  uint64_t *shares, uint64_t *messages);

/* The queue depth that a window needs. */
uint32_t stream_depth(const struct flow_spec *spec, unsigned int window);

/* Messages in a sample: as many as the settings' iterations, fewer if they are large. */
uint64_t stream_messages(const struct bench *bench, size_t size);

/* Opens the flow with queues deep enough for the window, runs it as often as the settings say, and
 * summarises the bandwidth in MB/s, both directions together. */
int stream_measure(struct bench *bench, const struct flow_spec *spec,
                   const struct stream_plan *plan, struct summary *out);

/* The same in millions of messages per second. */
int stream_measure_rate(struct bench *bench, const struct flow_spec *spec,
                        const struct stream_plan *plan, struct summary *out);

/* The same with a flow that is already open, and with values of messages / seconds * scale. */
int stream_repeat(struct flow *flow, const struct stream_plan *plan, double scale,
                  struct summary *out);

#endif
