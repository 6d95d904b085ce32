/* SPDX-License-Identifier: BSD-2-Clause */
#include "rounds.h"
#include "start.h"
#include "results/rounds.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Whether the word is one of these options, with its value. */
static bool is_option(const char *word, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!strncmp(word, names[i], strlen(names[i])))
            return true;
    }
    return false;
}

int rounds_check(const struct invocation *invocation)
{
    const char *output = option_value(invocation, "output");
    const char *dot = output ? strrchr(output, '.') : NULL;

    if (option_number(invocation, "rounds", 1) == 1 || (dot && !strcmp(dot, ".json")))
        return CLI_OK;
    return cli_usage_error(invocation->command,
                           "--rounds needs --output FILE.json, which keeps the value of each");
}

/* Runs the command once, without these options. */
static int measure(const struct invocation *invocation, char *const *words, int word_count,
                   const char *const *without, size_t without_count, const char *output)
{
    char **line = calloc(invocation->operand_count + word_count + 5, sizeof(*line));
    int count = 0, status;

    if (!line) {
        cli_error("out of memory");
        return CLI_FAILED;
    }
    line[count++] = "verbena";
    line[count++] = "bench";
    for (int i = 0; i < invocation->operand_count; i++)
        line[count++] = invocation->operands[i];
    for (int i = 0; i < word_count; i++) {
        if (!is_option(words[i], without, without_count))
            line[count++] = words[i];
    }
    if (output) {
        line[count++] = "--output";
        line[count++] = (char *)output;
    }
    fflush(stdout);
    status = start_and_wait("/proc/self/exe", line);
    free(line);
    return status;
}

static int measure_first(const struct invocation *invocation, char *const *words, int word_count)
{
    static const char *const without[] = { "--rounds=" };

    return measure(invocation, words, word_count, without, 1, NULL);
}

/* Whatever a run writes besides its results is that of the first round: nobody reads the tables of
 * the later ones, which differ from it by noise alone. */
static int measure_again(const struct invocation *invocation, char *const *words, int word_count,
                         const char *output)
{
    static const char *const without[] = { "--rounds=", "--output=", "--fail-if=", "--stats",
                                           "--explain", "--trace",   "--pcap" };
    int saved = dup(STDOUT_FILENO), nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC), status;

    if (saved < 0 || nowhere < 0 || dup2(nowhere, STDOUT_FILENO) < 0) {
        cli_error("/dev/null: %s", strerror(errno));
        return CLI_FAILED;
    }
    close(nowhere);
    status =
        measure(invocation, words, word_count, without, sizeof(without) / sizeof(*without), output);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    return status;
}

static int add_round(struct results *results, const char *path, const char *output)
{
    struct results *round;
    char error[512];

    if (results_read(path, &round, error, sizeof(error))) {
        cli_error("%s", error);
        return CLI_FAILED;
    }
    rounds_add(results, round);
    results->interrupted = round->interrupted;
    results_free(round);
    if (!results_write_file(results, output))
        return CLI_OK;
    cli_error("%s: %s", output, strerror(errno));
    return CLI_FAILED;
}

static int run_round(const struct invocation *invocation, char *const *words, int word_count,
                     struct results *results)
{
    char path[] = "/tmp/verbena-round-XXXXXX.json";
    int fd = mkstemps(path, strlen(".json")), status, added;

    if (fd < 0) {
        cli_error("%s: %s", path, strerror(errno));
        return CLI_FAILED;
    }
    close(fd);
    status = measure_again(invocation, words, word_count, path);
    added = status == CLI_USAGE ? CLI_OK : add_round(results, path, results->path);
    unlink(path);
    return status ? status : added;
}

static void print_round(const struct results *results, unsigned long long round,
                        unsigned long long rounds, bool failed)
{
    printf("round %llu of %llu", round, rounds);
    if (!failed && results->load_count)
        printf(": other programs used %.0f%% of the processors",
               100 * results->loads[results->load_count - 1]);
    puts(failed ? " failed" : "");
    fflush(stdout);
}

static int run_later_rounds(const struct invocation *invocation, char *const *words, int word_count,
                            struct results *results)
{
    unsigned long long rounds = option_number(invocation, "rounds", 1);
    int status = CLI_OK;

    if (results->deterministic) {
        puts("one round only: in virtual time all are alike");
        return CLI_OK;
    }
    print_round(results, 1, rounds, false);
    for (unsigned long long i = 2; !status && !start_signal() && i <= rounds; i++) {
        status = run_round(invocation, words, word_count, results);
        print_round(results, i, rounds, status);
    }
    /* It may have come when a round had just ended. */
    return start_signal() ? CLI_SIGNALLED + start_signal() : status;
}

/* A limit that the first round exceeded does not keep the others from being measured. */
int rounds_run(const struct invocation *invocation, char *const *words, int word_count)
{
    const char *output = option_value(invocation, "output");
    int status = measure_first(invocation, words, word_count), later;
    struct results *results;
    char error[512];

    if (status && status != CLI_LIMIT)
        return status;
    if (results_read(output, &results, error, sizeof(error))) {
        cli_error("%s", error);
        return CLI_FAILED;
    }
    free(results->command);
    results->command = options_invocation_text(invocation, NULL);
    later = run_later_rounds(invocation, words, word_count, results);
    results_free(results);
    return later ? later : status;
}
