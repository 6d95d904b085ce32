/* SPDX-License-Identifier: BSD-2-Clause */
/* Cut-through switches: a packet is forwarded when its head arrives, and waits at the output that
 * leads to its destination. */
#include "sim/model/hca.h"

#include "hca/segment.h"
#include "util/log.h"

#include <errno.h>
#include <string.h>

static struct link *output_of(struct fabric_switch *here, struct sim_packet *pkt)
{
    struct fabric *fabric = &model->fabric;
    uint32_t port = pkt->destination - model->ports;

    if (fabric->switch_count == 1 || fabric->port_switch[port] == here->number) {
        pkt->vl -= pkt->vl % fabric->layers;
        return &fabric->to_ports[port];
    }
    return routes_output(here, pkt);
}

static void lose(struct sim_packet *pkt)
{
    model->fabric.lost++;
    if (model_is_ethernet())
        link_refuse(pkt);
    else
        link_return_credits(pkt);
    sim_packet_put(pkt);
}

void switch_packet_arrived(struct sim_packet *pkt)
{
    struct link *output = unlikely(pkt->via->failed) ? NULL : output_of(pkt->via->to_switch, pkt);

    if (pkt->via->from_port)
        sim_packet_mark(pkt, MARK_SWITCHED);
    if (unlikely(!output)) {
        lose(pkt);
        return;
    }
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

/* ---- failing links ---- */

void switch_link_fails(uint32_t failure)
{
    struct link *link = model->fabric.failing[failure];

    link->failed = link->reverse->failed = true;
    routes_forget();
    model->fabric.lost += link_drop_queued(link) + link_drop_queued(link->reverse);
}

/* The first cable between the two that does not fail already. */
static struct link *find_link(const struct link_failure *failure, uint32_t before)
{
    struct fabric *fabric = &model->fabric;

    for (uint32_t i = 0; i < fabric->switch_count; i++) {
        struct fabric_switch *here = &fabric->switches[i];

        for (uint32_t k = 0; k < here->output_count && !strcmp(here->name, failure->ends[0]); k++) {
            struct link *link = &here->outputs[k];
            bool taken = strcmp(link->to_switch->name, failure->ends[1]);

            for (uint32_t n = 0; n < before; n++)
                taken |= fabric->failing[n] == link || fabric->failing[n]->reverse == link;
            if (!taken)
                return link;
        }
    }
    return NULL;
}

static int plan_failures(void)
{
    struct link_failure failures[LINK_FAILURES_MAX];
    char error[512];
    int count =
        link_failures_read(model->parameters.fabric.failures, failures, error, sizeof(error));

    for (int i = 0; i < count; i++) {
        model->fabric.failing[i] = find_link(&failures[i], i);
        if (!model->fabric.failing[i]) {
            log_error("fabric.failures: no%s cable leads from %s to %s", i ? " further" : "",
                      failures[i].ends[0], failures[i].ends[1]);
            return EINVAL;
        }
        event_at(failures[i].time, EVENT_LINK_FAILS, NULL, i);
    }
    return 0;
}

/* ---- creation ---- */

static int make_switches(const struct shape *shape)
{
    struct fabric *fabric = &model->fabric;

    fabric->rule = shape->rule;
    fabric->layers = shape_layers(shape->rule);
    fabric->phases = shape_phases(shape->rule);
    fabric->switch_count = shape->switch_count;
    fabric->switches = pool_alloc_permanent(shape->switch_count * sizeof(*fabric->switches));
    if (!fabric->switches)
        return ENOMEM;
    for (uint32_t i = 0; i < shape->cable_count; i++) {
        fabric->switches[shape->cables[i].a].output_count++;
        fabric->switches[shape->cables[i].b].output_count++;
    }
    for (uint32_t i = 0; i < shape->switch_count; i++) {
        struct fabric_switch *here = &fabric->switches[i];

        memcpy(here->name, shape->names[i], sizeof(here->name));
        here->number = i;
        here->divisor = shape->divisors[i];
        here->outputs = pool_alloc_permanent(here->output_count * sizeof(*here->outputs));
        here->classes = pool_alloc_permanent(here->output_count);
        if (!here->outputs || !here->classes)
            return ENOMEM;
        here->output_count = 0; /* until its cables are connected */
    }
    return 0;
}

static void connect_switches(const struct shape *shape)
{
    for (uint32_t i = 0; i < shape->cable_count; i++) {
        const struct shape_cable *cable = &shape->cables[i];
        struct fabric_switch *a = &model->fabric.switches[cable->a];
        struct fabric_switch *b = &model->fabric.switches[cable->b];
        struct link *to_b = &a->outputs[a->output_count], *to_a = &b->outputs[b->output_count];

        a->classes[a->output_count++] = cable->from_a;
        b->classes[b->output_count++] = cable->from_b;
        to_b->to_switch = b;
        to_b->reverse = to_a;
        to_a->to_switch = a;
        to_a->reverse = to_b;
    }
}

static int attach_adapters(const struct shape *shape)
{
    struct fabric *fabric = &model->fabric;

    fabric->to_ports = pool_alloc_permanent(model->port_count * sizeof(*fabric->to_ports));
    fabric->port_switch = pool_alloc_permanent(model->port_count * sizeof(*fabric->port_switch));
    if (!fabric->to_ports || !fabric->port_switch)
        return ENOMEM;
    for (uint32_t i = 1; i < model->port_count; i++) {
        struct sim_port *port = &model->ports[i];

        fabric->port_switch[i] = shape->hosts[i - 1];
        port->in = &fabric->to_ports[i];
        port->in->to_port = port;
        port->in->reverse = &port->out;
        port->out.from_port = port;
        port->out.to_switch = &fabric->switches[shape->hosts[i - 1]];
        port->out.reverse = port->in;
    }
    return 0;
}

/* Each VL for data becomes as many as there are layers. */
static int divide_vls(void)
{
    const struct parameters *p = &model->parameters;
    uint32_t layers = model->fabric.layers, weights[VLS_MAX];

    if (p->link.vls * layers > VLS_MAX) {
        log_error("fabric.shape = %s needs %u VLs for each of link.vls = %llu, so that packets "
                  "cannot deadlock; there are %d",
                  p->fabric.shape, layers, (unsigned long long)p->link.vls, VLS_MAX);
        return EINVAL;
    }
    parameters_weights(p, weights);
    for (uint32_t i = 0; i < VLS_MAX; i++)
        model->vl_weights[i] = weights[i / layers];
    return 0;
}

static int build(const struct shape *shape)
{
    int error = make_switches(shape);

    if (error)
        return error;
    connect_switches(shape);
    error = attach_adapters(shape);
    if (!error)
        error = divide_vls();
    if (!error)
        error = routes_init();
    return error ? error : plan_failures();
}

int switch_init_all(void)
{
    struct shape_ports ports = { .nodes = seg->nodes, .per_node = seg->devices * seg->ports };
    struct shape shape;
    char reason[512];
    int error;

    if (shape_make(&shape, model->parameters.fabric.shape, &ports, reason, sizeof(reason))) {
        log_error("fabric.shape = %s: %s", model->parameters.fabric.shape, reason);
        return EINVAL;
    }
    error = build(&shape);
    shape_free(&shape);
    return error;
}

void switch_each_trunk(void (*call)(void *context, const struct link *link, const char *from,
                                    const char *to),
                       void *context)
{
    const struct fabric *fabric = &model->fabric;

    for (uint32_t i = 0; i < fabric->switch_count; i++) {
        const struct fabric_switch *here = &fabric->switches[i];

        for (uint32_t k = 0; k < here->output_count; k++)
            call(context, &here->outputs[k], here->name, here->outputs[k].to_switch->name);
    }
}
