/* SPDX-License-Identifier: BSD-2-Clause */
/* One process that owns memory and does things to it, and a peer that operates on it when asked. */
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

extern const struct mapped_case program_cases[], memory_cases[];

/* Opens the adapter here and in a peer, which takes its way of VERBENA_MR, and connects them. */
void owner_open(const char *own_way, const char *peer_way);
/* New queue pairs in place of those that an error has ended. */
void owner_reconnect(void);
extern struct rig owner;
extern pid_t peer_pid;

/* Pages that are the program's own, filled with a pattern. */
uint8_t *fresh_pages(size_t pages);
/* Whether it is still there, from one byte of those pages to another. */
bool has_pattern(const uint8_t *memory, size_t from, size_t to);
struct ibv_mr *must_register(void *memory, size_t bytes, int access);
/* Whether the memory there has been exchanged. */
bool is_exchanged(const void *at);

/* The peer writes, reads or adds a word. */
enum ibv_wc_status peer_write(const void *at, uint32_t key, uint64_t value);
enum ibv_wc_status peer_read(const void *at, uint32_t key, uint64_t *value);
enum ibv_wc_status peer_add(const void *at, uint32_t key, uint64_t more);
/* Goes on writing rising numbers until a write fails; returns at once. */
void peer_write_on(const void *at, uint32_t key);
/* The status that ended it. */
enum ibv_wc_status peer_stopped(void);
/* How many of the regions it has mapped, with these rights ("r--s", "rw-s"). */
unsigned peer_mappings(const char *rights);
/* A word that the peer writes arrives, and one that we write is read. */
void check_both_ways(uint8_t *memory, uint32_t key);

#endif
