/* SPDX-License-Identifier: BSD-2-Clause */
/* Cut-through switches: a packet is forwarded when its head arrives, and waits at the output that
 * leads to its destination. In a two-level fat tree (Leiserson 1985) it goes up to a spine that
 * depends only on its destination, then down. No route goes up again, so packets that wait for
 * credits cannot deadlock. */
#include "sim/model/hca.h"

#include "hca/segment.h"
#include "util/log.h"

#include <errno.h>

struct fabric_switch {
    uint32_t first_port; /* in model->ports: the first one of a leaf; their outputs come first */
    uint32_t adapters;
    uint32_t per_leaf; /* spine: ports below each output; 0: this is a leaf */
    struct link *outputs;
};

/* Static routing by destination; the same port of neighbouring adapters uses different spines. */
static uint32_t spine_for(const struct sim_port *to)
{
    uint32_t adapter = to->hca->node * seg->devices + to->hca->device;

    return (adapter + to->number - 1) % model->parameters.fabric.uplinks;
}

static struct link *output_of(struct fabric_switch *here, const struct sim_port *to)
{
    uint32_t port = to - model->ports, index = port - here->first_port;

    if (here->per_leaf)
        return &here->outputs[index / here->per_leaf];
    if (port >= here->first_port && index < here->adapters)
        return &here->outputs[index];
    return &here->outputs[here->adapters + spine_for(to)];
}

void switch_packet_arrived(struct sim_packet *pkt)
{
    struct link *output = output_of(pkt->via->to_switch, pkt->destination);

    if (pkt->via->from_port)
        sim_packet_mark(pkt, MARK_SWITCHED);
    if (model_is_ethernet() && !ethernet_admit(pkt, output))
        return;
    if (unlikely(model->faults.any) && output->to_port &&
        faults_strike(&model->faults, FAULT_DROP)) {
        link_return_credits(pkt);
        sim_packet_put(pkt);
        return;
    }
    link_queue(output, pkt);
}

/* ---- creation ---- */

static int make_outputs(struct fabric_switch *here, uint32_t count)
{
    here->outputs = pool_alloc_permanent((uint64_t)count * sizeof(*here->outputs));
    return here->outputs ? 0 : ENOMEM;
}

static void attach_adapters(struct fabric_switch *leaf)
{
    for (uint32_t i = 0; i < leaf->adapters; i++) {
        struct sim_port *port = &model->ports[leaf->first_port + i];

        leaf->outputs[i].to_port = port;
        port->in = &leaf->outputs[i];
        port->out.from_port = port;
        port->out.to_switch = leaf;
        port->out.reverse = port->in;
        port->in->reverse = &port->out;
    }
}

static int make_leaf(struct fabric_switch *leaf, uint32_t number, uint32_t leaf_ports)
{
    uint32_t all = model->port_count - 1;

    leaf->first_port = 1 + number * leaf_ports;
    leaf->adapters =
        all - number * leaf_ports < leaf_ports ? all - number * leaf_ports : leaf_ports;
    if (make_outputs(leaf, leaf->adapters + model->fabric.spines))
        return ENOMEM;
    attach_adapters(leaf);
    return 0;
}

static int make_spine(struct fabric_switch *spine, uint32_t number, uint32_t leaf_ports)
{
    struct fabric *fabric = &model->fabric;

    spine->first_port = 1;
    spine->per_leaf = leaf_ports;
    if (make_outputs(spine, fabric->leaves))
        return ENOMEM;
    for (uint32_t i = 0; i < fabric->leaves; i++) {
        struct fabric_switch *leaf = &fabric->switches[i];
        struct link *up = &leaf->outputs[leaf->adapters + number], *down = &spine->outputs[i];

        down->to_switch = leaf;
        down->reverse = up;
        up->to_switch = spine;
        up->reverse = down;
    }
    return 0;
}

static int fail_too_many_ports(uint64_t most)
{
    const struct parameters *p = &model->parameters;

    log_error("%s with fabric.radix %llu%s connects at most %llu adapter ports; this fabric has %u "
              "(%u nodes x %u adapters x %u ports)",
              p->fabric.topology == TOPOLOGY_FAT_TREE ? "a fat tree" : "a switch",
              (unsigned long long)p->fabric.radix,
              p->fabric.topology == TOPOLOGY_FAT_TREE ? " and these fabric.uplinks" : "",
              (unsigned long long)most, model->port_count - 1, seg->nodes, seg->devices,
              seg->ports);
    return EINVAL;
}

int switch_init_all(void)
{
    const struct parameters *p = &model->parameters;
    struct fabric *fabric = &model->fabric;
    bool tree = p->fabric.topology == TOPOLOGY_FAT_TREE;
    uint32_t ports = model->port_count - 1;
    uint64_t leaf_ports = tree ? p->fabric.radix - p->fabric.uplinks : p->fabric.radix;
    uint64_t most = tree ? p->fabric.radix * leaf_ports : leaf_ports;
    int error = 0;

    parameters_weights(p, model->vl_weights);
    if (most && ports > most)
        return fail_too_many_ports(most);
    if (!leaf_ports)
        leaf_ports = ports;
    fabric->spines = tree ? p->fabric.uplinks : 0;
    fabric->leaves = (ports + leaf_ports - 1) / leaf_ports;
    fabric->switches =
        pool_alloc_permanent((fabric->leaves + fabric->spines) * sizeof(*fabric->switches));
    if (!fabric->switches)
        return ENOMEM;
    for (uint32_t i = 0; i < fabric->leaves && !error; i++)
        error = make_leaf(&fabric->switches[i], i, leaf_ports);
    for (uint32_t i = 0; i < fabric->spines && !error; i++)
        error = make_spine(&fabric->switches[fabric->leaves + i], i, leaf_ports);
    return error;
}

void switch_each_trunk(void (*call)(void *context, struct link *link, uint32_t leaf, uint32_t spine,
                                    bool up),
                       void *context)
{
    struct fabric *fabric = &model->fabric;

    for (uint32_t i = 0; i < fabric->leaves; i++) {
        struct fabric_switch *leaf = &fabric->switches[i];

        for (uint32_t k = 0; k < fabric->spines; k++) {
            call(context, &leaf->outputs[leaf->adapters + k], i, k, true);
            call(context, &fabric->switches[fabric->leaves + k].outputs[i], i, k, false);
        }
    }
}
