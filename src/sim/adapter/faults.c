/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/adapter/faults.h"
#include "util/nearest.h"
#include "util/random.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST_DELAY_NS 4000 /* time for several packets on the slowest link */

const char *const fault_names[FAULT_COUNT] = {
    [FAULT_DROP] = "drop",
    [FAULT_CORRUPT] = "corrupt",
    [FAULT_DUPLICATE] = "duplicate",
    [FAULT_REORDER] = "reorder",
    [FAULT_FLIP] = "flip",
};

bool faults_strike(struct faults *faults, enum fault fault)
{
    bool strikes;

    if (faults->rates[fault] <= 0)
        return false;
    strikes = random_fraction(&faults->state) < faults->rates[fault];
    faults->counts[fault] += strikes;
    return strikes;
}

uint64_t faults_delay(struct faults *faults)
{
    return 1 + random_next(&faults->state) % LONGEST_DELAY_NS;
}

/* ---- bit errors ---- */

/* Bits flip independently of each other, so the distance between two is geometrically distributed. */
static uint64_t distance(struct faults *faults)
{
    double rate = faults->rates[FAULT_FLIP];
    double bits = rate < 1 ? floor(log1p(-random_fraction(&faults->state)) / log1p(-rate)) : 0;

    return bits < 0x1p62 ? bits : 1ull << 62;
}

bool faults_hit(struct faults *faults, size_t length)
{
    uint64_t bits = 8ull * length;

    if (faults->rates[FAULT_FLIP] <= 0)
        return false;
    if (faults->until_flip < bits)
        return true;
    faults->until_flip -= bits;
    return false;
}

unsigned int faults_flip(struct faults *faults, uint8_t *bytes, size_t length)
{
    uint64_t bits = 8ull * length;
    unsigned int flipped = 0;

    for (; faults->until_flip < bits; flipped++) {
        bytes[faults->until_flip / 8] ^= 0x80 >> faults->until_flip % 8;
        faults->until_flip += 1 + distance(faults);
    }
    faults->until_flip -= bits;
    faults->counts[FAULT_FLIP] += flipped;
    return flipped;
}

/* ---- parsing ---- */

static int read_seed(const char *value, struct faults *out, char *error, size_t size)
{
    char *end;

    errno = 0;
    out->state = strtoull(value, &end, 0);
    if (*value >= '0' && *value <= '9' && !*end && !errno)
        return 0;
    snprintf(error, size, "--faults: seed takes a whole number, not '%s'", value);
    return -1;
}

static int read_rate(enum fault fault, const char *value, struct faults *out, char *error,
                     size_t size)
{
    char *end;
    double rate = strtod(value, &end);

    if (end == value || *end || !(rate >= 0 && rate <= 1)) {
        snprintf(error, size, "--faults: %s takes a rate from 0 to 1, not '%s'", fault_names[fault],
                 value);
        return -1;
    }
    out->rates[fault] = rate;
    out->any |= rate > 0;
    return 0;
}

static int read_word(char *word, struct faults *out, char *error, size_t size)
{
    struct nearest nearest;
    char *equals = strchr(word, '=');

    if (!equals) {
        snprintf(error, size, "--faults: '%s' is not of the form NAME=RATE", word);
        return -1;
    }
    *equals = '\0';
    if (!strcmp(word, "seed"))
        return read_seed(equals + 1, out, error, size);
    for (int fault = 0; fault < FAULT_COUNT; fault++) {
        if (!strcmp(word, fault_names[fault]))
            return read_rate(fault, equals + 1, out, error, size);
    }
    nearest_begin(&nearest, word, strlen(word));
    for (int fault = 0; fault < FAULT_COUNT; fault++)
        nearest_try(&nearest, fault_names[fault]);
    snprintf(error, size,
             "--faults: unknown fault '%s': use drop, corrupt, duplicate, reorder, flip or seed%s",
             word, nearest_text(&nearest));
    return -1;
}

int faults_read(const char *text, struct faults *out, char *error, size_t size)
{
    char copy[256], *position = NULL;

    memset(out, 0, sizeof(*out));
    if (strlen(text) >= sizeof(copy)) {
        snprintf(error, size, "--faults: more than %zu characters", sizeof(copy) - 1);
        return -1;
    }
    strcpy(copy, text);
    for (char *word = strtok_r(copy, ",", &position); word; word = strtok_r(NULL, ",", &position)) {
        if (read_word(word, out, error, size))
            return -1;
    }
    out->until_flip = out->rates[FAULT_FLIP] > 0 ? distance(out) : 0;
    return 0;
}
