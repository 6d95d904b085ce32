/* SPDX-License-Identifier: BSD-2-Clause */
#include "schedule.h"

#define TAGS            5
#define LARGE_ONE_IN    512 /* messages longer than usual are rare */
#define USUAL           (256u << 10)
#define PHASE_BYTES     (128u << 20) /* of all ranks, under way at a time */
#define WILD_POSTED_MAX (32u << 10)  /* each such receive has room for the longest */
#define BUFFERED_MAX    4096
#define CLOSING_BYTES   (64u << 10)

uint64_t dice_below(struct dice *dice, uint64_t limit)
{
    dice->state += 0x9e3779b97f4a7c15;
    return data_mix(dice->state) % limit;
}

/* Short ones as likely as long ones, on a logarithmic scale. */
static size_t random_size(struct dice *dice, size_t largest)
{
    size_t limit = dice_below(dice, LARGE_ONE_IN) && largest > USUAL ? USUAL : largest;
    int bits = 0;

    while (limit >> bits)
        bits++;
    bits = (int)dice_below(dice, bits + 1);
    return bits ? dice_below(dice, ((size_t)1 << bits) < limit ? (size_t)1 << bits : limit + 1) : 0;
}

static enum send_mode random_mode(struct dice *dice, const struct message *message, bool posted)
{
    enum send_mode mode = dice_below(dice, SEND_MODES);

    if (mode == SEND_BUFFERED && message->size > BUFFERED_MAX)
        return SEND_START;
    if ((mode == SEND_NOW || mode == SEND_NOW_SYNC) && (!posted || message->from == message->to))
        return SEND_START;
    return mode;
}

static void random_message(struct dice *dice, int ranks, size_t largest, const struct phase *phase,
                           struct message *message)
{
    bool wild;

    message->from = (int)dice_below(dice, ranks);
    message->to = (int)dice_below(dice, ranks);
    message->tag = (int)dice_below(dice, TAGS);
    wild = phase->mode[message->to] != RECEIVE_EXACT;
    if (wild && phase->posted[message->to] && largest > WILD_POSTED_MAX)
        largest = WILD_POSTED_MAX;
    message->size = random_size(dice, largest);
    message->seed = dice_below(dice, UINT64_MAX);
    message->mode = random_mode(dice, message, phase->posted[message->to]);
    message->take = dice_below(dice, TAKE_MODES);
    message->sent_as = dice_below(dice, LAYOUTS);
    message->received_as = wild ? LAYOUT_PLAIN : dice_below(dice, LAYOUTS);
}

void schedule_phase(struct dice *dice, int ranks, size_t largest, struct phase *phase)
{
    int count = 1 + (int)dice_below(dice, MESSAGES_MAX);
    size_t bytes = 0;

    for (int i = 0; i < ranks; i++) {
        phase->mode[i] = dice_below(dice, RECEIVE_MODES);
        phase->posted[i] = dice_below(dice, 2);
    }
    for (phase->count = 0; phase->count < count && bytes < PHASE_BYTES; phase->count++) {
        struct message *message = &phase->list[phase->count];

        random_message(dice, ranks, largest, phase, message);
        bytes += message->size;
    }
    phase->closing = dice_below(dice, CLOSINGS);
    phase->closing_size = random_size(dice, CLOSING_BYTES);
    phase->closing_root = (int)dice_below(dice, ranks);
}
