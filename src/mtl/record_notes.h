/* SPDX-License-Identifier: BSD-2-Clause */
/* What a recorded schedule tells in comments, because GOAL has no words for it. The replay reads
 * them; other programs do not. */
#ifndef MTL_RECORD_NOTES_H
#define MTL_RECORD_NOTES_H

#include <inttypes.h>

/* At the beginning. */
#define RECORD_CONNECTS "// connects on first use"
/* The class of communication of all sends that do not tell another one. */
#define RECORD_SENDS_ARE "// sends are "
/* Begins a comment behind a message. A class comes first, with a comma if something follows. */
#define RECORD_COMMENT "// "
/* Behind a message that goes by rendezvous: where its data are. */
#define RECORD_AT "at %" PRIx64
/* Behind that: bytes that are registered for it; how many regions are deregistered before that and
 * at its end, and their bytes together. */
#define RECORD_MEMORY                                                                   \
    ", registers %" PRIu64 "b, deregisters %" PRIu32 " of %" PRIu64 "b first, %" PRIu32 \
    " of %" PRIu64 "b last"

struct record_regions {
    uint64_t bytes;
    uint32_t regions;
};

struct record_memory {
    uint64_t address;
    uint64_t registered;
    struct record_regions first, last; /* deregistered before that, and at the end */
};

#endif
