/* SPDX-License-Identifier: BSD-2-Clause */
/* The shared memory segments of this user, as files. */
#ifndef CLI_SEGMENT_H
#define CLI_SEGMENT_H

#include <stddef.h>

enum segment_state {
    SEGMENT_ABSENT,
    SEGMENT_IN_USE,
    SEGMENT_STALE, /* no process is attached */
};

const char *segment_directory(void);
int segment_path(char *path, size_t size);

/* The name of the fabric, which is part of the path. */
const char *segment_fabric(const char *path);

enum segment_state segment_state_of(const char *path);

/* Removes the segment if no process is attached. Returns the resulting state; SEGMENT_STALE with
 * errno if the file could not be removed. */
enum segment_state segment_remove(const char *path);

/* segment_remove() for the current fabric. */
enum segment_state segment_remove_unused(void);

/* Calls 'each' for every segment file of this user. Returns 0, or -1 with errno. */
int segment_each(void (*each)(const char *path, void *context), void *context);

#endif
