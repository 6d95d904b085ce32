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
    struct stacktrace made, destroyed;
};

extern const char *const object_names[CHECK_KINDS];

/* Copies the object of this kind with this number: the one that exists, or the last that did. False:
 * there was none, or too many were destroyed since. */
bool object_find(enum check_kind kind, uint32_t number, struct object *copy);

/* Whether an object of this kind was at this address, and none is now; copies it. */
bool object_is_gone(enum check_kind kind, const void *address, struct object *copy);

/* Visits the objects that exist. */
void object_each(void (*visit)(const struct object *object, void *context), void *context);

#endif
