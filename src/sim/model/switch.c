/* Switches: a packet is forwarded as soon as its head is there, and waits at the output that leads
 * to its destination. In a fat tree (Leiserson 1985, here of two levels) it goes up to a spine that
 * its destination alone decides, and down from there; since no way leads up again, packets that
 * wait for room never wait for each other in a circle. */
#include "sim/model/hca.h"

#include "hca/segment.h"
#include "util/log.h"

#include <errno.h>

struct fabric_switch {
    uint32_t first_port; /* in model->ports, of those below a leaf; outputs to them come first */
    uint32_t adapters;
    uint32_t per_leaf; /* of a spine: adapters below each of its outputs; 0: this is a leaf */
    struct link *outputs;
};

/* By its destination alone, and so that the same ports of neighbours go different ways. */
static uint32_t spine_for(const struct sim_port *to)
{
    uint32_t adapter = to->hca->node * seg->devices + to->hca->device;

    return (adapter + to->number - 1) % model->parameters.fabric.uplinks;
}

static struct link *output_of(struct fabric_switch *here, const struct sim_port *to)
{
    uint32_t port = to - model->ports, place = port - here->first_port;

    if (here->per_leaf)
        return &here->outputs[place / here->per_leaf];
    if (port >= here->first_port && place < here->adapters)
        return &here->outputs[place];
    return &here->outputs[here->adapters + spine_for(to)];
}

void switch_reached(struct sim_packet *pkt)
{
    struct link *output = output_of(pkt->via->leads_to, pkt->destination);

    if (pkt->via->port)
        sim_packet_mark(pkt, MARK_SWITCHED);
    if (unlikely(model->faults.any) && output->end && faults_strike(&model->faults, FAULT_DROP)) {
        link_return_credits(pkt);
        sim_packet_put(pkt);
        return;
    }
    link_queue(output, pkt);
}

/* ---- making them ---- */

static int make_outputs(struct fabric_switch *here, uint32_t count)
{
    here->outputs = pool_alloc_permanent((uint64_t)count * sizeof(*here->outputs));
    return here->outputs ? 0 : ENOMEM;
}

static void attach_adapters(struct fabric_switch *leaf)
{
    for (uint32_t i = 0; i < leaf->adapters; i++) {
        struct sim_port *port = &model->ports[leaf->first_port + i];

        leaf->outputs[i].end = port;
        port->in = &leaf->outputs[i];
        port->out.port = port;
        port->out.leads_to = leaf;
    }
}

static int make_leaf(struct fabric_switch *leaf, uint32_t number, uint32_t room)
{
    uint32_t all = model->port_count - 1;

    leaf->first_port = 1 + number * room;
    leaf->adapters = all - number * room < room ? all - number * room : room;
    if (make_outputs(leaf, leaf->adapters + model->fabric.spines))
        return ENOMEM;
    attach_adapters(leaf);
    return 0;
}

static int make_spine(struct fabric_switch *spine, uint32_t number, uint32_t room)
{
    struct fabric *fabric = &model->fabric;

    spine->first_port = 1;
    spine->per_leaf = room;
    if (make_outputs(spine, fabric->leaves))
        return ENOMEM;
    for (uint32_t i = 0; i < fabric->leaves; i++) {
        struct fabric_switch *leaf = &fabric->switches[i];

        spine->outputs[i].leads_to = leaf;
        leaf->outputs[leaf->adapters + number].leads_to = spine;
    }
    return 0;
}

static int refuse(uint64_t most)
{
    const struct parameters *p = &model->parameters;

    log_error("%s with fabric.radix %llu%s takes %llu ports of adapters, and this fabric has %u "
              "(%u nodes with %u adapters of %u ports)",
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
    uint64_t room = tree ? p->fabric.radix - p->fabric.uplinks : p->fabric.radix;
    uint64_t most = tree ? p->fabric.radix * room : room;
    int error = 0;

    parameters_weights(p, model->vl_weights);
    if (most && ports > most)
        return refuse(most);
    if (!room)
        room = ports;
    fabric->spines = tree ? p->fabric.uplinks : 0;
    fabric->leaves = (ports + room - 1) / room;
    fabric->switches = pool_alloc_permanent((fabric->leaves + fabric->spines) * sizeof(*fabric->switches));
    if (!fabric->switches)
        return ENOMEM;
    for (uint32_t i = 0; i < fabric->leaves && !error; i++)
        error = make_leaf(&fabric->switches[i], i, room);
    for (uint32_t i = 0; i < fabric->spines && !error; i++)
        error = make_spine(&fabric->switches[fabric->leaves + i], i, room);
    return error;
}

void switch_each_trunk(void (*call)(void *context, struct link *link, uint32_t leaf,
                                        uint32_t spine, bool up),
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
