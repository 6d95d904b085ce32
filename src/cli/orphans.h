/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes that outlive the launcher of their job. */
#ifndef CLI_ORPHANS_H
#define CLI_ORPHANS_H

/* Kills every process that was started with VERBENA_FABRIC set to this name. */
void orphans_kill(const char *fabric);

#endif
