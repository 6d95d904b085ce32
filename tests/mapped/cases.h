/* SPDX-License-Identifier: BSD-2-Clause */
/* A process that owns memory, and a peer that accesses it on command. */
#ifndef TESTS_MAPPED_CASES_H
#define TESTS_MAPPED_CASES_H

#include "case.h"
#include "rig.h"

#include <errno.h>
#include <string.h>
#include <sys/types.h>

#define PAGE 4096ul

struct mapped_case {
    const char *name;
    void (*run)(void);
};

extern const struct mapped_case program_cases[], memory_cases[], use_cases[];

/* Opens the adapter in this process and in a peer, whose VERBENA_MR is given, and connects them. */
void owner_open(const char *own_way, const char *peer_way);
/* What the peer does before it opens the adapter. */
extern void (*peer_prepare)(void);
/* Replaces queue pairs that are in error. */
void owner_reconnect(void);
extern struct rig owner;
extern pid_t peer_pid;

/* Private pages, filled with a pattern. */
uint8_t *fresh_pages(size_t pages);
/* Whether the pattern is intact in a part of those pages. */
bool has_pattern(const uint8_t *memory, size_t from, size_t to);
struct ibv_mr *must_register(void *memory, size_t bytes, int access);
/* Whether that memory has been exchanged. */
bool is_exchanged(const void *at);

/* The peer writes, reads or fetch-and-adds a word. */
enum ibv_wc_status peer_write(const void *at, uint32_t key, uint64_t value);
enum ibv_wc_status peer_read(const void *at, uint32_t key, uint64_t *value);
enum ibv_wc_status peer_add(const void *at, uint32_t key, uint64_t more);
/* The peer writes that word so often that it pays to map the region, and reads it back. */
void peer_use(const void *at, uint32_t key, uint64_t value);
/* The peer writes increasing numbers until a write fails; returns at once. */
void peer_write_on(const void *at, uint32_t key);
/* The status of the failed write. */
enum ibv_wc_status peer_stopped(void);
/* How many regions the peer maps with these permissions ("r--s", "rw-s"). */
unsigned peer_mappings(const char *rights);
/* Whether it has attached a System V segment. */
bool peer_attached(void);
/* The peer writes a word that we see, and reads a word that we write. */
void check_both_ways(uint8_t *memory, uint32_t key);

#endif
