/* SPDX-License-Identifier: BSD-2-Clause */
/* The verbs objects of this process: where the program made them, and where it destroyed them. */
#ifndef CHECK_OBJECTS_H
#define CHECK_OBJECTS_H

#include "check/check.h"
#include "check/stacktrace.h"

struct object {
    struct object *next;
    const void *address;
    uint64_t order; /* of creation */
    uint32_t number;
    enum check_kind kind;
    bool gone;
    bool inherited;       /* made by the process that this one was forked from */
    void *memory;         /* of a destroyed object: freed when it is forgotten */
    uintptr_t inside;     /* a thread that is in a call on it, 0: none */
    const void *inside_from; /* where that thread made the call */
    struct stacktrace made, destroyed;
};

extern const char *const object_names[CHECK_KINDS]; /* with an article */

/* Copies the object of this kind with this number: the one that exists, or the last that did. False:
 * there was none, or too many were destroyed since. */
bool object_find(enum check_kind kind, uint32_t number, struct object *copy);

/* Copies the object of this kind at this address: the one that exists, or the last that did. False:
 * none is known. */
bool object_at(enum check_kind kind, const void *address, struct object *copy);

/* hca_free_object() of a destroyed object: its memory stays until the object is forgotten. */
void object_keep(void *memory);

/* The calling thread begins or ends a call on an object that one thread at a time may use. False:
 * another thread is in such a call; copies the object. */
bool object_enter(enum check_kind kind, const void *address, struct object *copy);
void object_leave(enum check_kind kind, const void *address);

/* After fork(), in the child. */
void object_inherit_all(void);

/* Visits the objects that exist. */
void object_each(void (*visit)(const struct object *object, void *context), void *context);

#endif
