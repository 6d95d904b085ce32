/* The little that must be known of an ELF file before it is run or preferred to another. */
#ifndef CLI_BINARY_H
#define CLI_BINARY_H

#include <stdbool.h>

enum binary_nature {
    BINARY_NONE,    /* a script, or unreadable */
    BINARY_FOREIGN, /* of another word size or processor */
    BINARY_STATIC,  /* no dynamic linker: nothing can be preloaded */
    BINARY_DYNAMIC,
};

enum binary_nature binary_nature_of(const char *path);

/* Whether 'candidate' defines every symbol version that 'reference' defines; if not, the first one
 * missing is put into 'missing'. */
bool binary_versions_cover(const char *candidate, const char *reference, char *missing,
                           unsigned long size);

#endif
