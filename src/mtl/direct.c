/* SPDX-License-Identifier: BSD-2-Clause */
/* A short message that can be sent at once needs no request and no convertor of pml/cm: MPI_Isend
 * returns Open MPI's empty request, whose status tells all that the status of a send can tell. Nor
 * does MPI_Recv, if a short message is here already. Everything else takes the way through the PML,
 * and so do all messages in virtual time, where that has a price, and those that are recorded. */
#include "mtl/direct.h"

#include "mtl/openmpi.h"
#include "mtl/protocol.h"

#include <ompi/datatype/ompi_datatype.h>
#include <ompi/mca/pml/pml.h>
#include <ompi/request/request.h>

static mca_pml_base_module_isend_fn_t pml_isend;
static mca_pml_base_module_send_fn_t pml_send;
static mca_pml_base_module_recv_fn_t pml_recv;

static bool send_now(const void *buffer, size_t count, const ompi_datatype_t *datatype, int dest,
                     int tag, mca_pml_base_send_mode_t mode, struct ompi_communicator_t *comm,
                     enum rails_class class)
{
    struct endpoint *endpoint;
    bool sent;

    if ((mode != MCA_PML_BASE_SEND_STANDARD && mode != MCA_PML_BASE_SEND_READY) || vtime.on ||
        unlikely(recording) ||
        !opal_datatype_is_contiguous_memory_layout(&datatype->super, count))
        return false;
    mtl_enter();
    endpoint = endpoint_of_proc(ompi_comm_peer_lookup(comm, dest));
    sent = endpoint && protocol_send_now(endpoint,
                                         &(struct match_key){ openmpi_context(comm),
                                                              comm->c_my_rank, tag },
                                         (const char *)buffer + datatype->super.true_lb,
                                         count * datatype->super.size,
                                         tag < 0 ? RAILS_COLLECTIVE : class);
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

static bool receive_now(void *buffer, size_t count, const ompi_datatype_t *datatype, int source,
                        int tag, struct ompi_communicator_t *comm, ompi_status_public_t *status)
{
    struct match_key key = openmpi_key(comm, source, tag);
    bool received;

    if (!mtl.matching.unexpected || vtime.on || unlikely(recording) ||
        !opal_datatype_is_contiguous_memory_layout(&datatype->super, count))
        return false;
    mtl_enter();
    received = protocol_receive_now(&key, (char *)buffer + datatype->super.true_lb,
                                    count * datatype->super.size, status);
    mtl_leave();
    return received;
}

static int direct_recv(void *buffer, size_t count, ompi_datatype_t *datatype, int source, int tag,
                       struct ompi_communicator_t *comm, ompi_status_public_t *status)
{
    if (receive_now(buffer, count, datatype, source, tag, comm, status))
        return OMPI_SUCCESS;
    return pml_recv(buffer, count, datatype, source, tag, comm, status);
}

void direct_install(void)
{
    if (pml_isend)
        return;
    pml_isend = mca_pml.pml_isend;
    pml_send = mca_pml.pml_send;
    pml_recv = mca_pml.pml_recv;
    mca_pml.pml_isend = direct_isend;
    mca_pml.pml_send = direct_send;
    mca_pml.pml_recv = direct_recv;
}

void direct_remove(void)
{
    if (!pml_isend)
        return;
    mca_pml.pml_isend = pml_isend;
    mca_pml.pml_send = pml_send;
    mca_pml.pml_recv = pml_recv;
    pml_isend = NULL;
}
