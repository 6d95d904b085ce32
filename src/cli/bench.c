/* SPDX-License-Identifier: BSD-2-Clause */
/* verbena bench: the suite, on a real device or on the software adapter. */
#include "commands.h"
#include "bench/session/ranks.h"
#include "bench/session/session.h"
#include "launch.h"
#include "model.h"
#include "probe.h"
#include "rounds.h"
#include "segment.h"
#include "start.h"
#include "util/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define ORPHAN_STEP_US 10000
#define ORPHAN_STEPS   500
#define INSIDE         "VERBENA_BENCH_INSIDE" /* set in the process with the adapter preloaded */

struct words {
    char *list[CLI_OPTIONS_MAX];
    int count;
};

/* The given options as words, for the processes of the experiment. */
static int gather_words(const struct invocation *invocation, struct words *words)
{
    const struct option_row *rows = invocation->command->options;

    words->count = 0;
    for (int i = 0; rows[i].name; i++) {
        char *word;

        if (!invocation->value[i])
            continue;
        if (rows[i].kind == OPTION_FLAG
                ? asprintf(&word, "--%s", rows[i].name) < 0
                : asprintf(&word, "--%s=%s", rows[i].name, invocation->value[i]) < 0) {
            cli_error("out of memory");
            return CLI_FAILED;
        }
        words->list[words->count++] = word;
    }
    return CLI_OK;
}

static void free_words(struct words *words)
{
    for (int i = 0; i < words->count; i++)
        free(words->list[i]);
}

/* --device names a real device, unless --adapter or --wire is given or the name is one of a
 * software adapter. */
static bool wants_software(const struct invocation *invocation)
{
    const char *device = option_value(invocation, "device");

    if (option_value(invocation, "adapter") || option_value(invocation, "wire"))
        return true;
    if (device)
        return !strncmp(device, "verbena", strlen("verbena"));
    return !probe_real_device();
}

/* Two commands that communicate must name the fabric: the default name is private. */
static int check_fabric(const struct invocation *invocation)
{
    if (option_value(invocation, "fabric") || option_value(invocation, "wire") ||
        (!option_value(invocation, "listen") && !option_value(invocation, "connect")))
        return CLI_OK;
    return cli_usage_error(invocation->command,
                           "software adapters communicate only within a "
                           "fabric: give --fabric NAME on both sides, or --wire "
                           "IFACE to reach another host");
}

static void set_number(const char *variable, int number)
{
    char text[16];

    snprintf(text, sizeof(text), "%d", number);
    setenv(variable, text, 0);
}

/* If the measuring process is killed, its children die shortly after; until then they use the
 * segment. */
static void wait_for_orphans(void)
{
    for (int step = 0; step < ORPHAN_STEPS; step++) {
        pid_t pid = waitpid(-1, NULL, WNOHANG);

        if (pid < 0 && errno == ECHILD)
            return;
        if (!pid)
            usleep(ORPHAN_STEP_US);
    }
}

/* Runs this command again with the software adapter preloaded. */
static int run_on_software(const struct invocation *invocation, const struct words *words,
                           int ranks)
{
    struct launch launch;
    char fabric[32], **line;
    int status, count = 0;

    if (check_fabric(invocation))
        return CLI_USAGE;
    snprintf(fabric, sizeof(fabric), "bench-%d", getpid());
    setenv("VERBENA_FABRIC", fabric, 1);
    options_export(invocation);
    status = model_export(invocation);
    if (status)
        return status;
    model_export_seed();
    if (!launch_find(&launch))
        return CLI_FAILED;
    line = calloc(invocation->operand_count + words->count + 3, sizeof(*line));
    if (!line)
        return CLI_FAILED;
    line[count++] = "verbena";
    line[count++] = "bench";
    for (int i = 0; i < invocation->operand_count; i++)
        line[count++] = invocation->operands[i];
    for (int i = 0; i < words->count; i++)
        line[count++] = words->list[i];
    if (!option_value(invocation, "wire")) {
        set_number("VERBENA_NODES", ranks > 2 ? ranks : 2);
        set_number("VERBENA_PORTS", 2);
    }
    setenv(INSIDE, "1", 1);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    status =
        launch_environment(&launch, NULL) ? CLI_FAILED : start_and_wait("/proc/self/exe", line);
    wait_for_orphans();
    segment_remove_unused();
    free(line);
    return model_finish(status);
}

/* With -o -, standard output is for the results alone. */
static void inform(const struct invocation *invocation, const char *text)
{
    FILE *out = file_is_stdout(option_value(invocation, "output")) ? stderr : stdout;

    fprintf(out, "%s\n", text);
    fflush(out);
}

static int measure(const struct invocation *invocation, struct words *words)
{
    char *command = options_invocation_text(invocation, NULL);
    struct session_spec spec = {
        .version = VERBENA_VERSION,
        .command = command,
        .operands = invocation->operands,
        .operand_count = invocation->operand_count,
        .words = words->list,
        .word_count = words->count,
        .software = getenv(INSIDE) != NULL,
    };
    struct plan plan;
    int status = plan_make(&spec, &plan);

    if (!status) {
        if (!invocation->operand_count && !spec.software)
            inform(invocation, "No experiment named: the quick tour of all of them.");
        if (spec.software || !wants_software(invocation)) {
            status = session_run(&spec, &plan);
        } else {
            if (!option_value(invocation, "adapter") && !option_value(invocation, "wire"))
                inform(invocation, "No RDMA device here: measuring the built-in software adapter.");
            status = run_on_software(invocation, words,
                                     option_value(invocation, "connect") ? CONTROL_RANKS_MAX
                                                                         : plan.ranks);
        }
        plan_free(&plan);
    }
    free(command);
    return status;
}

/* The connecting side decides what is measured. */
static int check_listener(const struct invocation *invocation)
{
    const struct option_row *rows = invocation->command->options;

    if (option_value(invocation, "connect"))
        return cli_usage_error(invocation->command,
                               "--listen and --connect are mutually exclusive");
    if (invocation->operand_count)
        return cli_usage_error(invocation->command,
                               "'%s': name experiments on the side that connects",
                               invocation->operands[0]);
    for (int i = 0; rows[i].name; i++) {
        if (invocation->value[i] && !(rows[i].tags & SETTING_HOST))
            return cli_usage_error(invocation->command, "--%s belongs on the side that connects",
                                   rows[i].name);
    }
    return CLI_OK;
}

static int listen_for_others(const struct invocation *invocation, struct words *words)
{
    struct settings settings;
    char error[256];

    if (check_listener(invocation))
        return CLI_USAGE;
    settings_init(&settings);
    if (settings_read(&settings, words->list, words->count, error, sizeof(error)))
        return cli_usage_error(invocation->command, "%s", error);
    if (getenv(INSIDE) || !wants_software(invocation))
        return ranks_listen(&settings, words->list, words->count);
    return run_on_software(invocation, words, CONTROL_RANKS_MAX);
}

int cli_bench(const struct invocation *invocation)
{
    struct words words;
    int status;

    if (model_check(invocation) || rounds_check(invocation))
        return CLI_USAGE;
    status = gather_words(invocation, &words);
    if (!status && option_value(invocation, "listen"))
        status = listen_for_others(invocation, &words);
    else if (!status && option_number(invocation, "rounds", 1) > 1)
        status = rounds_run(invocation, words.list, words.count);
    else if (!status)
        status = measure(invocation, &words);
    free_words(&words);
    return status;
}

int cli_bench_rank(const struct invocation *invocation)
{
    struct words words;
    int status;

    if (invocation->operand_count != 1)
        return cli_usage_error(invocation->command, "internal command");
    status = gather_words(invocation, &words);
    if (!status)
        status = rank_main(atoi(invocation->operands[0]), VERBENA_VERSION, words.list, words.count);
    free_words(&words);
    return status;
}
