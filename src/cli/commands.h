#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "options.h"

int command_run(const struct invocation *invocation);
int command_list(const struct invocation *invocation);
int command_doctor(const struct invocation *invocation);
int command_bench(const struct invocation *invocation);
int command_bench_rank(const struct invocation *invocation);
int command_compare(const struct invocation *invocation);
int command_advise(const struct invocation *invocation);
int command_mpi_bench(const struct invocation *invocation);
int command_mpirun(const struct invocation *invocation);
int command_reproduce(const struct invocation *invocation);
int command_report(const struct invocation *invocation);
int command_nas(const struct invocation *invocation);
int command_help(const struct invocation *invocation);
int command_fill(const struct invocation *invocation);
int command_probe(const struct invocation *invocation);

#endif
