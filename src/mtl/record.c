/* SPDX-License-Identifier: BSD-2-Clause */
/* Waits are not visible here. Instead, an operation requires all operations that were done when it
 * began and that no earlier operation required: on the same adapter that gives the same times. */
#include "mtl/record.h"

#include "mtl/endpoint.h"
#include "mtl/log.h"
#include "mtl/record_notes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define FIRST_CAPACITY 1024
#define AREAS          8
#define AREA_SIZE      (1ull << 42) /* of addresses that keep their distance */
#define ANY            UINT32_MAX
#define USUAL_CLASS    RAILS_COLLECTIVE /* not told for each send */

/* A schedule has one number for context and tag: 10 bits and 21. Tags of collectives are
 * negative. */
#define TAG_BITS        21
#define COLLECTIVE_TAGS (1u << (TAG_BITS - 1))

enum kind { KIND_SEND, KIND_RECV, KIND_CALC };

struct operation {
    enum kind kind;
    uint32_t peer, tag;
    uint64_t size;
    enum rails_class class; /* of a send */
    struct record_memory memory;
    uint32_t required_end; /* in required[]; those of the operation before end where it begins */
};

bool recording;

static struct {
    const char *path;
    struct operation *operations;
    uint32_t count, capacity;
    uint32_t *required; /* operations, by number from 1 */
    uint32_t required_count, required_capacity;
    uint64_t started, left_at;
    uint64_t calculated;    /* since the last operation */
    uint32_t memory_of;     /* the operation that memory is registered for, by number; 0: none */
    uintptr_t areas[AREAS]; /* the first address of each that was used */
    uint32_t area_count;
} record;

void record_open(void)
{
    record.path = getenv("VERBENA_RECORD");
    recording = record.path != NULL;
}

void record_start(void)
{
    if (recording)
        record.started = record.left_at = mtl_now();
}

static void give_up(const char *why)
{
    mtl_log("cannot record the schedule: %s", why);
    recording = false;
}

void record_entered(void)
{
    uint64_t now = mtl_now();

    if (now > record.left_at)
        record.calculated += now - record.left_at;
    record.left_at = now;
}

void record_left(void)
{
    record.left_at = mtl_now();
}

/* ---- operations ---- */

static bool make_room(void **array, uint32_t count, uint32_t *capacity, size_t element)
{
    uint32_t larger = *capacity ? *capacity * 2 : FIRST_CAPACITY;
    void *grown;

    if (count < *capacity)
        return true;
    grown = realloc(*array, larger * element);
    if (!grown) {
        give_up("out of memory");
        return false;
    }
    *array = grown;
    *capacity = larger;
    return true;
}

/* Returns the number of the new operation, which requires what has been done since the last one. */
static uint32_t add(enum kind kind, uint32_t peer, uint32_t tag, uint64_t size)
{
    if (!make_room((void **)&record.operations, record.count, &record.capacity,
                   sizeof(*record.operations)))
        return 0;
    record.operations[record.count] = (struct operation){
        .kind = kind, .peer = peer, .tag = tag, .size = size, .required_end = record.required_count
    };
    return ++record.count;
}

static uint32_t tag_of(const struct match_key *key)
{
    uint32_t tag = key->tag < 0 ? COLLECTIVE_TAGS - key->tag : (uint32_t)key->tag;

    if (key->tag == MATCH_ANY)
        return ANY;
    if (tag >> TAG_BITS || (key->tag >= 0 && tag >= COLLECTIVE_TAGS) ||
        key->context >> (31 - TAG_BITS))
        give_up("a tag is above 1048575, or a communicator has a context above 1023");
    return key->context << TAG_BITS | tag;
}

void record_operation(struct mtl_request *request, uint32_t peer)
{
    if (record.calculated)
        add(KIND_CALC, 0, 0, record.calculated);
    record.calculated = 0;
    request->record = add(request->sending ? KIND_SEND : KIND_RECV, peer,
                          tag_of(&request->receive.key), request->size);
    if (request->record && request->sending)
        record.operations[request->record - 1].class = request->class;
}

void record_matched(const struct mtl_request *request, const struct endpoint *from,
                    const struct match_key *key, uint64_t size)
{
    struct operation *operation;

    if (!request->record)
        return;
    operation = &record.operations[request->record - 1];
    operation->peer = from->name.vpid;
    operation->tag = tag_of(key);
    operation->size = size;
}

void record_done(struct mtl_request *request)
{
    if (!request->record || !make_room((void **)&record.required, record.required_count,
                                       &record.required_capacity, sizeof(*record.required)))
        return;
    record.required[record.required_count++] = request->record;
    request->record = 0;
}

/* The heap and other mappings are where the kernel puts them; a schedule has them in places that do
 * not depend on it. */
static uint64_t place_of(uintptr_t address)
{
    uint32_t area = 0;

    /* The difference from the middle of an area wraps below its beginning. */
    while (area < record.area_count && address - record.areas[area] + AREA_SIZE / 2 >= AREA_SIZE)
        area++;
    if (area == AREAS)
        return 0;
    if (area == record.area_count)
        record.areas[record.area_count++] = address / PAGE * PAGE;
    return (area + 1) * AREA_SIZE + AREA_SIZE / 2 + (address - record.areas[area]);
}

void record_memory_of(const struct mtl_request *request, const void *data)
{
    record.memory_of = recording && request ? request->record : 0;
    if (record.memory_of)
        record.operations[record.memory_of - 1].memory.address = place_of((uintptr_t)data);
}

void record_registered(uint64_t bytes)
{
    if (record.memory_of)
        record.operations[record.memory_of - 1].memory.registered += bytes;
}

void record_deregistered(uint64_t bytes)
{
    struct record_memory *memory;
    struct record_regions *regions;

    if (!record.memory_of)
        return;
    memory = &record.operations[record.memory_of - 1].memory;
    regions = memory->registered ? &memory->last : &memory->first;
    regions->regions++;
    regions->bytes += bytes;
}

/* ---- the file ---- */

static void write_message(FILE *file, const struct operation *operation)
{
    const struct record_memory *memory = &operation->memory;
    bool send = operation->kind == KIND_SEND;
    bool classed = send && operation->class != USUAL_CLASS;

    fprintf(file, "%s %" PRIu64 "b %s %d tag %d", send ? "send" : "recv", operation->size,
            send ? "to" : "from", (int32_t)operation->peer, (int32_t)operation->tag);
    if (classed || memory->address)
        fprintf(file, " " RECORD_COMMENT);
    if (classed)
        fprintf(file, "%s%s", rails_class_names[operation->class], memory->address ? ", " : "");
    if (memory->address)
        fprintf(file, RECORD_AT, memory->address);
    if (memory->address && (memory->registered || memory->last.regions))
        fprintf(file, RECORD_MEMORY, memory->registered, memory->first.regions, memory->first.bytes,
                memory->last.regions, memory->last.bytes);
    fprintf(file, "\n");
}

static void write_operation(FILE *file, uint32_t index, uint32_t *required)
{
    const struct operation *operation = &record.operations[index];

    fprintf(file, "l%u: ", index + 1);
    if (operation->kind == KIND_CALC)
        fprintf(file, "calc %" PRIu64 "\n", operation->size);
    else
        write_message(file, operation);
    /* The program goes on when a calculation is over, and when a message has been posted. */
    if (index)
        fprintf(file, "l%u %s l%u\n", index + 1,
                record.operations[index - 1].kind == KIND_CALC ? "requires" : "irequires", index);
    for (; *required < operation->required_end; ++*required)
        fprintf(file, "l%u requires l%u\n", index + 1, record.required[*required]);
}

static void write_all(FILE *file)
{
    uint32_t rank = OMPI_PROC_MY_NAME->vpid, required = 0;

    if (!rank)
        fprintf(file, RECORD_CONNECTS "\n" RECORD_SENDS_ARE "%s\nnum_ranks %u\n",
                rails_class_names[USUAL_CLASS], ompi_process_info.num_procs);
    fprintf(file, "// took %" PRIu64 " ns\nrank %u {\n", record.left_at - record.started, rank);
    for (uint32_t i = 0; i < record.count; i++)
        write_operation(file, i, &required);
    fprintf(file, "}\n");
}

void record_close(void)
{
    char path[4096];
    FILE *file;

    record_entered();
    if (record.calculated || record.required_count)
        add(KIND_CALC, 0, 0, record.calculated);
    snprintf(path, sizeof(path), "%s.%u", record.path, OMPI_PROC_MY_NAME->vpid);
    file = recording ? fopen(path, "w") : NULL;
    if (file)
        write_all(file);
    if (recording && (!file || ferror(file) | fclose(file))) {
        mtl_log("cannot record the schedule: %s: %s", path, strerror(errno));
        remove(path);
    }
    free(record.operations);
    free(record.required);
    recording = false;
}
