/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PRELOAD_PATHS_H
#define PRELOAD_PATHS_H

#include <stdbool.h>
#include <stddef.h>

/* The sysfs entries and device files that a kernel driver would create for the software adapters.
 */
enum preload_kind {
    PRELOAD_DIRECTORY,
    PRELOAD_FILE,
    PRELOAD_DEVICE,
};

struct preload_node {
    enum preload_kind kind;
    unsigned row;
    unsigned device;
    unsigned port;
    unsigned gid;
};

#define PRELOAD_GIDS         8 /* entries of a port's table */

#define PRELOAD_NAME_SIZE    48
#define PRELOAD_CONTENT_SIZE 128

/* Whether the path is fake. Cheap for all other paths. */
bool preload_lookup(const char *path, struct preload_node *node);

/* Writes the content of the file and returns its length, or -1 with errno. */
int preload_content(const struct preload_node *node, char content[PRELOAD_CONTENT_SIZE]);

/* The index-th entry of a fake directory; false past the last one. */
bool preload_entry(const struct preload_node *directory, unsigned index,
                   char name[PRELOAD_NAME_SIZE], enum preload_kind *kind);

#endif
