/* SPDX-License-Identifier: BSD-2-Clause */
/* Shortest routes that the rule of the shape allows, made for a destination when the first packet
 * goes there. A packet's next output depends on where it is, where it goes, and its phase. */
#include "sim/model/hca.h"

#include "hca/segment.h"

#include <errno.h>
#include <string.h>

#define NO_ROUTE      UINT32_MAX
#define FIRST_CHOICES 8
#define FLOWLETS      1024 /* of a switch */
#define FLOWLET_NS    1000 /* a flow that pauses for this long may take another way */

/* ---- making routes ---- */

static void read_rule(void)
{
    struct fabric *fabric = &model->fabric;
    uint8_t layer;

    for (uint32_t class = 0; class < SHAPE_CLASSES_MAX; class ++) {
        for (uint32_t phase = 0; phase < fabric->phases; phase++) {
            int after = shape_turn(fabric->rule, phase, class, &layer);

            if (after >= 0 && (uint32_t)after < fabric->phases)
                fabric->phases_before[class][after] |= 1u << phase;
        }
    }
}

/* Relaxes the states of the switch at the other end of this output, from which a packet arrives
 * here in 'phase'. */
static void relax(const struct fabric_switch *here, uint32_t output, uint32_t phase, uint32_t *tail)
{
    struct fabric *fabric = &model->fabric;
    const struct link *back = here->outputs[output].reverse;
    const struct fabric_switch *from = here->outputs[output].to_switch;
    uint8_t class = from->classes[back - from->outputs];
    uint32_t states = fabric->switch_count * fabric->phases;
    uint32_t cost =
        fabric->costs[here->number * fabric->phases + phase] + shape_weight(fabric->rule, class);

    for (uint32_t left = fabric->phases_before[class][phase]; left; left &= left - 1) {
        uint32_t state = from->number * fabric->phases + __builtin_ctz(left);

        if (cost >= fabric->costs[state])
            continue;
        fabric->costs[state] = cost;
        if (!fabric->queued[state]) {
            fabric->queued[state] = true;
            fabric->queue[*tail] = state;
            *tail = (*tail + 1) % states;
        }
    }
}

/* The cost of the way from each switch and phase to the destination. */
static void measure_ways(uint32_t destination)
{
    struct fabric *fabric = &model->fabric;
    uint32_t states = fabric->switch_count * fabric->phases, head = 0, tail = 0;

    memset(fabric->costs, 0xff, states * sizeof(*fabric->costs));
    for (uint32_t phase = 0; phase < fabric->phases; phase++) {
        uint32_t state = destination * fabric->phases + phase;

        fabric->costs[state] = 0;
        fabric->queued[state] = true;
        fabric->queue[tail++] = state;
    }
    tail %= states;
    do {
        uint32_t state = fabric->queue[head];
        const struct fabric_switch *here = &fabric->switches[state / fabric->phases];

        head = (head + 1) % states;
        fabric->queued[state] = false;
        for (uint32_t i = 0; i < here->output_count; i++) {
            if (!here->outputs[i].failed)
                relax(here, i, state % fabric->phases, &tail);
        }
    } while (head != tail);
}

/* Outputs on the shortest ways from this state. */
static uint32_t shortest(const struct fabric_switch *here, uint32_t phase, uint16_t *outputs)
{
    const struct fabric *fabric = &model->fabric;
    uint32_t cost = fabric->costs[here->number * fabric->phases + phase], count = 0;

    for (uint32_t i = 0; i < here->output_count && cost != NO_ROUTE; i++) {
        const struct link *link = &here->outputs[i];
        uint8_t layer;
        int after = shape_turn(fabric->rule, phase, here->classes[i], &layer);
        uint32_t rest;

        if (link->failed || after < 0)
            continue;
        rest = fabric->costs[link->to_switch->number * fabric->phases + after];
        if (rest != NO_ROUTE && rest + shape_weight(fabric->rule, here->classes[i]) == cost)
            outputs[count++] = i;
    }
    return count;
}

static bool grow_choices(struct fabric_switch *here)
{
    uint32_t capacity = here->choice_capacity ? here->choice_capacity * 2 : FIRST_CHOICES;
    struct route_choices **larger = pool_alloc_permanent(capacity * sizeof(*larger));

    if (!larger)
        return false;
    if (here->choice_count)
        memcpy(larger, here->choices, here->choice_count * sizeof(*larger));
    here->choices = larger;
    here->choice_capacity = capacity;
    return true;
}

/* Returns index + 1, or 0 if out of memory. */
static uint16_t intern(struct fabric_switch *here, const uint16_t *outputs, uint32_t count)
{
    size_t bytes = count * sizeof(*outputs);
    struct route_choices *choices;

    for (uint32_t i = 0; i < here->choice_count; i++) {
        if (here->choices[i]->count == count && !memcmp(here->choices[i]->outputs, outputs, bytes))
            return i + 1;
    }
    if (here->choice_count == UINT16_MAX ||
        (here->choice_count == here->choice_capacity && !grow_choices(here)))
        return 0;
    choices = pool_alloc_permanent(sizeof(*choices) + bytes);
    if (!choices)
        return 0;
    choices->count = count;
    memcpy(choices->outputs, outputs, bytes);
    here->choices[here->choice_count++] = choices;
    return here->choice_count;
}

static void make_routes(struct routes *routes, uint32_t destination)
{
    struct fabric *fabric = &model->fabric;
    uint32_t states = fabric->switch_count * fabric->phases;
    uint16_t *outputs = (uint16_t *)fabric->queue; /* it is not needed at the same time */

    if (!routes->choices)
        routes->choices = pool_alloc_permanent(states * sizeof(*routes->choices));
    if (!routes->choices)
        return;
    measure_ways(destination);
    for (uint32_t state = 0; state < states; state++) {
        struct fabric_switch *here = &fabric->switches[state / fabric->phases];
        uint32_t count =
            here->number == destination ? 0 : shortest(here, state % fabric->phases, outputs);

        routes->choices[state] = count ? intern(here, outputs, count) : 0;
    }
    routes->valid = true;
}

void routes_forget(void)
{
    for (uint32_t i = 0; i < model->fabric.switch_count; i++)
        model->fabric.routes[i].valid = false;
}

int routes_init(void)
{
    struct fabric *fabric = &model->fabric;
    uint64_t states = (uint64_t)fabric->switch_count * fabric->phases, most = 0;

    for (uint32_t i = 0; i < fabric->switch_count; i++) {
        struct fabric_switch *here = &fabric->switches[i];

        if (most < here->output_count)
            most = here->output_count;
        if (model->parameters.fabric.routing != ROUTING_ADAPTIVE)
            continue;
        here->flowlets = pool_alloc_permanent(FLOWLETS * sizeof(*here->flowlets));
        if (!here->flowlets)
            return ENOMEM;
    }
    if (states < most)
        states = most;
    read_rule();
    fabric->routes = pool_alloc_permanent(fabric->switch_count * sizeof(*fabric->routes));
    fabric->costs = pool_alloc_permanent(states * sizeof(*fabric->costs));
    fabric->queue = pool_alloc_permanent(states * sizeof(*fabric->queue));
    fabric->queued = pool_alloc_permanent(states * sizeof(*fabric->queued));
    return fabric->routes && fabric->costs && fabric->queue && fabric->queued ? 0 : ENOMEM;
}

/* ---- choosing ---- */

/* Of the destination: the same port of neighbouring adapters uses different ways. */
static uint32_t by_destination(const struct fabric_switch *here, const struct sim_port *to)
{
    return (to->hca->node * seg->devices + to->hca->device + to->number - 1) / here->divisor;
}

/* A hash of what does not change from packet to packet of a QP (that of MurmurHash3 at its end). */
static uint32_t flow_of(const struct sim_packet *pkt)
{
    uint32_t hash = pkt->from->port->lid ^ (uint32_t)pkt->destination->lid << 16;

    hash ^= (pkt->packet.destination_qpn * 2654435761u) ^ pkt->vl;
    hash = (hash ^ hash >> 16) * 0x85ebca6bu;
    hash = (hash ^ hash >> 13) * 0xc2b2ae35u;
    return hash ^ hash >> 16;
}

static bool offers(const struct route_choices *choices, uint16_t output)
{
    for (uint32_t i = 0; i < choices->count; i++) {
        if (choices->outputs[i] == output)
            return true;
    }
    return false;
}

/* Bytes that a packet would wait for. */
static uint64_t load_of(const struct link *link)
{
    uint64_t left = link->server.free_at > sched->now ? link->server.free_at - sched->now : 0;

    return link->queued + left * model->parameters.link.rate;
}

/* A flow keeps its way as long as packets follow each other, so that they stay in order
 * (flowlets; Sinha, Kandula, Katabi 2004). */
static uint16_t least_loaded(struct fabric_switch *here, const struct route_choices *choices,
                             const struct sim_packet *pkt)
{
    uint32_t flow = flow_of(pkt), start = by_destination(here, pkt->destination);
    struct flowlet *flowlet = &here->flowlets[flow % FLOWLETS];
    uint64_t least = UINT64_MAX;

    if (flowlet->flow != flow || sched->now >= flowlet->time + FLOWLET_NS ||
        !offers(choices, flowlet->output)) {
        for (uint32_t i = 0; i < choices->count; i++) {
            uint16_t output = choices->outputs[(start + i) % choices->count];
            uint64_t load = load_of(&here->outputs[output]);

            if (load < least) {
                least = load;
                flowlet->output = output;
            }
        }
    }
    flowlet->flow = flow;
    flowlet->time = sched->now;
    return flowlet->output;
}

static uint16_t choose(struct fabric_switch *here, const struct route_choices *choices,
                       const struct sim_packet *pkt)
{
    if (choices->count == 1)
        return choices->outputs[0];
    switch (model->parameters.fabric.routing) {
    case ROUTING_ECMP:
        return choices->outputs[(flow_of(pkt) ^ here->number * 0x9e3779b1u) % choices->count];
    case ROUTING_ADAPTIVE:
        return least_loaded(here, choices, pkt);
    default:
        return choices->outputs[by_destination(here, pkt->destination) % choices->count];
    }
}

struct link *routes_output(struct fabric_switch *here, struct sim_packet *pkt)
{
    struct fabric *fabric = &model->fabric;
    uint32_t destination = fabric->port_switch[pkt->destination - model->ports];
    struct routes *routes = &fabric->routes[destination];
    uint16_t index, output;
    uint8_t layer;

    if (!routes->valid)
        make_routes(routes, destination);
    index = routes->choices ? routes->choices[here->number * fabric->phases + pkt->phase] : 0;
    if (!index)
        return NULL;
    output = choose(here, here->choices[index - 1], pkt);
    pkt->phase = shape_turn(fabric->rule, pkt->phase, here->classes[output], &layer);
    pkt->vl = pkt->vl - pkt->vl % fabric->layers + layer;
    return &here->outputs[output];
}
