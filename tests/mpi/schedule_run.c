/* SPDX-License-Identifier: BSD-2-Clause */
#include "schedule.h"

#include <stdlib.h>
#include <string.h>

#define FILL      0x5a
#define BLOCK     64
#define GAP       32
#define DISPLACED 40

/* A piece of memory that holds 'size' bytes in some layout. */
struct place {
    unsigned char *memory;
    size_t extent;
    MPI_Datatype type; /* of which it holds one */
};

/* Where byte 'at' of the message lies, and how many follow it there. */
static size_t offset_of(enum layout layout, size_t at, size_t *run)
{
    size_t block;

    switch (layout) {
    case LAYOUT_BLOCKS:
        *run = BLOCK - at % BLOCK;
        return at / BLOCK * (BLOCK + GAP) + at % BLOCK;
    case LAYOUT_UNEVEN:
        /* Of each 1000 bytes the first 7 lie apart. */
        block = at / 1000;
        *run = at % 1000 < 7 ? 7 - at % 1000 : 1000 - at % 1000;
        return block * 1100 + (at % 1000 < 7 ? at % 1000 : at % 1000 + 50);
    case LAYOUT_DISPLACED:
        *run = SIZE_MAX;
        return at + DISPLACED;
    default:
        *run = SIZE_MAX;
        return at;
    }
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static MPI_Datatype make_type(enum layout layout, size_t size)
{
    int count = 0, room = (int)(2 * (size / BLOCK + 2)), *lengths = allocate(room * sizeof(int));
    MPI_Aint *places = allocate(room * sizeof(MPI_Aint));
    MPI_Datatype type;

    for (size_t at = 0, run; at < size; at += run) {
        places[count] = (MPI_Aint)offset_of(layout, at, &run);
        run = least(run, size - at);
        lengths[count++] = (int)run;
    }
    MPI_Type_create_hindexed(count, lengths, places, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    free(places);
    free(lengths);
    return type;
}

static struct place place_make(enum layout layout, size_t size)
{
    struct place place = { .type = make_type(layout, size) };
    size_t run;

    place.extent = size ? offset_of(layout, size - 1, &run) + 1 : 0;
    place.memory = allocate(place.extent);
    memset(place.memory, FILL, place.extent);
    return place;
}

static void place_free(struct place *place)
{
    MPI_Type_free(&place->type);
    free(place->memory);
}

static void place_put(struct place *place, enum layout layout, const unsigned char *bytes,
                      size_t size)
{
    for (size_t at = 0, run; at < size; at += run) {
        size_t offset = offset_of(layout, at, &run);

        run = least(run, size - at);
        memcpy(place->memory + offset, bytes + at, run);
    }
}

static uint64_t digest_of(const unsigned char *bytes, size_t size)
{
    uint64_t digest = size, word;

    for (size_t at = 0; at < size; at += sizeof(word)) {
        word = 0;
        memcpy(&word, bytes + at, least(sizeof(word), size - at));
        digest = data_mix(digest ^ word);
    }
    return digest;
}

/* Checks the received data, and that the gaps of the layout are untouched. */
static uint64_t check(const struct message *message, const struct place *place,
                      const MPI_Status *status)
{
    unsigned char *bytes = allocate(message->size);
    struct place wanted = place_make(message->received_as, message->size);
    uint64_t digest;

    expect_status(status, message->from, message->tag, message->size);
    data_fill(bytes, message->size, message->seed);
    place_put(&wanted, message->received_as, bytes, message->size);
    expect(!memcmp(wanted.memory, place->memory, wanted.extent),
           "%zu bytes from %d with tag %d: wrong bytes", message->size, message->from,
           message->tag);
    digest = data_mix(digest_of(place->memory, wanted.extent) ^
                      data_seed(message->from, message->to, message->tag));
    place_free(&wanted);
    free(bytes);
    return digest;
}

struct run {
    const struct phase *phase;
    MPI_Comm comm;
    int rank;
    struct place sent[MESSAGES_MAX], received[MESSAGES_MAX];
    MPI_Request send_request[MESSAGES_MAX], receive_request[MESSAGES_MAX];
    bool taken[MESSAGES_MAX];
    uint64_t digest;
};

static bool is_mine(const struct run *run, int i)
{
    return run->phase->list[i].to == run->rank;
}

static int source_wanted(const struct run *run, int i)
{
    return run->phase->mode[run->rank] == RECEIVE_EXACT ? run->phase->list[i].from : MPI_ANY_SOURCE;
}

static int tag_wanted(const struct run *run, int i)
{
    return run->phase->mode[run->rank] == RECEIVE_ANY ? MPI_ANY_TAG : run->phase->list[i].tag;
}

/* The longest message that the receive number i may get. */
static size_t room_for(const struct run *run, int i)
{
    const struct phase *phase = run->phase;
    size_t longest = phase->list[i].size;

    for (int k = 0; phase->mode[run->rank] != RECEIVE_EXACT && k < phase->count; k++) {
        if (is_mine(run, k) && phase->list[k].size > longest)
            longest = phase->list[k].size;
    }
    return longest;
}

/* The message that a receive must get: the first matching one of its sender that no earlier receive
 * has taken. */
static const struct message *expected(struct run *run, int receive, const MPI_Status *status)
{
    const struct phase *phase = run->phase;

    if (phase->mode[run->rank] == RECEIVE_EXACT)
        return &phase->list[receive];
    for (int k = 0; k < phase->count; k++) {
        const struct message *message = &phase->list[k];

        if (!is_mine(run, k) || run->taken[k] || message->from != status->MPI_SOURCE)
            continue;
        if (phase->mode[run->rank] == RECEIVE_ANY_SOURCE && message->tag != status->MPI_TAG)
            continue;
        run->taken[k] = true;
        return message;
    }
    case_failed("a message from %d with tag %d, where none was left", status->MPI_SOURCE,
                status->MPI_TAG);
}

static void post_receives(struct run *run)
{
    for (int i = 0; i < run->phase->count; i++) {
        if (!is_mine(run, i))
            continue;
        run->received[i] = place_make(run->phase->list[i].received_as, room_for(run, i));
        MPI_Irecv(run->received[i].memory, 1, run->received[i].type, source_wanted(run, i),
                  tag_wanted(run, i), run->comm, &run->receive_request[i]);
    }
}

static void finish_receives(struct run *run)
{
    for (int i = 0; i < run->phase->count; i++) {
        MPI_Status status;

        if (!is_mine(run, i))
            continue;
        MPI_Wait(&run->receive_request[i], &status);
        run->digest += check(expected(run, i, &status), &run->received[i], &status);
        place_free(&run->received[i]);
    }
}

static void take_one(struct run *run, int i)
{
    int source = source_wanted(run, i), tag = tag_wanted(run, i);
    struct place place = place_make(run->phase->list[i].received_as, room_for(run, i));
    MPI_Message message;
    MPI_Status status;

    switch (run->phase->list[i].take) {
    case TAKE_PROBED:
        MPI_Probe(source, tag, run->comm, &status);
        MPI_Recv(place.memory, 1, place.type, status.MPI_SOURCE, status.MPI_TAG, run->comm,
                 &status);
        break;
    case TAKE_MATCHED:
        MPI_Mprobe(source, tag, run->comm, &message, &status);
        MPI_Mrecv(place.memory, 1, place.type, &message, &status);
        break;
    default:
        MPI_Recv(place.memory, 1, place.type, source, tag, run->comm, &status);
        break;
    }
    run->digest += check(expected(run, i, &status), &place, &status);
    place_free(&place);
}

static void take_receives(struct run *run)
{
    for (int i = 0; i < run->phase->count; i++) {
        if (is_mine(run, i))
            take_one(run, i);
    }
}

static void send_one(struct run *run, int i)
{
    const struct message *message = &run->phase->list[i];
    unsigned char *bytes = allocate(message->size);
    struct place *place = &run->sent[i];
    MPI_Request *request = &run->send_request[i];

    *place = place_make(message->sent_as, message->size);
    data_fill(bytes, message->size, message->seed);
    place_put(place, message->sent_as, bytes, message->size);
    free(bytes);
    switch (message->mode) {
    case SEND_START_SYNC:
        MPI_Issend(place->memory, 1, place->type, message->to, message->tag, run->comm, request);
        break;
    case SEND_PERSISTENT:
        MPI_Send_init(place->memory, 1, place->type, message->to, message->tag, run->comm, request);
        MPI_Start(request);
        break;
    case SEND_BUFFERED:
        MPI_Bsend(place->memory, 1, place->type, message->to, message->tag, run->comm);
        break;
    case SEND_NOW:
        MPI_Send(place->memory, 1, place->type, message->to, message->tag, run->comm);
        break;
    case SEND_NOW_SYNC:
        MPI_Ssend(place->memory, 1, place->type, message->to, message->tag, run->comm);
        break;
    default:
        MPI_Isend(place->memory, 1, place->type, message->to, message->tag, run->comm, request);
        break;
    }
}

static void start_sends(struct run *run)
{
    for (int i = 0; i < run->phase->count; i++) {
        run->send_request[i] = MPI_REQUEST_NULL;
        if (run->phase->list[i].from == run->rank)
            send_one(run, i);
    }
}

static void finish_sends(struct run *run)
{
    for (int i = 0; i < run->phase->count; i++) {
        if (run->phase->list[i].from != run->rank)
            continue;
        MPI_Wait(&run->send_request[i], MPI_STATUS_IGNORE);
        if (run->send_request[i] != MPI_REQUEST_NULL)
            MPI_Request_free(&run->send_request[i]);
        place_free(&run->sent[i]);
    }
}

static void close_alltoall(struct run *run, int ranks, int size)
{
    unsigned char *out = allocate((size_t)size * ranks), *in = allocate((size_t)size * ranks);

    for (int peer = 0; peer < ranks; peer++)
        data_fill(out + (size_t)peer * size, size, data_seed(run->rank, peer, size));
    MPI_Alltoall(out, size, MPI_BYTE, in, size, MPI_BYTE, run->comm);
    for (int peer = 0; peer < ranks; peer++)
        expect_data(in + (size_t)peer * size, size, data_seed(peer, run->rank, size), "alltoall");
    free(in);
    free(out);
}

static void close_bcast(struct run *run, int root, int size)
{
    unsigned char *bytes = allocate(size);

    if (run->rank == root)
        data_fill(bytes, size, data_seed(root, 0, size));
    MPI_Bcast(bytes, size, MPI_BYTE, root, run->comm);
    expect_data(bytes, size, data_seed(root, 0, size), "bcast");
    free(bytes);
}

static void close_phase(struct run *run, int ranks)
{
    const struct phase *phase = run->phase;
    int sum = run->rank;

    switch (phase->closing) {
    case CLOSE_ALLREDUCE:
        MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, run->comm);
        expect(sum == ranks * (ranks - 1) / 2, "allreduce: %d", sum);
        break;
    case CLOSE_BCAST:
        close_bcast(run, phase->closing_root, (int)phase->closing_size);
        break;
    case CLOSE_ALLTOALL:
        close_alltoall(run, ranks, (int)phase->closing_size);
        break;
    default:
        break;
    }
    MPI_Barrier(run->comm);
}

uint64_t schedule_run(const struct phase *phase, MPI_Comm comm)
{
    struct run *run = allocate(sizeof(*run));
    uint64_t digest;
    int ranks;

    memset(run, 0, sizeof(*run));
    run->phase = phase;
    run->comm = comm;
    MPI_Comm_rank(comm, &run->rank);
    MPI_Comm_size(comm, &ranks);
    if (phase->posted[run->rank])
        post_receives(run);
    start_sends(run);
    if (phase->posted[run->rank])
        finish_receives(run);
    else
        take_receives(run);
    finish_sends(run);
    close_phase(run, ranks);
    digest = run->digest;
    free(run);
    return digest;
}
