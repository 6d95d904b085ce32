/* SPDX-License-Identifier: BSD-2-Clause */
/* verbena goal: write the schedule of a collective. */
#include "commands.h"
#include "replay/generate.h"
#include "util/file.h"

#include <errno.h>
#include <string.h>

static void print_patterns(void)
{
    for (const struct generate_pattern *row = generate_patterns; row->name; row++)
        fprintf(stderr, "  %-20s %s\n", row->name, row->help);
}

int cli_goal(const struct invocation *invocation)
{
    const char *output = option_value_or_default(invocation, "output");
    const struct generate_pattern *pattern;
    struct file_text file;
    char error[256];
    FILE *out;

    pattern = invocation->operand_count == 1 ? generate_find(invocation->operands[0]) : NULL;
    if (!pattern) {
        int status = cli_usage_error(invocation->command, "give one of these patterns%s%s",
                                     invocation->operand_count == 1 ? ", not " : "",
                                     invocation->operand_count == 1 ? invocation->operands[0] : "");

        print_patterns();
        return status;
    }
    out = file_begin(&file);
    if (!out) {
        cli_error("out of memory");
        return CLI_FAILED;
    }
    if (generate_write(pattern, option_number(invocation, "ranks", 2),
                       option_number(invocation, "size", pattern->default_size), out, error,
                       sizeof(error))) {
        file_drop(&file);
        return cli_usage_error(invocation->command, "%s", error);
    }
    if (file_end(&file, output)) {
        cli_error("%s: %s", file_shown(output), strerror(errno));
        return CLI_FAILED;
    }
    return CLI_OK;
}
