/* SPDX-License-Identifier: BSD-2-Clause */
/* verbena goal: write the schedule of a collective. */
#include "commands.h"
#include "replay/generate.h"
#include "util/file.h"
#include "util/nearest.h"

#include <errno.h>
#include <string.h>

static int wrong_pattern(const struct invocation *invocation)
{
    const char *typed = invocation->operand_count == 1 ? invocation->operands[0] : NULL;
    struct nearest nearest;
    int status;

    if (typed)
        nearest_begin(&nearest, typed, strlen(typed));
    for (const struct generate_pattern *row = generate_patterns; typed && row->name; row++)
        nearest_try(&nearest, row->name);
    status = typed ? cli_usage_error(invocation->command, "unknown pattern '%s'%s", typed,
                                     nearest_text(&nearest))
                   : cli_usage_error(invocation->command, "give one pattern");
    for (const struct generate_pattern *row = generate_patterns; row->name; row++)
        fprintf(stderr, "  %-20s %s\n", row->name, row->help);
    return status;
}

int cli_goal(const struct invocation *invocation)
{
    const char *output = option_value_or_default(invocation, "output");
    const struct generate_pattern *pattern;
    struct generate_job job;
    struct file_text file;
    char error[256];
    FILE *out;

    pattern = invocation->operand_count == 1 ? generate_find(invocation->operands[0]) : NULL;
    if (!pattern)
        return wrong_pattern(invocation);
    out = file_begin(&file);
    if (!out) {
        cli_error("out of memory");
        return CLI_FAILED;
    }
    job = (struct generate_job){ .ranks = option_number(invocation, "ranks", 2),
                                 .repeat = option_number(invocation, "repeat", 1),
                                 .size = option_number(invocation, "size", pattern->default_size) };
    if (generate_write(pattern, &job, out, error, sizeof(error))) {
        file_drop(&file);
        return cli_usage_error(invocation->command, "%s", error);
    }
    if (file_end(&file, output)) {
        cli_error("%s: %s", file_shown(output), strerror(errno));
        return CLI_FAILED;
    }
    return CLI_OK;
}
