/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PRELOAD_FAKE_SYSFS_H
#define PRELOAD_FAKE_SYSFS_H

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>

#include "preload/paths.h"

/* File-system calls on a fake file or directory. Return 0 or a result, or -1/NULL with errno. */
void preload_fill_stat(const struct preload_node *node, struct stat *status);
void preload_fill_statx(const struct preload_node *node, struct statx *status);
int preload_check_access(const struct preload_node *node, int mode);
int preload_open_node(const struct preload_node *node, int flags);
FILE *preload_open_stream(const struct preload_node *node, const char *mode);

DIR *preload_open_directory(const struct preload_node *node);
bool preload_owns_directory(DIR *directory);
struct dirent *preload_read_directory(DIR *directory);
void preload_rewind_directory(DIR *directory);
void preload_close_directory(DIR *directory);
/* As scandir(3). */
int preload_scan_directory(const struct preload_node *node, struct dirent ***list,
                           int (*filter)(const struct dirent *),
                           int (*order)(const struct dirent **, const struct dirent **));

#endif
