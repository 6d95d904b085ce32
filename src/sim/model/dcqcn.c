/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/model/dcqcn.h"

static uint64_t interval(double ns)
{
    return (uint64_t)(ns + 0.5);
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* One step of recovery: the timer or the byte counter has expired. The first F steps of either lead
 * back towards the target; later ones raise the target, too. */
static void increase(struct dcqcn *flow, const struct parameters *p)
{
    uint32_t both = smaller(flow->timeouts, flow->counts);

    if (both > p->dcqcn.f)
        flow->target_rate += (both - p->dcqcn.f) * p->dcqcn.rhai;
    else if (flow->timeouts > p->dcqcn.f || flow->counts > p->dcqcn.f)
        flow->target_rate += p->dcqcn.rai;
    if (flow->target_rate > p->link.rate)
        flow->target_rate = p->link.rate;
    flow->current_rate = (flow->target_rate + flow->current_rate) / 2;
}

void dcqcn_advance(struct dcqcn *flow, const struct parameters *p, uint64_t now)
{
    if (!flow->limited)
        return;
    for (; flow->alpha_at <= now; flow->alpha_at += interval(p->dcqcn.alpha_interval))
        flow->alpha *= 1 - p->dcqcn.g;
    for (; flow->timer_at <= now; flow->timer_at += interval(p->dcqcn.timer)) {
        flow->timeouts++;
        increase(flow, p);
    }
}

void dcqcn_cut(struct dcqcn *flow, const struct parameters *p, uint64_t now)
{
    if (!flow->limited)
        *flow = (struct dcqcn){ .limited = true, .current_rate = p->link.rate, .alpha = 1 };
    else
        dcqcn_advance(flow, p, now);
    flow->target_rate = flow->current_rate;
    flow->current_rate *= 1 - flow->alpha / 2;
    if (flow->current_rate < p->dcqcn.min_rate)
        flow->current_rate = p->dcqcn.min_rate;
    flow->alpha = (1 - p->dcqcn.g) * flow->alpha + p->dcqcn.g;
    flow->alpha_at = now + interval(p->dcqcn.alpha_interval);
    flow->timer_at = now + interval(p->dcqcn.timer);
    flow->bytes = flow->timeouts = flow->counts = 0;
}

void dcqcn_sent(struct dcqcn *flow, const struct parameters *p, uint64_t now, uint32_t bytes)
{
    uint64_t gap;

    if (!flow->limited)
        return;
    dcqcn_advance(flow, p, now);
    gap = interval(bytes / flow->current_rate);
    /* A packet that waited for an engine does not delay the next one. */
    flow->send_at = (flow->send_at + gap > now ? flow->send_at : now) + gap;
    flow->bytes += bytes;
    if (flow->bytes < p->dcqcn.byte_counter)
        return;
    flow->bytes -= p->dcqcn.byte_counter;
    flow->counts++;
    increase(flow, p);
}
