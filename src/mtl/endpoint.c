/* SPDX-License-Identifier: BSD-2-Clause */
#include "mtl/endpoint.h"

#include "mtl/connection.h"
#include "mtl/log.h"
#include "mtl/openmpi.h"
#include "mtl/protocol.h"
#include "mtl/rendezvous.h"
#include "mtl/shared.h"

#include <ompi/runtime/mpiruntime.h>
#include <opal/mca/base/mca_base_var.h>
#include <opal/mca/hwloc/hwloc-internal.h>

#include <stdlib.h>

#define BUCKETS  256
#define CHECK_NS 250000000ull /* between two checks that processes are alive */

/* A message that waits for a free slot: that of a request, or the header and body here. */
struct pending {
    struct pending *next;
    struct mtl_request *request;
    bool resend; /* has been sent before, and keeps its sequence number */
    struct wire_header header;
    char body[];
};

static struct endpoint *table[BUCKETS];
static struct endpoint *busy, **last_busy = &busy;
static struct endpoint *flushing;
static struct pending *spare; /* without bodies, to be used again */
static const struct address *own;

void endpoints_init(const struct address *self)
{
    own = self;
}

static struct endpoint **bucket_of(const opal_process_name_t *name)
{
    return &table[(name->jobid * 31 + name->vpid) % BUCKETS];
}

static bool read_address(const opal_process_name_t *name, struct address *address)
{
    struct address *found;
    size_t size;
    int status;

    OPAL_MODEX_RECV(status, &mca_mtl_verbena_component.mtl_version, name, (void **)&found, &size);
    if (status != OMPI_SUCCESS || size != sizeof(*found)) {
        mtl_log("process %u has not published an address; start all processes with --mca mtl "
                "verbena and the same version of the component",
                name->vpid);
        return false;
    }
    *address = *found;
    free(found);
    return true;
}

/* osc/rdma runs on one node only. A user who selects it wants all hosts to count as one node. */
static bool wants_one_node(void)
{
    const char *const *names;
    int index = mca_base_var_find("ompi", "osc", NULL, NULL);

    if (index < 0 || mca_base_var_get_value(index, &names, NULL, NULL) != OPAL_SUCCESS || !*names)
        return false;
    return **names != '^' && strstr(*names, "rdma");
}

void endpoints_mark_remote(size_t count, struct ompi_proc_t **procs)
{
    struct address address;

    if (wants_one_node())
        return;
    for (size_t i = 0; i < count; i++) {
        opal_proc_t *proc = &procs[i]->super;

        if (OPAL_PROC_ON_LOCAL_NODE(proc->proc_flags) && read_address(&proc->proc_name, &address) &&
            strcmp(own->node, address.node))
            proc->proc_flags = OPAL_PROC_NON_LOCAL;
    }
}

static enum transport transport_to(const struct endpoint *endpoint)
{
    if (((uint64_t)endpoint->name.jobid << 32 | endpoint->name.vpid) == protocol_own_name())
        return TRANSPORT_SELF;
    if (mtl.parameters.shared_memory && own->inbox >= 0 && endpoint->address.inbox >= 0 &&
        !strcmp(own->node, endpoint->address.node))
        return TRANSPORT_SHARED;
    return TRANSPORT_RAILS;
}

static bool open_transport(struct endpoint *endpoint)
{
    endpoint->transport = transport_to(endpoint);
    if (endpoint->transport == TRANSPORT_SHARED) {
        endpoint->shared = shared_attach(&endpoint->address);
        if (endpoint->shared)
            return true;
        endpoint->transport = TRANSPORT_RAILS;
    }
    if (endpoint->transport == TRANSPORT_RAILS) {
        endpoint->connection = connection_new(endpoint);
        return endpoint->connection != NULL;
    }
    return true;
}

/* One kernel and one PID namespace, whatever hosts of a fabric the processes are on. */
static bool on_this_machine(const struct address *address)
{
    const char *end = strchr(own->node, ' ');

    end = end ? strchr(end + 1, ' ') : NULL;
    return end && !strncmp(own->node, address->node, end - own->node + 1);
}

static struct endpoint *make(const opal_process_name_t *name)
{
    struct endpoint *endpoint = calloc(1, sizeof(*endpoint)), **bucket = bucket_of(name);

    if (!endpoint)
        return NULL;
    endpoint->name = *name;
    endpoint->last_pending = &endpoint->pending;
    if (!read_address(name, &endpoint->address) || !open_transport(endpoint)) {
        free(endpoint);
        return NULL;
    }
    if (liveness_matters() && on_this_machine(&endpoint->address))
        endpoint->process = liveness_of(endpoint->address.pid);
    endpoint->next = *bucket;
    *bucket = endpoint;
    return endpoint;
}

struct endpoint *endpoint_of_name(const opal_process_name_t *name)
{
    struct endpoint *endpoint = *bucket_of(name);

    while (endpoint && (endpoint->name.jobid != name->jobid || endpoint->name.vpid != name->vpid))
        endpoint = endpoint->next;
    return endpoint ? endpoint : make(name);
}

struct endpoint *endpoint_of_proc(struct ompi_proc_t *proc)
{
    struct endpoint *endpoint = proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_MTL];

    if (likely(endpoint != NULL))
        return endpoint;
    endpoint = endpoint_of_name(&proc->super.proc_name);
    proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_MTL] = endpoint;
    return endpoint;
}

static void free_list(struct pending *pending)
{
    while (pending) {
        struct pending *next = pending->next;

        free(pending);
        pending = next;
    }
}

static void endpoint_free(struct endpoint *endpoint)
{
    if (endpoint->shared)
        shared_detach(endpoint->shared);
    free_list(endpoint->pending);
    free(endpoint);
}

void endpoints_free(void)
{
    connections_free();
    for (int i = 0; i < BUCKETS; i++) {
        for (struct endpoint *endpoint = table[i], *next; endpoint; endpoint = next) {
            next = endpoint->next;
            endpoint_free(endpoint);
        }
        table[i] = NULL;
    }
    free_list(spare);
    spare = NULL;
    busy = NULL;
    last_busy = &busy;
}

/* ---- messages ---- */

uint32_t endpoint_message_length(const struct message *message)
{
    return message->body_length +
           (message->request ? message->request->size : message->data_length);
}

uint32_t endpoint_write_message(void *to, struct message *message)
{
    char *data = (char *)to + message->body_length;

    if (message->body_length)
        memcpy(to, message->body, message->body_length);
    if (message->request) {
        request_pack(message->request, data);
    } else if (message->data_length) {
        mtl_charge_copy(message->data_length);
        memcpy(data, message->data, message->data_length);
    }
    return endpoint_message_length(message);
}

bool endpoint_try_send(struct endpoint *endpoint, struct message *message, enum rails_class class)
{
    if (endpoint->pending && endpoint != flushing)
        return false;
    if (endpoint->transport == TRANSPORT_SHARED)
        return shared_send(endpoint->shared, message);
    return connection_send(endpoint->connection, message, class);
}

static void append_busy(struct endpoint *endpoint)
{
    if (endpoint->busy)
        return;
    endpoint->busy = true;
    endpoint->next_busy = NULL;
    *last_busy = endpoint;
    last_busy = &endpoint->next_busy;
}

static void append(struct endpoint *endpoint, struct pending *pending)
{
    pending->next = NULL;
    *endpoint->last_pending = pending;
    endpoint->last_pending = &pending->next;
    append_busy(endpoint);
}

static struct pending *pending_new(struct endpoint *endpoint, uint32_t length)
{
    struct pending *pending = length ? NULL : spare;

    if (pending)
        spare = pending->next;
    else
        pending = malloc(sizeof(*pending) + length);
    if (pending) {
        pending->request = NULL;
        pending->resend = false;
        return pending;
    }
    mtl_log("out of memory: cannot queue a message to process %u", endpoint->name.vpid);
    endpoint_fail(endpoint);
    return NULL;
}

static void pending_free(struct pending *pending)
{
    if (!pending->request) {
        free(pending);
        return;
    }
    pending->next = spare;
    spare = pending;
}

/* rendezvous_fail() completes the requests that have an ID. */
static void pending_fail(struct pending *pending)
{
    if (pending->request && !pending->request->id)
        request_done(pending->request, mtl_unreachable());
    pending_free(pending);
}

void endpoint_queue(struct endpoint *endpoint, struct mtl_request *request)
{
    struct pending *pending = pending_new(endpoint, 0);

    if (!pending)
        return;
    pending->request = request;
    append(endpoint, pending);
}

static struct pending *queue_message(struct endpoint *endpoint, const struct wire_header *header,
                                     const void *body)
{
    struct pending *pending = pending_new(endpoint, header->length);

    if (!pending)
        return NULL;
    pending->header = *header;
    memcpy(pending->body, body, header->length);
    append(endpoint, pending);
    return pending;
}

void endpoint_send_control(struct endpoint *endpoint, enum wire_type type, const void *body,
                      uint32_t length)
{
    struct message message = { .header = { .type = type, .length = length },
                               .body = body,
                               .body_length = length };

    mtl_charge(mtl.costs.control);
    if (!endpoint_try_send(endpoint, &message, RAILS_NONBLOCKING))
        queue_message(endpoint, &message.header, body);
}

void endpoint_resend(struct endpoint *endpoint, const struct wire_header *header, const void *body)
{
    struct pending *pending = queue_message(endpoint, header, body);

    if (pending)
        pending->resend = true;
}

static bool try_pending(struct endpoint *endpoint, struct pending *pending)
{
    struct message message = { .header = pending->header,
                               .body = pending->body,
                               .body_length = pending->header.length };

    if (pending->request)
        return protocol_send_queued(pending->request);
    if (pending->resend)
        return connection_resend(endpoint->connection, &message);
    return endpoint_try_send(endpoint, &message, RAILS_NONBLOCKING);
}

static struct pending *take_first(struct endpoint *endpoint)
{
    struct pending *pending = endpoint->pending;

    endpoint->pending = pending->next;
    if (!endpoint->pending)
        endpoint->last_pending = &endpoint->pending;
    return pending;
}

static void put_first(struct endpoint *endpoint, struct pending *pending)
{
    pending->next = endpoint->pending;
    if (!endpoint->pending)
        endpoint->last_pending = &pending->next;
    endpoint->pending = pending;
}

/* A message is not in the queue while it is sent: if the last rail fails with it, endpoint_fail()
 * empties the queue. */
static int flush(struct endpoint *endpoint)
{
    int count = 0;

    flushing = endpoint;
    while (endpoint->pending) {
        struct pending *pending = take_first(endpoint);

        if (!try_pending(endpoint, pending)) {
            if (endpoint->failed)
                pending_fail(pending);
            else
                put_first(endpoint, pending);
            break;
        }
        pending_free(pending);
        count++;
    }
    flushing = NULL;
    return count;
}

int endpoints_flush(void)
{
    struct endpoint *endpoint = busy, *next;
    int count = 0;

    busy = NULL;
    last_busy = &busy;
    for (; endpoint; endpoint = next) {
        next = endpoint->next_busy;
        endpoint->busy = false;
        count += flush(endpoint);
        if (endpoint->pending)
            append_busy(endpoint);
    }
    return count;
}

/* ---- failure ---- */

/* Processes of other jobs may end after MPI_Comm_disconnect(), which nobody tells. */
static bool in_own_job(const struct endpoint *endpoint)
{
    return endpoint->name.jobid == OMPI_PROC_MY_NAME->jobid;
}

static void fail_receive(struct match_receive *receive, void *failed)
{
    struct mtl_request *request = container_of(receive, struct mtl_request, receive);
    const struct endpoint *endpoint = failed;
    const opal_process_name_t *source = request->source;

    if (source ? source->jobid != endpoint->name.jobid || source->vpid != endpoint->name.vpid
               : !in_own_job(endpoint))
        return;
    match_withdraw(&mtl.matching, receive);
    request_done(request, mtl_unreachable());
}

void endpoint_fail(struct endpoint *endpoint)
{
    if (endpoint->failed)
        return;
    endpoint->failed = true;
    mtl_log("process %u cannot be reached any more: MPI calls that involve it fail",
            endpoint->name.vpid);
    for (struct pending *pending = endpoint->pending, *next; pending; pending = next) {
        next = pending->next;
        pending_fail(pending);
    }
    endpoint->pending = NULL;
    endpoint->last_pending = &endpoint->pending;
    rendezvous_fail(endpoint);
    pieces_fail(endpoint);
    match_each_receive(&mtl.matching, fail_receive, endpoint);
}

void endpoints_check_alive(void)
{
    static uint64_t next;
    uint64_t now = coarse_now_ns();

    if (!liveness_matters() || now < next || ompi_mpi_state >= OMPI_MPI_STATE_FINALIZE_STARTED)
        return;
    next = now + CHECK_NS;
    for (int i = 0; i < BUCKETS; i++) {
        for (struct endpoint *endpoint = table[i]; endpoint; endpoint = endpoint->next) {
            if (!endpoint->failed && in_own_job(endpoint) && liveness_ended(&endpoint->process))
                endpoint_fail(endpoint);
        }
    }
}
