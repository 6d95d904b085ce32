/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes a Chrome trace ("JSON Array Format" of the Trace Event Format): the jobs of each server,
 * and the stages of each message and packet. */
#ifndef SIM_TRACE_H
#define SIM_TRACE_H

#include <stdbool.h>
#include <stdint.h>

struct sim_packet;
struct sim_qp;
struct sim_wqe;
struct server;

extern bool trace_on;

/* The first process also names the servers. Returns 0 or an errno value with the reason logged. */
int trace_open(const char *path, bool first);
void trace_flush(void);
/* The last process has left. */
void trace_close(void);

/* The server works from 'start' to 'end'. */
void trace_busy(const struct server *server, uint64_t start, uint64_t end);

/* Call when the WQE or packet is done. */
void trace_wqe(const struct sim_wqe *wqe);
void trace_packet(const struct sim_packet *pkt);

#endif
