/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/model/region.h"

#include "hca/addr.h"
#include "sim/memory/pool.h"
#include "sim/model/hca.h"
#include "sim/sched/sched.h"

struct icm *region_icm(uint32_t node, uint32_t device)
{
    return &hca_port_by_lid(addr_lid(node, device, 1))->hca->icm;
}

/* Addresses that programs chose do not affect the model's times. */
static void invalidate_everywhere(const struct region_change *change)
{
    for (uint32_t i = 1; i < model->port_count; i++) {
        if (model->ports[i].number == 1)
            icm_invalidate_mtt(&model->ports[i].hca->icm, change->proc, change->address,
                               change->length);
    }
}

static void apply(const struct region_change *change)
{
    if (change->kind == REGION_REMAPPED) {
        invalidate_everywhere(change);
        return;
    }
    for (uint32_t device = 0; device < seg->devices; device++) {
        struct icm *icm = region_icm(change->node, device);

        if (change->kind == REGION_ADDED)
            icm_add_region(icm, change->proc, change->address, change->length);
        else
            icm_remove_region(icm, change->address, change->length);
    }
}

void region_change(const struct region_change *change)
{
    struct region_change *later = sched_is_ahead() ? pool_take_block(sizeof(*later)) : NULL;

    if (!later) {
        apply(change);
        return;
    }
    *later = *change;
    sched_event(sched_now(), EVENT_REGION, later, 0);
}

void region_change_due(struct region_change *change)
{
    apply(change);
    pool_give_block(change, sizeof(*change));
}
