/* SPDX-License-Identifier: BSD-2-Clause */
#include "mtl/connection.h"

#include "mtl/log.h"
#include "mtl/protocol.h"
#include "mtl/rail_rules.h"
#include "util/sysv_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#define WIREUP_RETRY_NS 100000000ull

struct connection *connections, *connections_polled;
static uint32_t polled_count, sending_count;
static int wireups; /* connections in CONNECTION_WIREUP */

/* A message that arrived out of order. */
struct reordered {
    struct reordered *next;
    struct wire_header header;
    char body[];
};

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static size_t ring_offset(const struct connection *connection, uint32_t ring)
{
    return rail_ring_offset(connection->rail_count, ring, connection->window,
                            connection->slot_size);
}

static size_t cells_offset(const struct connection *connection, uint32_t ring)
{
    return rail_cells_offset(connection->rail_count, ring, connection->window,
                             connection->slot_size);
}

static int allocate_memory(struct connection *connection)
{
    const struct address *peer = &connection->endpoint->address;
    uint32_t paths = smaller(devices.path_count, peer->path_count);

    connection->has_cells = mtl.live;
    connection->window = smaller(mtl.parameters.window, peer->window);
    connection->slot_size = smaller(protocol_slot_size(), peer->slot_size);
    connection->signal_interval = smaller(mtl.parameters.signal_interval, connection->window / 2);
    if (connection->has_cells)
        connection->window *= RAIL_CELL_WINDOWS;
    if (!(connection->window & (connection->window - 1)))
        connection->window_mask = connection->window - 1;
    connection->rail_count = smaller(smaller(mtl.parameters.qps, peer->qps) * paths, RAILS_MAX);
    if (!connection->rail_count) {
        mtl_log("process %u has no active port", connection->endpoint->name.vpid);
        return ENETUNREACH;
    }
    connection->memory_size =
        cells_offset(connection, connection->has_cells ? 2 * connection->rail_count : 0);
    /* On one machine the software adapter attaches System V memory of peers, and then copies into it
     * without system calls. */
    if (connection->has_cells)
        connection->memory = sysv_memory_map(connection->memory_size);
    connection->polls_slots = protocol_polls_slots(connection->memory) &&
                              polled_count < (uint32_t)mtl.parameters.polled_peers;
    if (!connection->memory)
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
            mtl_log("cannot register %zu bytes for a connection: %s (check ulimit -l; on the "
                    "software adapter, verbena doctor)",
                    connection->memory_size, strerror(errno));
            return errno;
        }
    }
    return 0;
}

static int init_rail(struct connection *connection, uint32_t index, uint32_t paths)
{
    struct rail_link *link = &connection->rails[index];

    link->connection = connection;
    link->index = index;
    link->path = &devices.path[index % paths];
    link->credit = (_Atomic uint32_t *)(connection->memory + (size_t)index * CACHE_LINE);
    link->ring = connection->memory + ring_offset(connection, index);
    link->staging = connection->memory + ring_offset(connection, connection->rail_count + index);
    if (connection->has_cells) {
        link->cells = connection->memory + cells_offset(connection, index);
        link->staging_cells =
            connection->memory + cells_offset(connection, connection->rail_count + index);
    }
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
    link->head_work = (struct work){ .kind = WORK_HEAD, .link = link };
    rails_add(&connection->set, link->path->device->index, link->path->port, index / paths);
    return rail_create(link);
}

static void connection_free(struct connection *connection)
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
    if (connection->ud_ah)
        ibv_destroy_ah(connection->ud_ah);
    for (struct reordered *reordered = connection->reordered, *next; reordered; reordered = next) {
        next = reordered->next;
        free(reordered);
    }
    free(connection);
}

struct connection *connection_new(struct endpoint *endpoint)
{
    struct connection *connection = calloc(1, sizeof(*connection));
    uint32_t paths = smaller(devices.path_count, endpoint->address.path_count);

    if (!connection)
        return NULL;
    connection->endpoint = endpoint;
    rails_set_init(&connection->set, &mtl.traffic);
    if (allocate_memory(connection))
        goto free_connection;
    connection->rails = calloc(connection->rail_count, sizeof(*connection->rails));
    if (!connection->rails)
        goto free_connection;
    for (uint32_t i = 0; i < connection->rail_count; i++) {
        if (init_rail(connection, i, paths))
            goto free_connection;
    }
    connection->next = connections;
    connections = connection;
    if (connection->polls_slots) {
        connection->next_polled = connections_polled;
        connections_polled = connection;
        polled_count++;
    } else {
        sending_count++;
    }
    mtl.counters.connections++;
    return connection;
free_connection:
    connection_free(connection);
    return NULL;
}

void connections_free(void)
{
    while (connections) {
        struct connection *next = connections->next;

        connection_free(connections);
        connections = next;
    }
    connections_polled = NULL;
    polled_count = sending_count = 0;
}

bool connections_received_from_cqs(void)
{
    return sending_count != 0;
}

static enum wireup_slots slots_of(const struct connection *connection)
{
    if (!connection->polls_slots)
        return WIREUP_SEND;
    return connection->has_cells ? WIREUP_SLOTS_AND_CELLS : WIREUP_SLOTS;
}

static void send_wireup(struct connection *connection)
{
    struct wireup_message message = {
        .name = protocol_own_name(),
        .connected = connection->connected,
        .ready = connection->state == CONNECTION_READY,
        .rail_count = connection->rail_count,
        .slots = slots_of(connection),
        .memory = (uintptr_t)connection->memory,
    };

    for (uint32_t i = 0; i < devices.count; i++)
        message.rkeys[i] = connection->regions[i]->rkey;
    for (uint32_t i = 0; i < connection->rail_count; i++)
        message.qps[i] = connection->rails[i].qp->qp_num;
    wireup_send(connection, &message);
    connection->next_wireup_ns = mtl_now() + WIREUP_RETRY_NS;
}

void connection_start_wireup(struct connection *connection)
{
    if (connection->state != CONNECTION_NEW)
        return;
    connection->state = CONNECTION_WIREUP;
    wireups++;
    send_wireup(connection);
}

bool connections_in_wireup(void)
{
    return wireups != 0;
}

void connections_retry_wireup(void)
{
    uint64_t now = mtl_now();

    for (struct connection *connection = connections; connection; connection = connection->next) {
        if (connection->state == CONNECTION_WIREUP && now >= connection->next_wireup_ns)
            send_wireup(connection);
    }
}

uint64_t connections_next_wireup(void)
{
    uint64_t next = UINT64_MAX;

    for (struct connection *connection = connections; connection; connection = connection->next) {
        if (connection->state == CONNECTION_WIREUP && connection->next_wireup_ns < next)
            next = connection->next_wireup_ns;
    }
    return next;
}

static int connect_rails(struct connection *connection, const struct wireup_message *message)
{
    if (message->rail_count != connection->rail_count) {
        mtl_log("process %u has %u rails, this process has %u: give both the same "
                "mtl_verbena_qps, mtl_verbena_ports and mtl_verbena_devices",
                connection->endpoint->name.vpid, message->rail_count, connection->rail_count);
        return EINVAL;
    }
    connection->peer_polls_slots = message->slots != WIREUP_SEND;
    connection->peer_polls_cells =
        connection->has_cells && message->slots == WIREUP_SLOTS_AND_CELLS;
    for (uint32_t i = 0; i < connection->rail_count; i++) {
        struct rail_link *link = &connection->rails[i];

        link->remote_credit = message->memory + (uint64_t)i * CACHE_LINE;
        link->remote_ring = message->memory + ring_offset(connection, i);
        link->remote_cells = message->memory + cells_offset(connection, i);
        link->remote_rkey = message->rkeys[link->path->device->index];
        if (rail_connect(link, message->qps[i]))
            return ECONNREFUSED;
        link->up = true;
    }
    connection->connected = true;
    return 0;
}

void connection_wireup_arrived(const struct wireup_message *message)
{
    opal_process_name_t name = { .jobid = message->name >> 32, .vpid = message->name };
    struct endpoint *endpoint = endpoint_of_name(&name);
    struct connection *connection = endpoint ? endpoint->connection : NULL;

    if (!connection || endpoint->failed)
        return;
    if (connection->state == CONNECTION_NEW) {
        connection->state = CONNECTION_WIREUP;
        wireups++;
    }
    if (!connection->connected && connect_rails(connection, message)) {
        wireups--;
        endpoint_fail(endpoint);
        return;
    }
    if (message->connected && connection->state == CONNECTION_WIREUP) {
        connection->state = CONNECTION_READY;
        wireups--;
    }
    if (!message->ready)
        send_wireup(connection);
}

/* The rail for an eager message. The policy is asked once for each message: if the rail has no free
 * slot, the message becomes the first pending one, and keeps its rail unless that fails. */
static struct rail_link *planned_rail(struct connection *connection, const struct message *message,
                                      enum rails_class class)
{
    struct rails_message kind = { .class = class, .size = endpoint_message_length(message) };
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
    next->rails = plan.stripe[0];
    return &connection->rails[next->rails.rail];
}

/* Control messages take the first rail with a free slot. */
static struct rail_link *any_rail(struct connection *connection)
{
    for (uint32_t i = 0; i < connection->rail_count; i++) {
        if (rail_can_send(&connection->rails[i]))
            return &connection->rails[i];
    }
    return NULL;
}

/* Where there is no choice, the policy only needs to know of the long messages that it measures. */
static bool needs_plan(const struct connection *connection, const struct message *message)
{
    return message->header.type == WIRE_EAGER &&
           (connection->rail_count > 1 ||
            endpoint_message_length(message) >= mtl.traffic.limits.stripe_threshold);
}

static bool is_ordered(const struct wire_header *header)
{
    return header->type == WIRE_EAGER || header->type == WIRE_RTS;
}

bool connection_send(struct connection *connection, struct message *message, enum rails_class class)
{
    bool planned = needs_plan(connection, message);
    struct rail_link *link;
    struct sent sent;

    if (connection->state != CONNECTION_READY) {
        connection_start_wireup(connection);
        return false;
    }
    link = planned ? planned_rail(connection, message, class) : any_rail(connection);
    if (!link || (planned && !rail_can_send(link)))
        return false;
    if (is_ordered(&message->header))
        message->header.sequence = connection->next_sequence++;
    if (planned) {
        sent = connection->next_sent;
        sent.sequence = message->header.sequence;
        connection->next_sent.planned = false;
    }
    rail_send(link, message, planned ? &sent : NULL);
    return true;
}

/* The message keeps the sequence number that it had. */
bool connection_resend(struct connection *connection, struct message *message)
{
    struct rail_link *link = any_rail(connection);

    if (link)
        rail_send(link, message, NULL);
    return link != NULL;
}

static void queue_reordered(struct connection *connection, const struct wire_header *header,
                            const void *body)
{
    struct reordered **at = &connection->reordered, *reordered;

    while (*at && (int32_t)((*at)->header.sequence - header->sequence) < 0)
        at = &(*at)->next;
    if (*at && (*at)->header.sequence == header->sequence)
        return;
    reordered = malloc(sizeof(*reordered) + header->length);
    if (!reordered) {
        mtl_log("out of memory: cannot keep a message of %u bytes", header->length);
        endpoint_fail(connection->endpoint);
        return;
    }
    reordered->header = *header;
    memcpy(reordered->body, body, header->length);
    reordered->next = *at;
    *at = reordered;
}

void connection_arrived(struct connection *connection, const struct wire_header *header,
                        const void *body)
{
    int32_t early;

    if (!is_ordered(header)) {
        protocol_arrived(connection->endpoint, header, body);
        return;
    }
    early = header->sequence - connection->expected_sequence;
    if (early < 0)
        return;
    if (early > 0) {
        queue_reordered(connection, header, body);
        return;
    }
    connection->expected_sequence++;
    protocol_arrived(connection->endpoint, header, body);
    while (connection->reordered &&
           connection->reordered->header.sequence == connection->expected_sequence) {
        struct reordered *reordered = connection->reordered;

        connection->reordered = reordered->next;
        connection->expected_sequence++;
        protocol_arrived(connection->endpoint, &reordered->header, reordered->body);
        free(reordered);
    }
}
