/* SPDX-License-Identifier: BSD-2-Clause */
/* A process that removes the segment of the fabric if the command, or the programs it started, are
 * killed before they can. It can also end what is left of a job. */
#ifndef CLI_GUARDIAN_H
#define CLI_GUARDIAN_H

/* Call before starting programs that use the fabric. Also removes stale segments, left behind when
 * all processes and their guardian were killed together. */
void guardian_begin(void);

/* Call before guardian_begin(). If the command or the launcher that it started is killed, the
 * guardian kills the processes of this fabric that do not end by themselves: no other job may use
 * it. `fabric` must stay valid. */
void guardian_end_orphans(const char *fabric);

/* Removes the segment unless a process still uses it. After success, the last such process removes
 * it; after a failure, the guardian waits for that process to end and removes the segment. */
void guardian_end(int status);

#endif
