/* SPDX-License-Identifier: BSD-2-Clause */
/* verbena replay: checks the options and starts verbena-replay. */
#include "commands.h"
#include "launch.h"
#include "line.h"
#include "replay/settings.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM "verbena-replay"

static int add_options(const struct invocation *invocation, struct line *line)
{
    static char text[CLI_OPTIONS_MAX][64];

    for (int i = 0; replay_rows[i].name; i++) {
        if (!invocation->value[i])
            continue;
        snprintf(text[i], sizeof(text[i]), "--%s", replay_rows[i].name);
        if (line_add(line, text[i]) || line_add(line, invocation->value[i]))
            return CLI_USAGE;
    }
    return CLI_OK;
}

int cli_replay(const struct invocation *invocation)
{
    struct replay_settings settings;
    struct line line = { .count = 0 };
    char program[PATH_MAX], error[PATH_MAX + 512];

    if (invocation->operand_count != 1)
        return cli_usage_error(invocation->command, "give one schedule, not %d",
                               invocation->operand_count);
    if (!launch_program(PROGRAM, program))
        return CLI_FAILED;
    if (line_add(&line, program) || line_add(&line, invocation->operands[0]) ||
        add_options(invocation, &line))
        return CLI_USAGE;
    if (replay_settings_read(&settings, line.count - 2, line.words + 2, error, sizeof(error)) ||
        replay_settings_check(&settings, error, sizeof(error)))
        return cli_usage_error(invocation->command, "%s", error);
    execv(program, line.words);
    cli_error("%s: %s", program, strerror(errno));
    return CLI_FAILED;
}
