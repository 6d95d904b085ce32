/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions of the MTL interface. */
#include "mtl/bsend.h"
#include "mtl/connection.h"
#include "mtl/direct.h"
#include "mtl/log.h"
#include "mtl/openmpi.h"
#include "mtl/progress.h"
#include "mtl/protocol.h"
#include "mtl/rendezvous.h"
#include "mtl/rma.h"
#include "mtl/shared.h"

#include <ompi/message/message.h>
#include <ompi/runtime/mpiruntime.h>
#include <opal/runtime/opal_progress.h>

#include <sched.h>

#define PROBE_INTERVAL 1024 /* idle polls between two calls of rails_probe() */
/* Idle polls before a thread sleeps in virtual time. Other progress functions of Open MPI, such as
 * the steps of a collective, may proceed without a message, and some are called only every eighth
 * time. */
#define POLLS_BEFORE_SLEEP   16
#define STACK_NEAR           4096 /* bytes from a frame of ours to one of Open MPI's */
#define WIREUP_POLL_INTERVAL 32 /* idle polls between two polls of the CQ without connections */
#define SENDS_POLL_INTERVAL  4  /* polls between two polls of a CQ of which no message is expected */

static enum rails_class class_of(const struct mtl_request *request, int tag, bool blocking)
{
    if (tag < 0)
        return RAILS_COLLECTIVE;
    if (blocking)
        return RAILS_BLOCKING;
    return request->super.ompi_req->req_persistent ? RAILS_PERSISTENT : RAILS_NONBLOCKING;
}

static int begin_send(struct mtl_request *request, struct ompi_communicator_t *comm, int dest,
                      int tag, struct opal_convertor_t *convertor, mca_pml_base_send_mode_t mode,
                      bool blocking)
{
    struct ompi_proc_t *proc = ompi_comm_peer_lookup(comm, dest);

    mtl_enter();
    request->endpoint = endpoint_of_proc(proc);
    if (!request->endpoint) {
        mtl_leave();
        return OMPI_ERR_UNREACH;
    }
    request_of_send(request, convertor);
    request->receive.key = (struct match_key){ openmpi_context(comm), comm->c_my_rank, tag };
    request->synchronous = mode == MCA_PML_BASE_SEND_SYNCHRONOUS;
    request->class = class_of(request, tag, blocking);
    request->blocking = blocking;
    request->record = 0;
    protocol_send(request);
    if (unlikely(request->id && !blocking))
        progress_arm();
    mtl_leave();
    return OMPI_SUCCESS;
}

/* ---- blocking sends ---- */

struct blocking_send {
    struct mtl_request request;
    volatile bool over;
};

static void blocking_over(mca_mtl_request_t *request)
{
    struct blocking_send *send = (struct blocking_send *)request;

    __atomic_store_n(&send->over, true, __ATOMIC_RELEASE);
}

static int module_send(mca_mtl_base_module_t *module, struct ompi_communicator_t *comm, int dest,
                       int tag, struct opal_convertor_t *convertor, mca_pml_base_send_mode_t mode)
{
    struct blocking_send send;
    int status;

    send.over = false;
    send.request.super.ompi_req = NULL;
    send.request.super.completion_callback = blocking_over;
    status = begin_send(&send.request, comm, dest, tag, convertor, mode, true);
    if (status != OMPI_SUCCESS)
        return status;
    while (!__atomic_load_n(&send.over, __ATOMIC_ACQUIRE))
        opal_progress();
    return send.request.error;
}

static int module_isend(mca_mtl_base_module_t *module, struct ompi_communicator_t *comm, int dest,
                        int tag, struct opal_convertor_t *convertor, mca_pml_base_send_mode_t mode,
                        bool blocking, mca_mtl_request_t *request)
{
    return begin_send((struct mtl_request *)request, comm, dest, tag, convertor, mode, blocking);
}

/* ---- polling ---- */

static int poll_memory(void)
{
    int count = shared_poll();

    count += rails_poll_slots();
    if (connections_in_wireup())
        connections_retry_wireup();
    return count + endpoints_flush() + rendezvous_progress() + rma_progress();
}

/* Without connections only wireup messages can arrive, which may wait; so may completions of sends. */
static bool cqs_are_due(bool idle, uint32_t polls, uint32_t idle_polls)
{
    if (rma_in_use() || connections_received_from_cqs())
        return true;
    if (connections)
        return polls % SENDS_POLL_INTERVAL == 0;
    return idle && idle_polls % WIREUP_POLL_INTERVAL == 0;
}

static int poll_all(void)
{
    static uint32_t polls, idle;
    int count = poll_memory();

    idle += !count;
    if (cqs_are_due(!count, polls++, idle))
        count += rails_poll_cqs();
    if (!count && idle % PROBE_INTERVAL == 0) {
        endpoints_check_alive();
        if (connections)
            rails_probe();
    }
    return count;
}

int module_poll(void)
{
    return vtime.on ? poll_memory() + rails_poll_cqs() : poll_all();
}

/* ---- receives ---- */

/* A receive from one process fails with it. Before the first message there may be no endpoint; it
 * is needed only in a job that outlives its processes. */
static void set_source(struct mtl_request *request, struct ompi_communicator_t *comm, int source)
{
    struct ompi_proc_t *proc;

    request->endpoint = NULL;
    request->source = NULL;
    if (source == MPI_ANY_SOURCE)
        return;
    proc = ompi_comm_peer_lookup(comm, source);
    request->source = &proc->super.proc_name;
    request->endpoint = liveness_matters() ? endpoint_of_proc(proc)
                                           : proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_MTL];
}

/* Of a source, in the schedule that is recorded. */
static uint32_t world_rank(struct ompi_communicator_t *comm, int source)
{
    return source == MPI_ANY_SOURCE ? UINT32_MAX
                                    : ompi_comm_peer_lookup(comm, source)->super.proc_name.vpid;
}

/* Open MPI keeps the request of MPI_Recv on the stack. */
static bool is_blocking(const struct mtl_request *request)
{
    uintptr_t distance = (uintptr_t)request - (uintptr_t)__builtin_frame_address(0);

    return distance < STACK_NEAR;
}

/* The program will compute before it waits for this receive. If the RTS is here already, the sender
 * can go on meanwhile. Messages with their data stay where they are: most would be unexpected now,
 * because the program has not come to their receives yet. */
static void poll_before_computing(const struct mtl_request *request)
{
    if (vtime.on || request->blocking || !match_is_posted(&request->receive) ||
        request->size <= protocol_longest_eager(request->endpoint))
        return;
    progress_arm();
    poll_all();
}

void module_receive(struct mtl_request *request, struct ompi_communicator_t *comm, int source,
                    int tag)
{
    mtl_enter();
    set_source(request, comm, source);
    request->receive.key = openmpi_key(comm, source, tag);
    request->receive.link.queue = NULL;
    if (unlikely(recording))
        record_operation(request, world_rank(comm, source));
    protocol_receive(request);
    poll_before_computing(request);
    mtl_leave();
}

static int module_irecv(mca_mtl_base_module_t *module, struct ompi_communicator_t *comm, int source,
                        int tag, struct opal_convertor_t *convertor, mca_mtl_request_t *mtl_request)
{
    struct mtl_request *request = (struct mtl_request *)mtl_request;

    request_of_receive(request, convertor);
    request->blocking = is_blocking(request);
    module_receive(request, comm, source, tag);
    return OMPI_SUCCESS;
}

static int module_imrecv(mca_mtl_base_module_t *module, struct opal_convertor_t *convertor,
                         struct ompi_message_t **message, mca_mtl_request_t *mtl_request)
{
    struct mtl_request *request = (struct mtl_request *)mtl_request;
    struct unexpected *found = (*message)->req_ptr;

    mtl_enter();
    request_of_receive(request, convertor);
    request->endpoint = found->endpoint;
    request->receive.link.queue = NULL;
    request->receive.key = found->match.key;
    request->blocking = is_blocking(request);
    if (unlikely(recording))
        record_operation(request, found->endpoint->name.vpid);
    protocol_receive_matched(request, found);
    mtl_leave();
    ompi_message_return(*message);
    *message = MPI_MESSAGE_NULL;
    return OMPI_SUCCESS;
}

/* Looks for a matching unexpected message, makes progress if there is none, and looks again. */
static struct unexpected *probe(struct ompi_communicator_t *comm, int source, int tag, bool take)
{
    struct match_key key = openmpi_key(comm, source, tag);
    struct match_message *found;

    mtl_enter();
    found = match_find(&mtl.matching, &key);
    if (!found && mtl.threads && !vtime.on) {
        /* Threads that only probe may keep each other from polling. */
        poll_all();
        found = match_find(&mtl.matching, &key);
    }
    if (!found) {
        mtl_leave();
        opal_progress();
        mtl_enter();
        found = match_find(&mtl.matching, &key);
    }
    if (found && take)
        match_take(&mtl.matching, found);
    mtl_leave();
    return found ? container_of(found, struct unexpected, match) : NULL;
}

static int module_iprobe(mca_mtl_base_module_t *module, struct ompi_communicator_t *comm,
                         int source, int tag, int *flag, struct ompi_status_public_t *status)
{
    struct unexpected *found = probe(comm, source, tag, false);

    *flag = found != NULL;
    if (found)
        protocol_fill_status(status, &found->match.key, found->size);
    return OMPI_SUCCESS;
}

static int module_improbe(mca_mtl_base_module_t *module, struct ompi_communicator_t *comm,
                          int source, int tag, int *flag, struct ompi_message_t **message,
                          struct ompi_status_public_t *status)
{
    struct unexpected *found = probe(comm, source, tag, true);

    *flag = found != NULL;
    if (!found) {
        *message = MPI_MESSAGE_NULL;
        return OMPI_SUCCESS;
    }
    protocol_fill_status(status, &found->match.key, found->size);
    *message = ompi_message_alloc();
    if (!*message)
        return OMPI_ERR_OUT_OF_RESOURCE;
    (*message)->comm = comm;
    (*message)->req_ptr = found;
    (*message)->peer = found->match.key.source;
    (*message)->count = found->size;
    return OMPI_SUCCESS;
}

int module_cancel(mca_mtl_base_module_t *module, mca_mtl_request_t *mtl_request, int flag)
{
    struct mtl_request *request = (struct mtl_request *)mtl_request;

    mtl_enter();
    if (!request->sending && match_is_posted(&request->receive)) {
        match_withdraw(&mtl.matching, &request->receive);
        mtl_request->ompi_req->req_status._cancelled = true;
        request_done(request, MPI_SUCCESS);
    }
    mtl_leave();
    return OMPI_SUCCESS;
}

/* ---- progress, processes and communicators ---- */

/* Nothing can happen any more, perhaps because a process has died. */
static void check_alive_in_virtual_time(void)
{
    mtl_enter();
    endpoints_check_alive();
    mtl_leave();
}

/* Polling a CQ costs modelled time, so an empty CQ is not polled again until something has changed.
 * An idle thread sleeps until the next event, without the lock, which other threads may need. */
static int progress_in_virtual_time(void)
{
    static __thread bool changed = true;
    static __thread uint32_t polled_at, idle;
    uint64_t until = UINT64_MAX;
    uint32_t changes;
    bool sleeps = false;
    int count;

    if (!mtl.joined && ompi_mpi_state < OMPI_MPI_STATE_INIT_COMPLETED)
        return 0;
    mtl_enter();
    changes = vtime.changes();
    mtl.waits = true;
    count = poll_memory();
    if (!count && changed) {
        changed = false;
        polled_at = changes;
        count = rails_poll_cqs();
    } else if (!count && ++idle > POLLS_BEFORE_SLEEP) {
        sleeps = true;
        until = connections_next_wireup();
    }
    changed |= count > 0;
    mtl.waits = false;
    mtl_leave();
    if (count || sleeps)
        idle = 0;
    if (sleeps && progress_wait(polled_at, until))
        changed = true;
    else if (sleeps && liveness_matters())
        check_alive_in_virtual_time();
    if (unlikely(recording))
        record_left();
    return count;
}

/* Threads that wait for the lock go before threads that only poll. Otherwise a polling thread would
 * take the lock again before any waiting thread is scheduled. */
static bool may_poll(void)
{
    if (!mtl.threads)
        return true;
    if (load_relaxed(&mtl.waiting)) {
        sched_yield();
        return false;
    }
    return spin_trylock(&mtl.lock);
}

int module_progress(void)
{
    int count;

    if (vtime.on)
        return progress_in_virtual_time();
    if (unlikely(mtl.parameters.progress_thread))
        progress_polled();
    if (!may_poll())
        return 0;
    mtl.waits = true;
    count = poll_all();
    mtl.waits = false;
    mtl_leave();
    return count;
}

/* Connections come up on first use. */
static int module_add_procs(mca_mtl_base_module_t *module, size_t count, struct ompi_proc_t **procs)
{
    endpoints_mark_remote(count, procs);
    return OMPI_SUCCESS;
}

static int module_del_procs(mca_mtl_base_module_t *module, size_t count, struct ompi_proc_t **procs)
{
    for (size_t i = 0; i < count; i++)
        procs[i]->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_MTL] = NULL;
    return OMPI_SUCCESS;
}

/* By the time of the first communicator the PML has been selected. */
static int module_add_comm(mca_mtl_base_module_t *module, struct ompi_communicator_t *comm)
{
    bsend_install();
    direct_install();
    return OMPI_SUCCESS;
}

static int module_del_comm(mca_mtl_base_module_t *module, struct ompi_communicator_t *comm)
{
    return OMPI_SUCCESS;
}

static int module_finalize(mca_mtl_base_module_t *module)
{
    if (recording)
        record_close();
    progress_stop();
    direct_remove();
    bsend_remove();
    opal_progress_unregister(module_progress);
    if (mtl.parameters.report)
        counters_report();
    rma_free();
    endpoints_free();
    rendezvous_free();
    registrations_free();
    shared_close();
    wireup_close();
    devices_close();
    protocol_free();
    if (vtime.on)
        vtime.leave();
    return OMPI_SUCCESS;
}

const mca_mtl_base_module_t module_functions = {
    .mtl_max_contextid = INT32_MAX,
    .mtl_max_tag = INT32_MAX,
    .mtl_add_procs = module_add_procs,
    .mtl_del_procs = module_del_procs,
    .mtl_finalize = module_finalize,
    .mtl_send = module_send,
    .mtl_isend = module_isend,
    .mtl_irecv = module_irecv,
    .mtl_iprobe = module_iprobe,
    .mtl_imrecv = module_imrecv,
    .mtl_improbe = module_improbe,
    .mtl_cancel = module_cancel,
    .mtl_add_comm = module_add_comm,
    .mtl_del_comm = module_del_comm,
};
