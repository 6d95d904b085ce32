/* SPDX-License-Identifier: BSD-2-Clause */
#include "mtl/request_id.h"

#include <stdbool.h>
#include <stdlib.h>

#define INITIAL_CAPACITY 256

struct entry {
    enum request_id_kind kind;
    uint32_t generation;
    uint32_t next_free;
    void *object;
};

static struct entry *entries;
static uint32_t capacity, first_free; /* entry 0 is never used */

static bool grow(void)
{
    uint32_t new_capacity = capacity ? capacity * 2 : INITIAL_CAPACITY;
    struct entry *grown = realloc(entries, new_capacity * sizeof(*grown));

    if (!grown)
        return false;
    entries = grown;
    for (uint32_t i = new_capacity; i-- > (capacity ? capacity : 1);) {
        entries[i] = (struct entry){ .kind = REQUEST_ID_FREE, .next_free = first_free };
        first_free = i;
    }
    capacity = new_capacity;
    return true;
}

uint64_t request_id_new(enum request_id_kind kind, void *object)
{
    struct entry *entry;
    uint32_t index;

    if (!first_free && !grow())
        return 0;
    index = first_free;
    entry = &entries[index];
    first_free = entry->next_free;
    entry->kind = kind;
    entry->object = object;
    return (uint64_t)entry->generation << 32 | index;
}

void *request_id_find(enum request_id_kind kind, uint64_t id)
{
    uint32_t index = id;

    if (index >= capacity || !index || entries[index].kind != kind ||
        entries[index].generation != id >> 32)
        return NULL;
    return entries[index].object;
}

void request_id_free(uint64_t id)
{
    struct entry *entry = &entries[(uint32_t)id];

    entry->kind = REQUEST_ID_FREE;
    entry->generation++;
    entry->next_free = first_free;
    first_free = (uint32_t)id;
}

void request_ids_each(void (*call)(enum request_id_kind kind, void *object, void *argument),
                      void *argument)
{
    for (uint32_t i = 1; i < capacity; i++) {
        if (entries[i].kind != REQUEST_ID_FREE)
            call(entries[i].kind, entries[i].object, argument);
    }
}

void request_ids_free(void)
{
    free(entries);
    entries = NULL;
    capacity = first_free = 0;
}
