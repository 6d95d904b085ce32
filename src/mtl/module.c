/* The functions of the MTL interface. */
#include "mtl/bsend.h"
#include "mtl/connection.h"
#include "mtl/log.h"
#include "mtl/protocol.h"
#include "mtl/rendezvous.h"
#include "mtl/shared.h"

#include <ompi/communicator/communicator.h>
#include <ompi/message/message.h>
#include <ompi/runtime/mpiruntime.h>
#include <opal/runtime/opal_progress.h>

#include <sched.h>

#define PROBE_LOOKS 1024 /* between two looks at the clock while nothing happens */
/* Virtual time: looks in vain before resting. What else Open MPI calls when it looks, such as the
 * steps of a collective, may go on without a message; some of it is called every eighth time only.
 */
#define RESTLESS_LOOKS 16
#define QUIET_LOOKS    32 /* between two looks for greetings while there are no connections */

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
    request->receive.key = (struct match_key){ comm->c_contextid, comm->c_my_rank, tag };
    request->synchronous = mode == MCA_PML_BASE_SEND_SYNCHRONOUS;
    request->class = class_of(request, tag, blocking);
    protocol_send(request);
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
    return send.request.error == MPI_SUCCESS ? OMPI_SUCCESS : OMPI_ERR_UNREACH;
}

static int module_isend(mca_mtl_base_module_t *module, struct ompi_communicator_t *comm, int dest,
                        int tag, struct opal_convertor_t *convertor, mca_pml_base_send_mode_t mode,
                        bool blocking, mca_mtl_request_t *request)
{
    return begin_send((struct mtl_request *)request, comm, dest, tag, convertor, mode, blocking);
}

/* ---- looking ---- */

static int look_at_memory(void)
{
    int count = inbox_look();

    if (connections)
        count += rails_look();
    if (protocol_is_greeting())
        connections_greet_again();
    return count + endpoints_flush() + rendezvous_go_on();
}

/* Greetings from processes that are not known yet can wait. */
static int look_everywhere(void)
{
    static uint32_t quiet;
    int count = look_at_memory();

    quiet += !count;
    if (connections || (!count && quiet % QUIET_LOOKS == 0))
        count += rails_poll();
    if (!count && connections && quiet % PROBE_LOOKS == 0)
        rails_probe();
    return count;
}

/* ---- receives ---- */

/* A receive from one process fails with it; one from anybody belongs to no endpoint. */
static struct endpoint *source_of(struct ompi_communicator_t *comm, int source)
{
    struct ompi_proc_t *proc;

    if (source == MPI_ANY_SOURCE)
        return NULL;
    proc = ompi_comm_peer_lookup(comm, source);
    return proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_MTL];
}

static struct match_key key_of(struct ompi_communicator_t *comm, int source, int tag)
{
    return (struct match_key){ comm->c_contextid, source == MPI_ANY_SOURCE ? MATCH_ANY : source,
                               tag == MPI_ANY_TAG ? MATCH_ANY : tag };
}

static int module_irecv(mca_mtl_base_module_t *module, struct ompi_communicator_t *comm, int source,
                        int tag, struct opal_convertor_t *convertor, mca_mtl_request_t *mtl_request)
{
    struct mtl_request *request = (struct mtl_request *)mtl_request;

    mtl_enter();
    request_of_receive(request, convertor);
    request->endpoint = source_of(comm, source);
    request->receive.key = key_of(comm, source, tag);
    request->receive.link.queue = NULL;
    protocol_receive(request);
    mtl_leave();
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
    protocol_receive_matched(request, found);
    mtl_leave();
    ompi_message_return(*message);
    *message = MPI_MESSAGE_NULL;
    return OMPI_SUCCESS;
}

/* MPI_ERROR is the caller's: MPI sets it only where there are several statuses. */
static void fill_status(struct ompi_status_public_t *status, const struct unexpected *message)
{
    if (status == MPI_STATUS_IGNORE)
        return;
    status->MPI_SOURCE = message->match.key.source;
    status->MPI_TAG = message->match.key.tag;
    status->_ucount = message->size;
    status->_cancelled = 0;
}

/* Looks, and if there is nothing, looks again after whatever has come meanwhile was taken in. */
static struct unexpected *probe(struct ompi_communicator_t *comm, int source, int tag, bool take)
{
    struct match_key key = key_of(comm, source, tag);
    struct match_message *found;

    mtl_enter();
    found = match_find(&mtl.matching, &key);
    if (!found && mtl.threads && !vtime.on) {
        /* Threads that only probe may keep each other from looking. */
        look_everywhere();
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
        fill_status(status, found);
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
    fill_status(status, found);
    *message = ompi_message_alloc();
    if (!*message)
        return OMPI_ERR_OUT_OF_RESOURCE;
    (*message)->comm = comm;
    (*message)->req_ptr = found;
    (*message)->peer = found->match.key.source;
    (*message)->count = found->size;
    return OMPI_SUCCESS;
}

/* A receive that has not matched can be taken back. A send is on its way. */
static int module_cancel(mca_mtl_base_module_t *module, mca_mtl_request_t *mtl_request, int flag)
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

/* ---- the rest ---- */

/* Looking at completions takes time, and is not done twice in vain: only after something has
 * happened. When there is nothing, time goes on to whatever comes next; not with the lock held, for
 * which others may be waiting. */
static int progress_in_virtual_time(void)
{
    static __thread bool changed = true;
    static __thread uint32_t looked_after, quiet;
    uint64_t until = UINT64_MAX;
    uint32_t changes;
    bool rests = false;
    int count;

    if (!mtl.joined && ompi_mpi_state < OMPI_MPI_STATE_INIT_COMPLETED)
        return 0;
    mtl_enter();
    changes = vtime.changes();
    count = look_at_memory();
    if (!count && changed) {
        changed = false;
        looked_after = changes;
        count = rails_poll();
    } else if (!count && ++quiet > RESTLESS_LOOKS) {
        rests = true;
        until = connections_next_greeting();
    }
    changed |= count > 0;
    mtl_leave();
    if (count || rests)
        quiet = 0;
    if (rests && vtime.spin(looked_after, until))
        changed = true;
    return count;
}

/* Who has something to do goes before those who only look: they would take the lock again as soon
 * as they have given it back, before anybody who waits for it gets a processor. */
static bool may_look(void)
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
    if (!may_look())
        return 0;
    count = look_everywhere();
    mtl_leave();
    return count;
}

/* Processes are connected when they are first used. */
static int module_add_procs(mca_mtl_base_module_t *module, size_t count, struct ompi_proc_t **procs)
{
    endpoints_part_nodes(count, procs);
    return OMPI_SUCCESS;
}

static int module_del_procs(mca_mtl_base_module_t *module, size_t count, struct ompi_proc_t **procs)
{
    for (size_t i = 0; i < count; i++)
        procs[i]->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_MTL] = NULL;
    return OMPI_SUCCESS;
}

/* When there is a communicator, the PML has been selected. */
static int module_add_comm(mca_mtl_base_module_t *module, struct ompi_communicator_t *comm)
{
    bsend_take_over();
    return OMPI_SUCCESS;
}

static int module_del_comm(mca_mtl_base_module_t *module, struct ompi_communicator_t *comm)
{
    return OMPI_SUCCESS;
}

static int module_finalize(mca_mtl_base_module_t *module)
{
    bsend_give_back();
    opal_progress_unregister(module_progress);
    if (mtl.parameters.report)
        counters_report();
    endpoints_free();
    rendezvous_free();
    registrations_free();
    inbox_close();
    greeter_close();
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
