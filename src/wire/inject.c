/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults at the receiver, as --faults asks for. With the receive lock held. */
#include "wire/wire.h"

#include "sim/adapter/faults.h"
#include "util/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool wire_injects;

static struct faults faults;

/* A packet that later ones overtake. */
static struct {
    bool full;
    struct wire_arrival arrival;
    size_t length;
    uint16_t index;
    uint8_t bytes[ROCE_MAX_DATAGRAM];
} held;

int wire_inject_read(void)
{
    const char *text = getenv("VERBENA_FAULTS");
    char error[512];

    if (!text || !*text)
        return 0;
    if (faults_read(text, &faults, error, sizeof(error))) {
        log_error("%s", error);
        return EINVAL;
    }
    wire_injects = faults.any;
    return 0;
}

static bool hold(const struct wire_arrival *arrival, const uint8_t *bytes, size_t length,
                 uint16_t index)
{
    if (held.full || length > sizeof(held.bytes))
        return false;
    held.full = true;
    held.arrival = *arrival;
    held.length = length;
    held.index = index;
    memcpy(held.bytes, bytes, length);
    return true;
}

void wire_inject(struct wire_arrival *arrival, const uint8_t *bytes, size_t length, uint16_t index,
                 void (*deliver)(struct wire_arrival *arrival, const uint8_t *bytes, size_t length,
                                 uint16_t index))
{
    uint8_t corrupted[ROCE_MAX_DATAGRAM];
    bool release = held.full;

    if (faults_strike(&faults, FAULT_DROP))
        return;
    if (faults_strike(&faults, FAULT_REORDER) && hold(arrival, bytes, length, index))
        return;
    if (length && length <= sizeof(corrupted) && faults_strike(&faults, FAULT_CORRUPT)) {
        memcpy(corrupted, bytes, length);
        corrupted[faults_delay(&faults) % length] ^= 1 << faults_delay(&faults) % 8;
        bytes = corrupted;
    }
    if (length <= sizeof(corrupted) && faults_hit(&faults, length)) {
        if (bytes != corrupted)
            memcpy(corrupted, bytes, length);
        faults_flip(&faults, corrupted, length);
        bytes = corrupted;
    }
    deliver(arrival, bytes, length, index);
    if (faults_strike(&faults, FAULT_DUPLICATE))
        deliver(arrival, bytes, length, index);
    if (release) {
        held.full = false;
        deliver(&held.arrival, held.bytes, held.length, held.index);
    }
}
