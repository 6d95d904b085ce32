/* SPDX-License-Identifier: BSD-2-Clause */
/* Plays a GOAL schedule on modelled adapters, in one process: ranks are state machines on the QPs,
 * engines, links and switches of the model. */
#ifndef REPLAY_REPLAY_H
#define REPLAY_REPLAY_H

#include "replay/goal.h"
#include "replay/settings.h"

struct replay_rank_result {
    uint64_t finish_ns;
    uint64_t sent, sent_bytes, received;
};

struct replay_result {
    char adapter[64];
    uint32_t nodes;
    uint32_t rails; /* of a connection between two nodes */
    const char *policy;
    uint64_t total_ns; /* when the last rank finished */
    uint64_t messages, bytes, packets;
    uint64_t lost; /* packets, to failed links */
    uint64_t connections;
    uint64_t events;
    uint64_t memory_bytes; /* reserved for the model and the ranks, without the schedule */
    double wall_seconds, cpu_seconds;
    struct replay_rank_result *ranks; /* to be freed */
};

/* Uses up the schedule. Returns 0, or -1 with the reason in 'error': each line of it is one. */
int replay_run(struct goal *goal, const struct replay_settings *settings,
               struct replay_result *result, char *error, size_t size);

#endif
