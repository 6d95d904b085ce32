/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UTIL_HASH_H
#define UTIL_HASH_H

#include <stdint.h>

/* FNV-1a */
static inline uint64_t hash_text(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325ull;

    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3ull;
    return hash;
}

#endif
