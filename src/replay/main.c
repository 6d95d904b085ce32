/* SPDX-License-Identifier: BSD-2-Clause */
/* verbena-replay: plays a GOAL schedule on modelled adapters. A program of its own, because it
 * contains the model, which the verbena command does not. */
#include "replay/links.h"
#include "replay/replay.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define RANKS_SHOWN 16
#define ERROR_SIZE  8192
#define DIGITS      6

enum { STATUS_OK, STATUS_FAILED, STATUS_USAGE };

/* ---- output ---- */

struct output {
    const struct goal *goal;
    const struct replay_result *result;
    const char *path;
    bool speed;
};

static int compare_times(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* Finishing times, in order; NULL if out of memory. */
static uint64_t *sorted_times(const struct output *output)
{
    uint32_t count = output->goal->rank_count;
    uint64_t *times = malloc(count * sizeof(*times));

    for (uint32_t i = 0; times && i < count; i++)
        times[i] = output->result->ranks[i].finish_ns;
    if (times)
        qsort(times, count, sizeof(*times), compare_times);
    return times;
}

static uint64_t peak_memory(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss * 1024ull;
}

static void print_speed(const struct output *output)
{
    const struct replay_result *result = output->result;

    printf("wall time     %.3f s, %.2f million events/s\n", result->wall_seconds,
           result->events / result->wall_seconds / 1e6);
    printf("processor     %.3f s, %.2f million events/s\n", result->cpu_seconds,
           result->events / result->cpu_seconds / 1e6);
    printf("peak memory   %.1f MiB with the schedule, %.1f KiB per node\n",
           peak_memory() / 1048576.0, peak_memory() / 1024.0 / result->nodes);
}

static void print_text(const struct output *output)
{
    const struct replay_result *result = output->result;
    uint32_t count = output->goal->rank_count;
    uint64_t *times = sorted_times(output);

    printf("ranks         %u on %u nodes, %s\n", count, result->nodes, result->adapter);
    if (result->rails > 1)
        printf("rails         %u for each connection, %s\n", result->rails, result->policy);
    printf("operations    %" PRIu64 "\n", output->goal->ops);
    printf("messages      %" PRIu64 ", %" PRIu64 " bytes, on %" PRIu64 " connections\n",
           result->messages, result->bytes, result->connections);
    printf("packets       %" PRIu64 "\n", result->packets);
    if (result->lost)
        printf("lost          %" PRIu64 " packets, to failed links\n", result->lost);
    printf("events        %" PRIu64 "\n", result->events);
    if (times)
        printf("ranks finish  %.3f us the first, %.3f us the median, %.3f us the last\n",
               times[0] / 1e3, times[count / 2] / 1e3, times[count - 1] / 1e3);
    printf("total time    %.3f us\n", result->total_ns / 1e3);
    if (output->speed)
        print_speed(output);
    if (count <= RANKS_SHOWN) {
        printf("\n%6s %14s %10s %10s\n", "RANK", "FINISH us", "SENT", "RECEIVED");
        for (uint32_t i = 0; i < count; i++)
            printf("%6u %14.3f %10" PRIu64 " %10" PRIu64 "\n", i, result->ranks[i].finish_ns / 1e3,
                   result->ranks[i].sent, result->ranks[i].received);
    }
    free(times);
}

static void print_csv(const struct output *output)
{
    puts("rank,finish_ns,sent,sent_bytes,received");
    for (uint32_t i = 0; i < output->goal->rank_count; i++) {
        const struct replay_rank_result *rank = &output->result->ranks[i];

        printf("%u,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", i, rank->finish_ns,
               rank->sent, rank->sent_bytes, rank->received);
    }
}

static void print_json(const struct output *output)
{
    const struct replay_result *result = output->result;
    json_t *ranks = json_array();
    json_t *document = json_pack(
        "{s:s, s:s, s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "schedule",
        output->path, "adapter", result->adapter, "rails", (json_int_t)result->rails, "policy",
        result->policy, "ranks", (json_int_t)output->goal->rank_count, "nodes",
        (json_int_t)result->nodes, "operations", (json_int_t)output->goal->ops, "messages",
        (json_int_t)result->messages, "bytes", (json_int_t)result->bytes, "connections",
        (json_int_t)result->connections, "packets", (json_int_t)result->packets, "lost",
        (json_int_t)result->lost, "events",
        (json_int_t)result->events, "model_bytes", (json_int_t)result->memory_bytes, "total_ns",
        (json_int_t)result->total_ns);

    if (output->speed) {
        json_object_set_new(document, "wall_seconds", json_real(result->wall_seconds));
        json_object_set_new(document, "cpu_seconds", json_real(result->cpu_seconds));
        json_object_set_new(document, "peak_bytes", json_integer(peak_memory()));
    }
    for (uint32_t i = 0; i < output->goal->rank_count; i++) {
        const struct replay_rank_result *rank = &result->ranks[i];

        json_array_append_new(
            ranks, json_pack("{s:I, s:I, s:I, s:I}", "finish_ns", (json_int_t)rank->finish_ns,
                             "sent", (json_int_t)rank->sent, "sent_bytes",
                             (json_int_t)rank->sent_bytes, "received", (json_int_t)rank->received));
    }
    json_object_set_new(document, "rank", ranks);
    json_dumpf(document, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(DIGITS));
    putchar('\n');
    json_decref(document);
}

/* ---- the program ---- */

/* Every line of the reason is a message. */
static int fail(char *error, int status)
{
    char *line;

    while ((line = strsep(&error, "\n")))
        fprintf(stderr, "verbena: %s\n", line);
    return status;
}

static void print(const struct output *output, const struct replay_settings *settings)
{
    if (settings->json)
        print_json(output);
    else if (settings->csv)
        print_csv(output);
    else
        print_text(output);
}

int main(int count, char **words)
{
    struct replay_settings settings;
    struct replay_result result;
    struct goal goal;
    char error[ERROR_SIZE];
    struct output output = { .goal = &goal, .result = &result };

    if (count < 2) {
        fprintf(stderr, "Usage: verbena-replay FILE.goal [OPTION...]; see verbena help replay\n");
        return STATUS_USAGE;
    }
    if (replay_settings_read(&settings, count - 2, words + 2, error, sizeof(error)) ||
        replay_settings_check(&settings, error, sizeof(error)))
        return fail(error, STATUS_USAGE);
    settings.progress = isatty(STDERR_FILENO);
    output.path = words[1];
    output.speed = settings.speed;
    if (goal_read(&goal, output.path, error, sizeof(error)) ||
        replay_run(&goal, &settings, &result, error, sizeof(error)))
        return fail(error, STATUS_FAILED);
    print(&output, &settings);
    if (settings.links && links_write(settings.links, result.total_ns, error, sizeof(error)))
        return fail(error, STATUS_FAILED);
    free(result.ranks);
    goal_free(&goal);
    if (fflush(stdout) || ferror(stdout)) {
        perror("verbena: standard output");
        return STATUS_FAILED;
    }
    return STATUS_OK;
}
