/* SPDX-License-Identifier: BSD-2-Clause */
/* What the links of the fabric have carried, as a file. */
#ifndef REPLAY_LINKS_H
#define REPLAY_LINKS_H

#include <stddef.h>
#include <stdint.h>

/* Writes a file whose form is what its name ends in: .txt, .csv, .json, or .html for a heat map.
 * 'total_ns' is the time to which the busy time of a link is compared. Returns 0, or -1 with the
 * reason in 'error'. */
int links_write(const char *path, uint64_t total_ns, char *error, size_t size);

#endif
