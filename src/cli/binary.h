/* SPDX-License-Identifier: BSD-2-Clause */
/* Facts about ELF files: can a library be preloaded, and which symbol versions are defined. */
#ifndef CLI_BINARY_H
#define CLI_BINARY_H

#include <stdbool.h>

enum binary_type {
    BINARY_NONE,    /* a script, or unreadable */
    BINARY_FOREIGN, /* for another word size or processor */
    BINARY_STATIC,  /* no dynamic linker: nothing can be preloaded */
    BINARY_DYNAMIC,
};

enum binary_type binary_type_of(const char *path);

/* Whether 'candidate' defines every symbol version that 'reference' defines. If not, 'missing' gets
 * the first one that it lacks. */
bool binary_versions_cover(const char *candidate, const char *reference, char *missing,
                           unsigned long size);

#endif
