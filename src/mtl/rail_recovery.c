/* SPDX-License-Identifier: BSD-2-Clause */
/* A failed rail is reconnected, by messages over the other rails, once both sides have drained it
 * and both ports are active. The active side creates a new queue pair and sends REQ with its
 * number. The passive side creates its own, connects it and answers REP; it sends nothing on it
 * before it gets RTU, or any message over the new rail. A side that cannot answer yet stays silent,
 * and the active side repeats its REQ with exponential backoff.
 *
 * These messages may arrive late, twice or out of order. The generation number of the rail tells
 * which of them are stale. */
#include "mtl/connection.h"
#include "mtl/log.h"
#include "mtl/protocol.h"

#define RETRY_MIN_NS 500000000ull
#define RETRY_MAX_NS 32000000000ull

/* The interval goes back to its minimum after the rail has stayed up for longer than that. */
void rail_schedule_retry(struct rail_link *link)
{
    uint64_t now = coarse_now_ns();

    if (!link->retry_ns || now - link->up_since_ns > link->retry_ns)
        link->retry_ns = RETRY_MIN_NS;
    link->retry_at_ns = now + link->retry_ns;
}

void rail_send_control(struct rail_link *link, enum wire_type type)
{
    struct wire_rail body = { .rail = link->index,
                              .generation = link->generation,
                              .qp_num = link->qp->qp_num };

    endpoint_send_control(link->connection->endpoint, type, &body, sizeof(body));
}

static bool is_drained(const struct rail_link *link)
{
    return !link->connected && link->drained && link->peer_drained && !link->reads;
}

static bool is_active_side(const struct connection *connection)
{
    const opal_process_name_t *name = &connection->endpoint->name;

    return protocol_own_name() < ((uint64_t)name->jobid << 32 | name->vpid);
}

static void send_req(struct rail_link *link)
{
    if (!device_path_is_active(link->path))
        return;
    link->retry_ns = 2 * link->retry_ns < RETRY_MAX_NS ? 2 * link->retry_ns : RETRY_MAX_NS;
    link->retry_at_ns = coarse_now_ns() + link->retry_ns;
    if (!link->req_sent && rail_renew(link))
        return;
    link->generation += !link->req_sent;
    link->req_sent = true;
    rail_send_control(link, WIRE_RAIL_REQ);
}

void rails_recover(void)
{
    uint64_t now = coarse_now_ns();

    for (struct connection *connection = connections; connection; connection = connection->next) {
        if (connection->state != CONNECTION_READY || connection->endpoint->failed ||
            !is_active_side(connection))
            continue;
        for (uint32_t i = 0; i < connection->rail_count; i++) {
            struct rail_link *link = &connection->rails[i];

            if (!link->connected && now >= link->retry_at_ns && is_drained(link))
                send_req(link);
        }
    }
}

/* A queue pair that is connected but not up was created for an older REQ, and nothing has been sent
 * on it: it is replaced. */
static void req_arrived(struct rail_link *link, const struct wire_rail *body)
{
    bool replace = link->connected && !link->up;

    if (body->generation == link->generation && link->connected)
        rail_send_control(link, WIRE_RAIL_REP);
    if ((int32_t)(body->generation - link->generation) <= 0 || !(is_drained(link) || replace) ||
        !device_path_is_active(link->path) || rail_renew(link))
        return;
    link->connected = false;
    link->drained = link->peer_drained = true;
    if (rail_connect(link, body->qp_num))
        return;
    link->generation = body->generation;
    rail_send_control(link, WIRE_RAIL_REP);
}

static void set_up(struct rail_link *link)
{
    struct connection *connection = link->connection;

    link->up = true;
    link->up_since_ns = coarse_now_ns();
    rails_restored(&connection->set, link->index);
    mtl.counters.rail_recoveries++;
    mtl_log("rail %u (%s port %u) to process %u is up again: %u of %u rails are up", link->index,
            ibv_get_device_name(link->path->device->context->device), link->path->port,
            connection->endpoint->name.vpid, rails_up(&connection->set), connection->rail_count);
}

void rail_peer_connected(struct rail_link *link)
{
    if (unlikely(link->connected && !link->up))
        set_up(link);
}

static void rep_arrived(struct rail_link *link, const struct wire_rail *body)
{
    if (!link->req_sent)
        return;
    link->req_sent = false;
    if (rail_connect(link, body->qp_num))
        return;
    set_up(link);
    rail_send_control(link, WIRE_RAIL_RTU);
}

void rail_control_arrived(struct connection *connection, enum wire_type type,
                          const struct wire_rail *body)
{
    struct rail_link *link;

    if (body->rail >= connection->rail_count) {
        mtl_log("process %u sent a control message for rail %u, but there are only %u",
                connection->endpoint->name.vpid, body->rail, connection->rail_count);
        return;
    }
    link = &connection->rails[body->rail];
    if (type == WIRE_RAIL_REQ) {
        req_arrived(link, body);
        return;
    }
    if (body->generation != link->generation)
        return;
    if (type == WIRE_RAIL_DOWN)
        rail_peer_down(link);
    else if (type == WIRE_RAIL_DRAINED)
        rail_peer_drained(link);
    else if (type == WIRE_RAIL_REP)
        rep_arrived(link, body);
    else
        rail_peer_connected(link);
}
