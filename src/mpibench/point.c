/* SPDX-License-Identifier: BSD-2-Clause */
/* Point to point, between ranks 0 and 1; other ranks only wait. */
#include "task.h"
#include "util/vtime.h"

#include <limits.h>

#define TAG            1
#define LATENCY_VOLUME (64u << 20)
#define STREAM_VOLUME  (512u << 20)
#define WINDOW_MAX     4096
#define COPY_RATE      10e9 /* bytes a second */

static size_t one_message(const struct task_spec *spec)
{
    return spec->size;
}

static void ping(const struct task_spec *spec)
{
    int peer = !spec->rank;

    if (!spec->rank) {
        MPI_Send(spec->out, spec->size, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
        MPI_Recv(spec->in, spec->size, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(spec->in, spec->size, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(spec->out, spec->size, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
    }
}

/* A window of messages, then a short answer. */
static void stream(const struct task_spec *spec)
{
    MPI_Request request[WINDOW_MAX];
    int peer = !spec->rank;
    char answer = 0;

    for (uint64_t i = 0; i < spec->window; i++) {
        if (!spec->rank)
            MPI_Isend(spec->out, spec->size, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &request[i]);
        else
            MPI_Irecv(spec->in, spec->size, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &request[i]);
    }
    MPI_Waitall(spec->window, request, MPI_STATUSES_IGNORE);
    if (!spec->rank)
        MPI_Recv(&answer, 1, MPI_CHAR, peer, TAG + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(&answer, 1, MPI_CHAR, peer, TAG + 1, MPI_COMM_WORLD);
}

/* Both ranks send a window. */
static void exchange(const struct task_spec *spec)
{
    MPI_Request request[2 * WINDOW_MAX];
    int peer = !spec->rank;

    for (uint64_t i = 0; i < spec->window; i++)
        MPI_Irecv(spec->in, spec->size, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &request[i]);
    for (uint64_t i = 0; i < spec->window; i++)
        MPI_Isend(spec->out, spec->size, MPI_BYTE, peer, TAG, MPI_COMM_WORLD,
                  &request[spec->window + i]);
    MPI_Waitall(2 * spec->window, request, MPI_STATUSES_IGNORE);
}

/* Returns the time of all rounds in seconds. */
static double time_rounds(const struct task_spec *spec, void (*round)(const struct task_spec *),
                          uint64_t rounds)
{
    double start = 0;

    MPI_Barrier(MPI_COMM_WORLD);
    if (spec->rank > 1)
        return 0;
    for (uint64_t i = mpibench_warmup(spec, rounds); i; i--)
        round(spec);
    start = MPI_Wtime();
    for (uint64_t i = 0; i < rounds; i++)
        round(spec);
    return MPI_Wtime() - start;
}

static double latency(const struct task_spec *spec)
{
    uint64_t rounds = mpibench_rounds(spec, spec->size, LATENCY_VOLUME, 10);

    return time_rounds(spec, ping, rounds) / (2.0 * rounds) * 1e6;
}

static uint64_t stream_rounds(const struct task_spec *spec)
{
    return mpibench_rounds(spec, spec->size * spec->window, STREAM_VOLUME, 2);
}

static double bandwidth(const struct task_spec *spec)
{
    uint64_t rounds = stream_rounds(spec);

    return rounds * spec->window * spec->size / time_rounds(spec, stream, rounds) * 1e-6;
}

static double both_ways(const struct task_spec *spec)
{
    uint64_t rounds = stream_rounds(spec);

    return 2.0 * rounds * spec->window * spec->size / time_rounds(spec, exchange, rounds) * 1e-6;
}

static double message_rate(const struct task_spec *spec)
{
    uint64_t rounds = stream_rounds(spec);

    return rounds * spec->window / time_rounds(spec, stream, rounds) * 1e-6;
}

static void compute(double seconds)
{
    double end = MPI_Wtime() + seconds;

    if (vtime.on) {
        vtime.compute((uint64_t)(seconds * 1e9));
        return;
    }
    while (MPI_Wtime() < end)
        ;
}

/* A message each way, with computation between start and wait. */
static double exchange_and_compute(const struct task_spec *spec, double seconds, uint64_t rounds)
{
    int peer = !spec->rank;
    double start;

    MPI_Barrier(MPI_COMM_WORLD);
    if (spec->rank > 1)
        return 0;
    start = MPI_Wtime();
    for (uint64_t i = 0; i < rounds; i++) {
        MPI_Request request[2];

        MPI_Irecv(spec->in, spec->size, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &request[0]);
        MPI_Isend(spec->out, spec->size, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &request[1]);
        if (seconds > 0)
            compute(seconds);
        MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
    }
    return (MPI_Wtime() - start) / rounds;
}

/* A message from rank 0 to rank 1, whose receive has been posted. The rank 'computes' does so
 * between start and wait, the other one waits at once. Returns the mean time that the computing
 * rank took from start to end. */
static double message_and_compute(const struct task_spec *spec, int computes, double seconds,
                                  uint64_t rounds)
{
    double start, total = 0;
    char ready = 0;

    MPI_Barrier(MPI_COMM_WORLD);
    for (uint64_t i = 0; i < rounds && spec->rank < 2; i++) {
        MPI_Request request;

        if (!spec->rank)
            MPI_Recv(&ready, 1, MPI_CHAR, 1, TAG + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        start = MPI_Wtime();
        if (!spec->rank) {
            MPI_Isend(spec->out, spec->size, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &request);
        } else {
            MPI_Irecv(spec->in, spec->size, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &request);
            MPI_Send(&ready, 1, MPI_CHAR, 0, TAG + 1, MPI_COMM_WORLD);
        }
        if (seconds > 0 && spec->rank == computes)
            compute(seconds);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        total += MPI_Wtime() - start;
    }
    total /= rounds;
    MPI_Bcast(&total, 1, MPI_DOUBLE, computes, MPI_COMM_WORLD);
    return total;
}

/* In percent, of a time that was 'overlapped' with computing for as long. */
static double hidden_part(double alone, double overlapped)
{
    double hidden = (2 * alone - overlapped) / alone * 100;

    return hidden < 0 ? 0 : hidden > 100 ? 100 : hidden;
}

static uint64_t overlap_rounds(const struct task_spec *spec)
{
    return mpibench_rounds(spec, spec->size, LATENCY_VOLUME, 10);
}

/* The percentage of the time of an exchange that can overlap with computation. */
static double overlap(const struct task_spec *spec)
{
    uint64_t rounds = overlap_rounds(spec);
    double alone;

    exchange_and_compute(spec, 0, mpibench_warmup(spec, rounds));
    alone = exchange_and_compute(spec, 0, rounds);
    MPI_Bcast(&alone, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return hidden_part(alone, exchange_and_compute(spec, alone, rounds));
}

/* The same for one message, while one of its two ranks waits. */
static double overlap_of(const struct task_spec *spec, int computes)
{
    uint64_t rounds = overlap_rounds(spec);
    double alone;

    message_and_compute(spec, computes, 0, mpibench_warmup(spec, rounds));
    alone = message_and_compute(spec, computes, 0, rounds);
    return hidden_part(alone, message_and_compute(spec, computes, alone, rounds));
}

/* The time in microseconds of a message while one of its two ranks computes for as long as one core
 * may take to copy it: the same time for every library. */
static double busy(const struct task_spec *spec, int computes)
{
    uint64_t rounds = overlap_rounds(spec);
    double seconds = spec->size / COPY_RATE;

    message_and_compute(spec, computes, seconds, mpibench_warmup(spec, rounds));
    return message_and_compute(spec, computes, seconds, rounds) * 1e6;
}

static double busy_sender(const struct task_spec *spec)
{
    return busy(spec, 0);
}

static double busy_receiver(const struct task_spec *spec)
{
    return busy(spec, 1);
}

static double overlap_sender(const struct task_spec *spec)
{
    return overlap_of(spec, 0);
}

static double overlap_receiver(const struct task_spec *spec)
{
    return overlap_of(spec, 1);
}

/* The time in microseconds to receive one of 'iterations' unexpected messages. Each has its own
 * tag, and the newest is received first, the worst case of a linear search. */
static double unexpected(const struct task_spec *spec)
{
    int count = spec->iterations < INT_MAX ? spec->iterations : INT_MAX - 1;
    double start;

    MPI_Barrier(MPI_COMM_WORLD);
    if (spec->rank == 1) {
        for (int tag = 0; tag <= count; tag++)
            MPI_Send(spec->out, spec->size, MPI_BYTE, 0, tag, MPI_COMM_WORLD);
    }
    if (spec->rank)
        return 0;
    /* Once the last message has arrived, all before it have. */
    MPI_Recv(spec->in, spec->size, MPI_BYTE, 1, count, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    start = MPI_Wtime();
    for (int tag = count; tag--;)
        MPI_Recv(spec->in, spec->size, MPI_BYTE, 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return (MPI_Wtime() - start) / count * 1e6;
}

static const struct task latency_task = { "latency", "us", 2, one_message, latency };
static const struct task bw_task = { "bw", "MB/s", 2, one_message, bandwidth };
static const struct task bibw_task = { "bibw", "MB/s", 2, one_message, both_ways };
static const struct task rate_task = { "msg-rate", "M/s", 2, one_message, message_rate };
static const struct task overlap_task = { "overlap", "%", 2, one_message, overlap };
static const struct task sender_task = { "overlap-sender", "%", 2, one_message, overlap_sender };
static const struct task receiver_task = { "overlap-receiver", "%", 2, one_message,
                                           overlap_receiver };
static const struct task busy_sender_task = { "busy-sender", "us", 2, one_message, busy_sender };
static const struct task busy_receiver_task = { "busy-receiver", "us", 2, one_message,
                                                busy_receiver };
static const struct task unexpected_task = { "unexpected", "us", 2, one_message, unexpected };

const struct task *const point_tasks[] = {
    &latency_task,       &bw_task,         &bibw_task,     &rate_task,
    &overlap_task,       &sender_task,     &receiver_task, &busy_sender_task,
    &busy_receiver_task, &unexpected_task, NULL,
};
