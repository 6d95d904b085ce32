/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CM_MAD_AGENT_H
#define CM_MAD_AGENT_H

/* The connection manager's datagrams in a process: an inbox, and a thread that reads it and repeats
 * what is not answered, so that a program which waits for nothing still answers its peers. */

#include "cm/mad.h"

/* Returns 0 or an errno value. Harmless if it runs already. */
int mad_agent_start(void);
/* In a forked child: the thread is the parent's. */
void mad_agent_forget(void);
/* The thread has a new deadline to look at. */
void mad_agent_wake(void);

/* ---- mad_transport.c, for the agent ---- */

/* Handles a datagram, with cm_lock() held. */
void mad_receive(const struct hca_mad *mad);
/* Answers a message for which this host has no id; needs no lock. */
void mad_answer_stranger(const struct hca_mad *mad, const struct mad_message *m);
/* Repeats what is due, with cm_lock() held. Returns the next deadline, or 0. */
uint64_t mad_run_timers(uint64_t now);
/* The process slot in an id of ours. */
unsigned mad_proc_of_id(uint32_t id);

#endif
