/* A rail that has failed is brought up again over the others, when both sides have taken out of it
 * all that will ever come and both ports are up. One side asks, with the number of a new queue
 * pair. The other one makes its own, connects it and answers; it sends nothing there before it
 * hears that the first one is connected, too, or hears anything over the new rail. Who has a reason
 * not to answer says nothing, and is asked again later: soon at first, then less and less often.
 *
 * What is said about rails may come late, twice or in another order. Each life of a rail has a
 * number. */
#include "mtl/connection.h"
#include "mtl/log.h"
#include "mtl/protocol.h"

#define TRY_FIRST_NS 500000000ull
#define TRY_LAST_NS  32000000000ull

/* Doubled with each try, until a rail stays up for longer than that. */
void rail_await(struct rail_link *link)
{
    uint64_t now = coarse_now_ns();

    if (!link->patience || now - link->since > link->patience)
        link->patience = TRY_FIRST_NS;
    link->next_try = now + link->patience;
}

void rail_tell(struct rail_link *link, enum wire_type type)
{
    struct wire_rail body = { .rail = link->index, .life = link->life, .qp = link->qp->qp_num };

    endpoint_control(link->connection->endpoint, type, &body, sizeof(body));
}

static bool is_over(const struct rail_link *link)
{
    return !link->open && link->shut_here && link->shut_there && !link->reads;
}

static bool asks(const struct connection *connection)
{
    const opal_process_name_t *name = &connection->endpoint->name;

    return protocol_own_name() < ((uint64_t)name->jobid << 32 | name->vpid);
}

static void ask(struct rail_link *link)
{
    if (!path_is_active(link->path))
        return;
    link->patience = 2 * link->patience < TRY_LAST_NS ? 2 * link->patience : TRY_LAST_NS;
    link->next_try = coarse_now_ns() + link->patience;
    if (!link->asked && rail_renew(link))
        return;
    link->life += !link->asked;
    link->asked = true;
    rail_tell(link, WIRE_RAIL_ASK);
}

void rails_revive(void)
{
    uint64_t now = coarse_now_ns();

    for (struct connection *connection = connections; connection; connection = connection->next) {
        if (connection->state != CONNECTION_READY || connection->endpoint->failed ||
            !asks(connection))
            continue;
        for (uint32_t i = 0; i < connection->rail_count; i++) {
            struct rail_link *link = &connection->rails[i];

            if (!link->open && now >= link->next_try && is_over(link))
                ask(link);
        }
    }
}

/* A queue pair that has been opened in vain is given up: nothing went over it. */
static void asked(struct rail_link *link, const struct wire_rail *body)
{
    bool again = link->open && !link->up;

    if (body->life == link->life && link->open)
        rail_tell(link, WIRE_RAIL_OPEN);
    if ((int32_t)(body->life - link->life) <= 0 || !(is_over(link) || again) ||
        !path_is_active(link->path) || rail_renew(link))
        return;
    link->open = false;
    link->shut_here = link->shut_there = true;
    if (rail_connect(link, body->qp))
        return;
    link->life = body->life;
    rail_tell(link, WIRE_RAIL_OPEN);
}

static void use(struct rail_link *link)
{
    struct connection *connection = link->connection;

    link->up = true;
    link->since = coarse_now_ns();
    rails_restored(&connection->set, link->index);
    mtl.counters.rail_revivals++;
    mtl_log("rail %u (%s port %u) to process %u is up again: %u of %u", link->index,
            ibv_get_device_name(link->path->device->context->device), link->path->port,
            connection->endpoint->name.vpid, rails_up(&connection->set), connection->rail_count);
}

void rail_heard(struct rail_link *link)
{
    if (unlikely(link->open && !link->up))
        use(link);
}

static void opened(struct rail_link *link, const struct wire_rail *body)
{
    if (!link->asked)
        return;
    link->asked = false;
    if (rail_connect(link, body->qp))
        return;
    use(link);
    rail_tell(link, WIRE_RAIL_UP);
}

void rail_arrived(struct connection *connection, enum wire_type type, const struct wire_rail *body)
{
    struct rail_link *link;

    if (body->rail >= connection->rail_count) {
        mtl_log("process %u speaks of rail %u; there are %u", connection->endpoint->name.vpid,
                body->rail, connection->rail_count);
        return;
    }
    link = &connection->rails[body->rail];
    if (type == WIRE_RAIL_ASK) {
        asked(link, body);
        return;
    }
    if (body->life != link->life)
        return;
    if (type == WIRE_RAIL_DOWN)
        rail_down(link);
    else if (type == WIRE_RAIL_SHUT)
        rail_shut(link);
    else if (type == WIRE_RAIL_OPEN)
        opened(link, body);
    else
        rail_heard(link);
}
