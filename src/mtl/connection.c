#include "mtl/connection.h"

#include "mtl/log.h"
#include "mtl/protocol.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#define GREETING_NS 100000000ull

struct connection *connections;

/* A message that came before its turn. */
struct held {
    struct held *next;
    struct wire_header header;
    char body[];
};

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Every rail has its words of credit, then come the slots in which messages arrive, then those from
 * which they leave. */
static size_t ring_offset(const struct connection *connection, uint32_t rail)
{
    return (size_t)connection->rail_count * CACHE_LINE +
           (size_t)rail * connection->window * connection->slot_size;
}

static size_t staging_offset(const struct connection *connection, uint32_t rail)
{
    return ring_offset(connection, connection->rail_count) +
           (size_t)rail * connection->window * connection->slot_size;
}

static int lay_out(struct connection *connection)
{
    const struct address *peer = &connection->endpoint->address;
    uint32_t paths = smaller(devices.path_count, peer->path_count);

    connection->window = smaller(mtl.parameters.window, peer->window);
    connection->slot_size = smaller(protocol_slot_size(), peer->slot_size);
    connection->signal_interval = smaller(mtl.parameters.signal_interval, connection->window / 2);
    connection->rail_count = smaller(smaller(mtl.parameters.qps, peer->qps) * paths, RAILS_MAX);
    if (!connection->rail_count) {
        mtl_log("process %u has no port that can be reached", connection->endpoint->name.vpid);
        return ENETUNREACH;
    }
    connection->write_theirs = peer->written;
    connection->written_ours = protocol_slots_are_written();
    connection->memory_size = staging_offset(connection, connection->rail_count);
    connection->memory = mmap(NULL, connection->memory_size, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (connection->memory == MAP_FAILED) {
        connection->memory = NULL;
        return ENOMEM;
    }
    for (uint32_t i = 0; i < devices.count; i++) {
        connection->regions[i] =
            ibv_reg_mr(devices.device[i].pd, connection->memory, connection->memory_size,
                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
        if (!connection->regions[i]) {
            mtl_log("%zu bytes for a connection cannot be registered: %s", connection->memory_size,
                    strerror(errno));
            return errno;
        }
    }
    return 0;
}

static int make_rail(struct connection *connection, uint32_t index, uint32_t paths)
{
    struct rail_link *link = &connection->rails[index];

    link->connection = connection;
    link->index = index;
    link->path = &devices.path[index % paths];
    link->credit = (_Atomic uint32_t *)(connection->memory + (size_t)index * CACHE_LINE);
    link->ring = connection->memory + ring_offset(connection, index);
    link->staging = connection->memory + staging_offset(connection, index);
    link->sent = calloc(connection->window, sizeof(*link->sent));
    link->sends = calloc(connection->window, sizeof(*link->sends));
    link->receives = calloc(connection->window, sizeof(*link->receives));
    if (!link->sent || !link->sends || !link->receives)
        return ENOMEM;
    for (uint32_t i = 0; i < connection->window; i++) {
        link->sends[i] = (struct work){ .kind = WORK_MESSAGE, .link = link };
        link->receives[i] = (struct work){ .kind = WORK_RECEIVE, .index = i, .link = link };
    }
    link->credit_work = (struct work){ .kind = WORK_CREDIT, .link = link };
    link->lead_work = (struct work){ .kind = WORK_LEAD, .link = link };
    rails_add(&connection->set, link->path->device->index, link->path->port, index / paths);
    return rail_create(link);
}

struct connection *connection_new(struct endpoint *endpoint)
{
    struct connection *connection = calloc(1, sizeof(*connection));
    uint32_t paths = smaller(devices.path_count, endpoint->address.path_count);

    if (!connection)
        return NULL;
    connection->endpoint = endpoint;
    rails_set_init(&connection->set, &mtl.traffic);
    if (lay_out(connection))
        goto free_connection;
    connection->rails = calloc(connection->rail_count, sizeof(*connection->rails));
    if (!connection->rails)
        goto free_connection;
    for (uint32_t i = 0; i < connection->rail_count; i++) {
        if (make_rail(connection, i, paths))
            goto free_connection;
    }
    connection->next = connections;
    connections = connection;
    mtl.counters.connections++;
    return connection;
free_connection:
    connection_free(connection);
    return NULL;
}

void connection_free(struct connection *connection)
{
    for (uint32_t i = 0; connection->rails && i < connection->rail_count; i++) {
        rail_destroy(&connection->rails[i]);
        free(connection->rails[i].sent);
        free(connection->rails[i].sends);
        free(connection->rails[i].receives);
    }
    free(connection->rails);
    for (uint32_t i = 0; i < devices.count; i++) {
        if (connection->regions[i])
            ibv_dereg_mr(connection->regions[i]);
    }
    if (connection->memory)
        munmap(connection->memory, connection->memory_size);
    if (connection->greeter)
        ibv_destroy_ah(connection->greeter);
    for (struct held *held = connection->held, *next; held; held = next) {
        next = held->next;
        free(held);
    }
    free(connection);
}

static void greet(struct connection *connection)
{
    struct greeting greeting = {
        .name = protocol_own_name(),
        .heard = connection->heard,
        .ready = connection->state == CONNECTION_READY,
        .rail_count = connection->rail_count,
        .memory = (uintptr_t)connection->memory,
    };

    for (uint32_t i = 0; i < devices.count; i++)
        greeting.rkeys[i] = connection->regions[i]->rkey;
    for (uint32_t i = 0; i < connection->rail_count; i++)
        greeting.qps[i] = connection->rails[i].qp->qp_num;
    greeter_send(connection, &greeting);
    connection->next_greeting = mtl_now() + GREETING_NS;
}

void connection_begin(struct connection *connection)
{
    if (connection->state != CONNECTION_NEW)
        return;
    connection->state = CONNECTION_GREETING;
    protocol_greeting(1);
    greet(connection);
}

void connections_greet_again(void)
{
    uint64_t now = mtl_now();

    for (struct connection *connection = connections; connection; connection = connection->next) {
        if (connection->state == CONNECTION_GREETING && now >= connection->next_greeting)
            greet(connection);
    }
}

uint64_t connections_next_greeting(void)
{
    uint64_t next = UINT64_MAX;

    for (struct connection *connection = connections; connection; connection = connection->next) {
        if (connection->state == CONNECTION_GREETING && connection->next_greeting < next)
            next = connection->next_greeting;
    }
    return next;
}

/* The other side's numbers are known. */
static int hear(struct connection *connection, const struct greeting *greeting)
{
    if (greeting->rail_count != connection->rail_count) {
        mtl_log("process %u wants %u rails, here it is %u: parameters differ",
                connection->endpoint->name.vpid, greeting->rail_count, connection->rail_count);
        return EINVAL;
    }
    for (uint32_t i = 0; i < connection->rail_count; i++) {
        struct rail_link *link = &connection->rails[i];

        link->remote_credit = greeting->memory + (uint64_t)i * CACHE_LINE;
        link->remote_ring = greeting->memory + ring_offset(connection, i);
        link->remote_rkey = greeting->rkeys[link->path->device->index];
        if (rail_connect(link, greeting->qps[i]))
            return ECONNREFUSED;
        link->up = true;
    }
    connection->heard = true;
    return 0;
}

void connection_greeted(const struct greeting *greeting)
{
    opal_process_name_t name = { .jobid = greeting->name >> 32, .vpid = greeting->name };
    struct endpoint *endpoint = endpoint_of_name(&name);
    struct connection *connection = endpoint ? endpoint->connection : NULL;

    if (!connection || endpoint->failed)
        return;
    if (connection->state == CONNECTION_NEW) {
        connection->state = CONNECTION_GREETING;
        protocol_greeting(1);
    }
    if (!connection->heard && hear(connection, greeting)) {
        protocol_greeting(-1);
        endpoint_fail(endpoint);
        return;
    }
    if (greeting->heard && connection->state == CONNECTION_GREETING) {
        connection->state = CONNECTION_READY;
        protocol_greeting(-1);
    }
    if (!greeting->ready)
        greet(connection);
}

/* The rail that the policy chooses for a message that is not divided, once per message: if it has
 * no room, the message, which is the first of those that wait then, keeps its rail. */
static struct rail_link *planned_rail(struct connection *connection, const struct message *message,
                                      enum rails_class class)
{
    struct rails_message kind = { .class = class, .size = message_length(message) };
    struct sent *next = &connection->next_sent;
    struct rails_plan plan;

    if (next->planned && connection->rails[next->rails.rail].up)
        return &connection->rails[next->rails.rail];
    if (next->planned ? !rails_replan(&connection->set, &kind, &plan)
                      : !rails_plan(&connection->set, &kind, &plan))
        return NULL;
    if (!next->planned)
        *next = (struct sent){
            .planned = true, .class = class, .begun = plan.begun, .sharing = plan.sharing
        };
    next->rails = plan.piece[0];
    return &connection->rails[next->rails.rail];
}

/* Control messages take the first rail that has room. */
static struct rail_link *any_rail(struct connection *connection)
{
    for (uint32_t i = 0; i < connection->rail_count; i++) {
        if (rail_has_room(&connection->rails[i]))
            return &connection->rails[i];
    }
    return NULL;
}

static bool is_matched(const struct wire_header *header)
{
    return header->type == WIRE_EAGER || header->type == WIRE_OFFER;
}

bool connection_send(struct connection *connection, struct message *message, enum rails_class class)
{
    struct sent sent = { .planned = false };
    struct rail_link *link;

    if (connection->state != CONNECTION_READY) {
        connection_begin(connection);
        return false;
    }
    if (message->header.type == WIRE_EAGER)
        link = planned_rail(connection, message, class);
    else
        link = any_rail(connection);
    if (!link || !rail_has_room(link))
        return false;
    if (message->header.type == WIRE_EAGER) {
        sent = connection->next_sent;
        connection->next_sent.planned = false;
    }
    if (is_matched(&message->header))
        message->header.sequence = sent.sequence = connection->next_sequence++;
    rail_send(link, message, &sent);
    return true;
}

/* It has its place among the others already. */
bool connection_send_again(struct connection *connection, struct message *message)
{
    struct sent sent = { .planned = false };
    struct rail_link *link = any_rail(connection);

    if (link)
        rail_send(link, message, &sent);
    return link != NULL;
}

static void hold(struct connection *connection, const struct wire_header *header, const void *body)
{
    struct held **place = &connection->held, *held;

    while (*place && (int32_t)((*place)->header.sequence - header->sequence) < 0)
        place = &(*place)->next;
    if (*place && (*place)->header.sequence == header->sequence)
        return;
    held = malloc(sizeof(*held) + header->length);
    if (!held) {
        mtl_log("no memory for a message of %u bytes", header->length);
        endpoint_fail(connection->endpoint);
        return;
    }
    held->header = *header;
    memcpy(held->body, body, header->length);
    held->next = *place;
    *place = held;
}

void connection_arrived(struct connection *connection, const struct wire_header *header,
                        const void *body)
{
    int32_t early;

    if (!is_matched(header)) {
        protocol_arrived(connection->endpoint, header, body);
        return;
    }
    early = header->sequence - connection->expected_sequence;
    if (early < 0)
        return;
    if (early > 0) {
        hold(connection, header, body);
        return;
    }
    connection->expected_sequence++;
    protocol_arrived(connection->endpoint, header, body);
    while (connection->held && connection->held->header.sequence == connection->expected_sequence) {
        struct held *held = connection->held;

        connection->held = held->next;
        connection->expected_sequence++;
        protocol_arrived(connection->endpoint, &held->header, held->body);
        free(held);
    }
}
