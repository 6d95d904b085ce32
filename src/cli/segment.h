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
enum segment_state segment_state_of(const char *path);

/* Removes it if no process is attached to it any more. Returns what it is then. */
enum segment_state segment_remove(const char *path);

/* The same with the segment of the present fabric. */
enum segment_state segment_remove_unused(void);

/* Calls 'each' for every segment file of this user. */
void segment_each(void (*each)(const char *path, void *context), void *context);

#endif
