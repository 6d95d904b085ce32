/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages of contiguous data bypass pml/cm, whose requests have convertors and take longer to
 * prepare than a short message to arrive. A short message that can be sent at once needs no request:
 * MPI_Isend returns Open MPI's empty one, whose status tells all that the status of a send can tell.
 * Nor does MPI_Recv, if a short message is here already or comes soon. Other receives have small
 * requests of their own. Everything else takes the way through the PML, and so do all messages in
 * virtual time, where that has a price, and those that are recorded. */
#include "mtl/direct.h"

#include "mtl/openmpi.h"
#include "mtl/protocol.h"

#include <ompi/datatype/ompi_datatype.h>
#include <ompi/mca/pml/pml.h>
#include <ompi/request/request.h>
#include <opal/runtime/opal_progress.h>

#define RECEIVES_AT_ONCE 64 /* allocated */
#define POLLS_OF_OTHERS  16 /* our polls for one of all progress functions of Open MPI */
#define AWAITED_POLLS    512 /* before a receive takes a request */

static mca_pml_base_module_isend_fn_t pml_isend;
static mca_pml_base_module_send_fn_t pml_send;
static mca_pml_base_module_recv_fn_t pml_recv;
static mca_pml_base_module_irecv_fn_t pml_irecv;

static bool is_direct(const ompi_datatype_t *datatype, size_t count)
{
    return !vtime.on && likely(!recording) &&
           opal_datatype_is_contiguous_memory_layout(&datatype->super, count);
}

/* ---- sends ---- */

static bool send_now(const void *buffer, size_t count, const ompi_datatype_t *datatype, int dest,
                     int tag, mca_pml_base_send_mode_t mode, struct ompi_communicator_t *comm,
                     enum rails_class class)
{
    struct match_key key = { openmpi_context(comm), comm->c_my_rank, tag };
    struct endpoint *endpoint;
    bool sent;

    if ((mode != MCA_PML_BASE_SEND_STANDARD && mode != MCA_PML_BASE_SEND_READY) ||
        !is_direct(datatype, count))
        return false;
    mtl_enter();
    endpoint = endpoint_of_proc(ompi_comm_peer_lookup(comm, dest));
    sent = endpoint &&
           protocol_send_now(endpoint, &key, (const char *)buffer + datatype->super.true_lb,
                             count * datatype->super.size, tag < 0 ? RAILS_COLLECTIVE : class);
    mtl_leave();
    return sent;
}

static int direct_isend(const void *buffer, size_t count, ompi_datatype_t *datatype, int dest,
                        int tag, mca_pml_base_send_mode_t mode, struct ompi_communicator_t *comm,
                        ompi_request_t **request)
{
    if (!send_now(buffer, count, datatype, dest, tag, mode, comm, RAILS_NONBLOCKING))
        return pml_isend(buffer, count, datatype, dest, tag, mode, comm, request);
    *request = &ompi_request_empty;
    return OMPI_SUCCESS;
}

static int direct_send(const void *buffer, size_t count, ompi_datatype_t *datatype, int dest,
                       int tag, mca_pml_base_send_mode_t mode, struct ompi_communicator_t *comm)
{
    if (send_now(buffer, count, datatype, dest, tag, mode, comm, RAILS_BLOCKING))
        return OMPI_SUCCESS;
    return pml_send(buffer, count, datatype, dest, tag, mode, comm);
}

/* ---- receives ---- */

typedef struct {
    ompi_request_t super;
    struct mtl_request request;
    atomic_bool left; /* by the program, or by this component: the other one gives it back */
} direct_receive;

static opal_free_list_t receives;

static void leave(direct_receive *receive)
{
    bool last = load_relaxed(&receive->left);

    if (mtl.multiple)
        last = atomic_exchange(&receive->left, true);
    else
        store_relaxed(&receive->left, true);
    if (!last)
        return;
    OBJ_RELEASE(receive->super.req_mpi_object.comm);
    OMPI_REQUEST_FINI(&receive->super);
    opal_free_list_return(&receives, &receive->super.super);
}

static void receive_over(mca_mtl_request_t *request)
{
    direct_receive *receive = container_of(request, direct_receive, request.super);

    ompi_request_complete(&receive->super, true);
    leave(receive);
}

static int receive_free(ompi_request_t **request)
{
    leave((direct_receive *)*request);
    *request = MPI_REQUEST_NULL;
    return OMPI_SUCCESS;
}

static int receive_cancel(ompi_request_t *request, int flag)
{
    return module_cancel(NULL, &((direct_receive *)request)->request.super, flag);
}

static void receive_construct(direct_receive *receive)
{
    receive->super.req_type = OMPI_REQUEST_PML;
    receive->super.req_free = receive_free;
    receive->super.req_cancel = receive_cancel;
    receive->request.super.ompi_req = &receive->super;
    receive->request.super.completion_callback = receive_over;
    receive->request.convertor = NULL;
    receive->request.sending = false;
}

static OBJ_CLASS_INSTANCE(direct_receive, ompi_request_t, receive_construct, NULL);

/* Returns NULL if the PML has to receive. */
static direct_receive *receive_start(void *buffer, size_t count, const ompi_datatype_t *datatype,
                                     int source, int tag, struct ompi_communicator_t *comm,
                                     bool blocking)
{
    direct_receive *receive;

    if (!is_direct(datatype, count))
        return NULL;
    receive = (direct_receive *)opal_free_list_get(&receives);
    if (!receive)
        return NULL;
    OMPI_REQUEST_INIT(&receive->super, false);
    receive->super.req_state = OMPI_REQUEST_ACTIVE;
    receive->super.req_status.MPI_TAG = MPI_ANY_TAG;
    receive->super.req_status.MPI_ERROR = MPI_SUCCESS;
    receive->super.req_status._cancelled = 0;
    receive->super.req_mpi_object.comm = comm;
    OBJ_RETAIN(comm);
    store_relaxed(&receive->left, false);
    receive->request.size = count * datatype->super.size;
    receive->request.buffer = (char *)buffer + datatype->super.true_lb;
    receive->request.blocking = blocking;
    module_receive(&receive->request, comm, source, tag);
    return receive;
}

static bool receive_now(void *buffer, size_t count, const ompi_datatype_t *datatype, int source,
                        int tag, struct ompi_communicator_t *comm, ompi_status_public_t *status)
{
    struct match_key key = openmpi_key(comm, source, tag);
    bool received;

    if (!mtl.matching.unexpected || !is_direct(datatype, count))
        return false;
    mtl_enter();
    received = protocol_receive_now(&key, (char *)buffer + datatype->super.true_lb,
                                    count * datatype->super.size, status);
    mtl_leave();
    return received;
}

/* A call of opal_progress() takes half as long again as our part of it. */
static void poll_once(uint32_t polls)
{
    if (polls % POLLS_OF_OTHERS)
        module_progress();
    else
        opal_progress();
}

static void wait_for(const direct_receive *receive)
{
    if (mtl.multiple || opal_progress_yield_when_idle)
        return;
    for (uint32_t polls = 1; !REQUEST_COMPLETE(&receive->super); polls++)
        poll_once(polls);
}

/* Receives a message that comes soon without a request. Only a request learns that the sender is dead,
 * so one takes over after some polls. */
static bool receive_soon(void *buffer, size_t count, const ompi_datatype_t *datatype, int source,
                         int tag, struct ompi_communicator_t *comm, ompi_status_public_t *status)
{
    struct awaited receive = { .key = openmpi_key(comm, source, tag),
                               .buffer = (char *)buffer + datatype->super.true_lb,
                               .size = count * datatype->super.size,
                               .status = status };

    if (mtl.threads || opal_progress_yield_when_idle || !is_direct(datatype, count) ||
        !protocol_await(&receive))
        return false;
    for (uint32_t polls = 1; polls < AWAITED_POLLS && protocol_awaits(&receive); polls++)
        poll_once(polls);
    protocol_await_end();
    return receive.over;
}

static int direct_recv(void *buffer, size_t count, ompi_datatype_t *datatype, int source, int tag,
                       struct ompi_communicator_t *comm, ompi_status_public_t *status)
{
    direct_receive *receive;
    int error;

    if (receive_now(buffer, count, datatype, source, tag, comm, status) ||
        receive_soon(buffer, count, datatype, source, tag, comm, status))
        return OMPI_SUCCESS;
    receive = receive_start(buffer, count, datatype, source, tag, comm, true);
    if (!receive)
        return pml_recv(buffer, count, datatype, source, tag, comm, status);
    wait_for(receive);
    ompi_request_wait_completion(&receive->super);
    if (status != MPI_STATUS_IGNORE)
        OMPI_COPY_STATUS(status, receive->super.req_status, false);
    error = receive->super.req_status.MPI_ERROR;
    leave(receive);
    return error;
}

static int direct_irecv(void *buffer, size_t count, ompi_datatype_t *datatype, int source, int tag,
                        struct ompi_communicator_t *comm, ompi_request_t **request)
{
    direct_receive *receive = receive_start(buffer, count, datatype, source, tag, comm, false);

    if (!receive)
        return pml_irecv(buffer, count, datatype, source, tag, comm, request);
    *request = &receive->super;
    return OMPI_SUCCESS;
}

/* ---- between the PML and its callers ---- */

void direct_install(void)
{
    if (pml_isend)
        return;
    OBJ_CONSTRUCT(&receives, opal_free_list_t);
    opal_free_list_init(&receives, sizeof(direct_receive), CACHE_LINE, OBJ_CLASS(direct_receive), 0, 0,
                        0, -1, RECEIVES_AT_ONCE, NULL, 0, NULL, NULL, NULL);
    pml_isend = mca_pml.pml_isend;
    pml_send = mca_pml.pml_send;
    pml_recv = mca_pml.pml_recv;
    pml_irecv = mca_pml.pml_irecv;
    mca_pml.pml_isend = direct_isend;
    mca_pml.pml_send = direct_send;
    mca_pml.pml_recv = direct_recv;
    mca_pml.pml_irecv = direct_irecv;
}

void direct_remove(void)
{
    if (!pml_isend)
        return;
    mca_pml.pml_isend = pml_isend;
    mca_pml.pml_send = pml_send;
    mca_pml.pml_recv = pml_recv;
    mca_pml.pml_irecv = pml_irecv;
    pml_isend = NULL;
    OBJ_DESTRUCT(&receives);
}
