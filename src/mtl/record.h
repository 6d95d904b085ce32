/* SPDX-License-Identifier: BSD-2-Clause */
/* Records what this process does, as its part of a GOAL schedule (docs/scale.md): each send and
 * receive, the time that the program spends outside MPI in between, and what it has waited for.
 * The command that started the job joins the parts. */
#ifndef MTL_RECORD_H
#define MTL_RECORD_H

#include "util/util.h"

struct mtl_request;
struct endpoint;
struct match_key;

extern bool recording;

/* Reads VERBENA_RECORD, the path of the schedule. */
void record_open(void);
/* The clock starts. */
void record_start(void);
/* Writes PATH.RANK. */
void record_close(void);

/* The program enters and leaves the component. */
void record_entered(void);
void record_left(void);

/* An operation begins; a receive's peer, tag and size may be unknown until it has matched. */
void record_operation(struct mtl_request *request, uint32_t peer);
void record_matched(const struct mtl_request *request, const struct endpoint *from,
                    const struct match_key *key, uint64_t size);
void record_done(struct mtl_request *request);

/* Which request memory is registered for, from now on, and where its data are; NULL: for none. */
void record_memory_of(const struct mtl_request *request, const void *data);
void record_registered(uint64_t bytes);
void record_deregistered(uint64_t bytes);

#endif
