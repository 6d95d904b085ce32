/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "options.h"

int cli_run(const struct invocation *invocation);
int cli_list(const struct invocation *invocation);
int cli_check(const struct invocation *invocation);
int cli_clean(const struct invocation *invocation);
int cli_doctor(const struct invocation *invocation);
int cli_bench(const struct invocation *invocation);
int cli_bench_rank(const struct invocation *invocation);
int cli_calibrate(const struct invocation *invocation);
int cli_complete(const struct invocation *invocation);
int cli_compare(const struct invocation *invocation);
int cli_advise(const struct invocation *invocation);
int cli_mpi_bench(const struct invocation *invocation);
int cli_mpirun(const struct invocation *invocation);
int cli_reproduce(const struct invocation *invocation);
int cli_report(const struct invocation *invocation);
int cli_nas(const struct invocation *invocation);
int cli_replay(const struct invocation *invocation);
int cli_sweep(const struct invocation *invocation);
int cli_goal(const struct invocation *invocation);
int cli_help(const struct invocation *invocation);
int cli_fill(const struct invocation *invocation);
int cli_probe(const struct invocation *invocation);

#endif
