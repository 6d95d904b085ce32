/* SPDX-License-Identifier: BSD-2-Clause */
/* How messages use a rail, apart from what the parameters decide. The replay of schedules follows
 * the same rules. No verbs, no MPI here. */
#ifndef MTL_RAIL_RULES_H
#define MTL_RAIL_RULES_H

#include "mtl/wire.h"
#include "util/util.h"

#define RAIL_CREDIT_SIGNALS 8 /* credit writes per signaled completion */
#define RAIL_POLL_BATCH     16
#define RAIL_COPY_MAX       (1ull << 30) /* bytes of one work request */
#define RAIL_HEAD_MIN       (1ull << 20) /* shorter stripes have no head */
#define RAIL_HEAD_FRACTION  8
#define RAIL_HEAD_MAX       (2ull << 20)
#define RAIL_READS_MAX      32 /* outstanding RDMA reads */

/* Bytes of a slot that has room for each eager message and each control message. */
static inline uint64_t rail_slot_size(uint64_t eager_limit)
{
    uint64_t body = eager_limit + sizeof(struct wire_ack);

    if (body < WIRE_BODY_MAX)
        body = WIRE_BODY_MAX;
    return round_up(sizeof(struct wire_header) + body + 2 * sizeof(uint32_t), CACHE_LINE);
}

/* The longest message that is sent at once. What may be striped is not copied into slots. */
static inline uint64_t rail_eager_limit(uint32_t rails, uint64_t limit, uint64_t stripe_threshold)
{
    return rails > 1 && limit >= stripe_threshold ? stripe_threshold - 1 : limit;
}

/* Bytes of a message in its slot: header, body and a mark behind them. */
static inline uint32_t rail_message_length(uint32_t body)
{
    return sizeof(struct wire_header) + round_up(body, 4) + sizeof(uint32_t);
}

/* Entries of a send queue. A process that writes does not read: the heads of stripes use the
 * entries of the reads. */
static inline uint32_t rail_send_depth(uint32_t window)
{
    return 2 * window + 2 * RAIL_CREDIT_SIGNALS + RAIL_READS_MAX;
}

/* Layout of the memory of a connection: a cache line of credit words for each rail, then rings of
 * slots, first those that the peer writes into, then those that this process sends from. */
static inline uint64_t rail_ring_offset(uint32_t rails, uint32_t ring, uint32_t window,
                                        uint32_t slot_size)
{
    return (uint64_t)rails * CACHE_LINE + (uint64_t)ring * window * slot_size;
}

static inline uint64_t rail_memory_size(uint32_t rails, uint32_t window, uint32_t slot_size)
{
    return rail_ring_offset(rails, 2 * rails, window, slot_size);
}

/* On the software adapter, short messages go into cells, which lie side by side: processors fetch the
 * next ones ahead. They follow the slots, in the same order. A message ends with its cell: the body,
 * then the header, whose mark is written last. RDMA promises that within a cache line only, so a
 * message in two of them begins with a mark, too. All parts are whole words. */
#define RAIL_CELL_SIZE     128
#define RAIL_CELL_BODY_MAX (RAIL_CELL_SIZE - sizeof(struct wire_header) - sizeof(uint64_t))
#define RAIL_CELL_WINDOWS  2 /* a sender needs no processor time of an adapter: it is soon ahead */

static inline uint32_t rail_cell_body(uint32_t body)
{
    return round_up(body, sizeof(uint64_t));
}

static inline bool rail_cell_has_head(uint32_t body)
{
    return rail_cell_body(body) + sizeof(struct wire_header) > CACHE_LINE;
}

static inline uint64_t rail_cells_offset(uint32_t rails, uint32_t ring, uint32_t window,
                                         uint32_t slot_size)
{
    return rail_memory_size(rails, window, slot_size) + (uint64_t)ring * window * RAIL_CELL_SIZE;
}

/* Bytes at the beginning of a stripe that are sent ahead of the rest. */
static inline uint64_t rail_head_length(uint64_t length)
{
    return length / RAIL_HEAD_FRACTION < RAIL_HEAD_MAX ? length / RAIL_HEAD_FRACTION
                                                       : RAIL_HEAD_MAX;
}

#endif
