/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UTIL_LINK_H
#define UTIL_LINK_H

/* Decodes active_width and active_speed of a port. */

#include "util/util.h"

static inline unsigned link_lanes(uint8_t active_width)
{
    static const uint8_t lanes[] = { 1, 4, 8, 12, 2 };
    unsigned bit = __builtin_ctz(active_width | 1u << 7);

    return bit < ARRAY_SIZE(lanes) ? lanes[bit] : 0;
}

struct link_speed {
    const char *name;
    unsigned lane; /* rate of a lane, 100 Mbit/s */
};

static inline const struct link_speed *link_speed(uint8_t active_speed)
{
    static const struct link_speed speeds[] = {
        { "SDR", 25 },  { "DDR", 50 },  { "QDR", 100 }, { "FDR10", 100 },
        { "FDR", 140 }, { "EDR", 250 }, { "HDR", 500 }, { "NDR", 1000 },
    };

    return &speeds[__builtin_ctz(active_speed | 1u << 7)];
}

#endif
