/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/transport.h"

#include "transport/completer.h"

#define PKEY_FULL_MEMBER 0x8000

void transport_init(struct transport_qp *qp, const struct transport_ops *ops,
                    const struct transport_attributes *attributes)
{
    *qp = (struct transport_qp){
        .ops = ops,
        .attributes = *attributes,
        .mtu_shift = __builtin_ctz(attributes->path_mtu),
    };
    requester_init(qp);
    responder_init(qp);
}

bool transport_pull_request(struct transport_qp *qp, uint64_t now, struct packet *packet)
{
    return requester_pull(qp, now, packet);
}

bool transport_pull_response(struct transport_qp *qp, struct packet *packet)
{
    return responder_pull(qp, packet);
}

bool transport_has_response(const struct transport_qp *qp)
{
    return qp->responder.pending || qp->responder.acknowledge;
}

void transport_sent(struct transport_qp *qp, uint64_t now)
{
    if (qp->requester.timer == TIMER_ACK && !qp->requester.probing)
        qp->requester.deadline = now + transport_timeout_ns(qp->attributes.timeout);
}

/* IBA volume 1, 10.9.3: two limited members may not communicate. */
static bool same_partition(uint16_t ours, uint16_t theirs)
{
    return !((ours ^ theirs) & ~PKEY_FULL_MEMBER) && (ours | theirs) & PKEY_FULL_MEMBER;
}

/* IBA volume 1, 9.6: packets that fail these checks are silently dropped. */
static bool is_for_us(const struct transport_qp *qp, const struct packet *packet)
{
    const struct transport_attributes *ours = &qp->attributes;

    if ((packet->opcode & SERVICE_MASK) != ours->service)
        return false;
    if (!same_partition(ours->pkey, packet->pkey))
        return false;
    return ours->service != SERVICE_UD || packet->qkey == ours->qkey;
}

void transport_receive(struct transport_qp *qp, uint64_t now, const struct packet *packet)
{
    const struct opcode_info *info = opcode_info(packet->opcode);

    if (qp->in_error || !info || !is_for_us(qp, packet))
        qp->attributes.counters->dropped++;
    else if (info->flags & OPCODE_RESPONSE)
        completer_receive(qp, now, packet, info);
    else
        responder_receive(qp, packet, info);
}

uint64_t transport_deadline(const struct transport_qp *qp)
{
    return qp->requester.timer == TIMER_OFF ? TRANSPORT_NEVER : qp->requester.deadline;
}

void transport_timeout(struct transport_qp *qp, uint64_t now)
{
    if (now >= transport_deadline(qp))
        requester_timeout(qp);
}

void transport_probe(struct transport_qp *qp)
{
    if (qp->requester.timer == TIMER_ACK)
        requester_probe(qp);
}

void transport_stop(struct transport_qp *qp)
{
    qp->in_error = true;
    qp->requester.timer = TIMER_OFF;
}

void transport_fail(struct transport_qp *qp, enum transport_status why)
{
    transport_stop(qp);
    qp->ops->failed(qp, why);
}

void transport_flush(struct transport_qp *qp)
{
    uint32_t *oldest = &qp->requester.oldest.index;

    while (qp->ops->wqe_at(qp, *oldest))
        qp->ops->complete(qp, (*oldest)++, TRANSPORT_FLUSHED);
}

/* IBA volume 1, 9.7.6.1.3: a requester may wait up to four times as long; this one does not. */
uint64_t transport_timeout_ns(uint8_t code)
{
    return 4096ull << (code & 31);
}

/* IBA volume 1, table 45 "Encoding for RNR NAK Timer Field". */
uint64_t transport_rnr_ns(uint8_t code)
{
    static const uint32_t hundredths_of_ms[32] = {
        65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,    32,
        48,    64,   96,   128,  192,  256,   384,   512,   768,   1024,  1536,
        2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
    };

    return hundredths_of_ms[code & 31] * 10000ull;
}
