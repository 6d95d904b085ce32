/* SPDX-License-Identifier: BSD-2-Clause */
#include "check/objects.h"

#include <pthread.h>
#include <stdlib.h>

#define BUCKETS         4096
#define GONE_REMEMBERED 1024

const char *const object_names[CHECK_KINDS] = {
    [CHECK_PD] = "a PD", [CHECK_MR] = "an MR",   [CHECK_CQ] = "a CQ",
    [CHECK_QP] = "a QP", [CHECK_SRQ] = "an SRQ", [CHECK_CHANNEL] = "a completion channel",
    [CHECK_TD] = "a thread domain",
};

static struct object *objects[BUCKETS]; /* by address */
static struct object *gone[GONE_REMEMBERED];
static uint32_t gone_count;
static uint64_t made_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct object **bucket_of(const void *address)
{
    return &objects[(uintptr_t)address * 0x9e3779b97f4a7c15ull >> 52];
}

void check_object_made(enum check_kind kind, const void *address, uint32_t number)
{
    struct object *object = calloc(1, sizeof(*object)), **bucket = bucket_of(address);

    if (!object)
        return;
    object->address = address;
    object->kind = kind;
    object->number = number;
    stacktrace_take(&object->made);
    pthread_mutex_lock(&lock);
    object->order = made_count++;
    object->next = *bucket;
    *bucket = object;
    pthread_mutex_unlock(&lock);
}

void check_object_gone(enum check_kind kind, const void *address)
{
    struct object **link = bucket_of(address), *object, **slot;

    pthread_mutex_lock(&lock);
    while (*link && ((*link)->address != address || (*link)->kind != kind))
        link = &(*link)->next;
    object = *link;
    if (object) {
        *link = object->next;
        object->gone = true;
        stacktrace_take(&object->destroyed);
        slot = &gone[gone_count++ % GONE_REMEMBERED];
        if (*slot)
            free((*slot)->memory);
        free(*slot);
        *slot = object;
    }
    pthread_mutex_unlock(&lock);
}

static void consider(const struct object *object, enum check_kind kind, uint32_t number,
                     const struct object **found)
{
    if (object && object->kind == kind && object->number == number &&
        (!*found || object->order > (*found)->order))
        *found = object;
}

bool object_find(enum check_kind kind, uint32_t number, struct object *copy)
{
    const struct object *found = NULL;

    pthread_mutex_lock(&lock);
    for (int i = 0; i < BUCKETS; i++) {
        for (const struct object *object = objects[i]; object; object = object->next)
            consider(object, kind, number, &found);
    }
    for (int i = 0; i < GONE_REMEMBERED; i++)
        consider(gone[i], kind, number, &found);
    if (found)
        *copy = *found;
    pthread_mutex_unlock(&lock);
    return found;
}

static struct object *existing(enum check_kind kind, const void *address)
{
    struct object *object = *bucket_of(address);

    while (object && (object->address != address || object->kind != kind))
        object = object->next;
    return object;
}

/* The last object at this address that was destroyed. */
static struct object *destroyed(const void *address)
{
    for (uint32_t back = 1; back <= GONE_REMEMBERED && back <= gone_count; back++) {
        struct object *object = gone[(gone_count - back) % GONE_REMEMBERED];

        if (object->address == address)
            return object;
    }
    return NULL;
}

bool object_at(enum check_kind kind, const void *address, struct object *copy)
{
    const struct object *object;

    pthread_mutex_lock(&lock);
    object = existing(kind, address);
    if (!object && (object = destroyed(address)) && object->kind != kind)
        object = NULL;
    if (object)
        *copy = *object;
    pthread_mutex_unlock(&lock);
    return object;
}

void object_keep(void *memory)
{
    struct object *object;

    pthread_mutex_lock(&lock);
    object = destroyed(memory);
    if (object && !object->memory)
        object->memory = memory;
    else
        free(memory);
    pthread_mutex_unlock(&lock);
}

/* ---- threads and processes ---- */

bool object_enter(enum check_kind kind, const void *address, struct object *copy)
{
    struct object *object;
    bool alone = true;

    pthread_mutex_lock(&lock);
    object = existing(kind, address);
    if (object && object->inside && object->inside != (uintptr_t)pthread_self()) {
        alone = false;
        *copy = *object;
    } else if (object) {
        object->inside = (uintptr_t)pthread_self();
        object->inside_from = check_caller;
    }
    pthread_mutex_unlock(&lock);
    return alone;
}

void object_leave(enum check_kind kind, const void *address)
{
    struct object *object;

    pthread_mutex_lock(&lock);
    object = existing(kind, address);
    if (object && object->inside == (uintptr_t)pthread_self())
        object->inside = 0;
    pthread_mutex_unlock(&lock);
}

void object_inherit_all(void)
{
    pthread_mutex_init(&lock, NULL); /* a thread of the parent may have held it */
    for (int i = 0; i < BUCKETS; i++) {
        for (struct object *object = objects[i]; object; object = object->next)
            object->inherited = true;
    }
}

void object_each(void (*visit)(const struct object *object, void *context), void *context)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < BUCKETS; i++) {
        for (const struct object *object = objects[i]; object; object = object->next)
            visit(object, context);
    }
    pthread_mutex_unlock(&lock);
}
