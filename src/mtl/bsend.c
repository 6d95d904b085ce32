/* SPDX-License-Identifier: BSD-2-Clause */
/* pml/cm of Open MPI 4.1 cannot start a persistent buffered send twice. The second start packs the
 * message out of the buffer of the first one, which has been freed; or, if the first one is still
 * in progress, it sends as many elements as the message has bytes. MPI_Bsend_init therefore creates
 * requests of our own, and each start of them is an MPI_Ibsend. */
#include "mtl/bsend.h"

#include <ompi_config.h>

#include <ompi/communicator/communicator.h>
#include <ompi/datatype/ompi_datatype.h>
#include <ompi/mca/pml/pml.h>
#include <ompi/request/request.h>

typedef struct {
    ompi_request_t super;
    const void *buffer;
    size_t count;
    ompi_datatype_t *datatype;
    int dest, tag;
    struct ompi_communicator_t *comm;
} bsend_request;

static OBJ_CLASS_INSTANCE(bsend_request, ompi_request_t, NULL, NULL);

static mca_pml_base_module_isend_init_fn_t pml_isend_init;

static int send_copy(const bsend_request *request)
{
    ompi_request_t *sent;
    int status =
        mca_pml.pml_isend(request->buffer, request->count, request->datatype, request->dest,
                          request->tag, MCA_PML_BASE_SEND_BUFFERED, request->comm, &sent);

    return status == OMPI_SUCCESS ? ompi_request_free(&sent) : status;
}

/* MPI_Wait reports errors: MPI_Startall ignores them, and MPI_Start calls no error handler. */
static int start(size_t count, ompi_request_t **requests)
{
    for (size_t i = 0; i < count; i++) {
        requests[i]->req_status.MPI_ERROR = send_copy((bsend_request *)requests[i]);
        requests[i]->req_state = OMPI_REQUEST_ACTIVE;
    }
    return OMPI_SUCCESS;
}

static int release(ompi_request_t **freed)
{
    bsend_request *request = (bsend_request *)*freed;

    OMPI_REQUEST_FINI(&request->super);
    OBJ_RELEASE(request->comm);
    OMPI_DATATYPE_RELEASE(request->datatype);
    OBJ_RELEASE(request);
    *freed = MPI_REQUEST_NULL;
    return OMPI_SUCCESS;
}

static int isend_init(const void *buffer, size_t count, ompi_datatype_t *datatype, int dest,
                      int tag, mca_pml_base_send_mode_t mode, struct ompi_communicator_t *comm,
                      ompi_request_t **made)
{
    bsend_request *request;

    if (mode != MCA_PML_BASE_SEND_BUFFERED)
        return pml_isend_init(buffer, count, datatype, dest, tag, mode, comm, made);
    request = OBJ_NEW(bsend_request);
    if (!request)
        return OMPI_ERR_OUT_OF_RESOURCE;
    OMPI_REQUEST_INIT(&request->super, true);
    request->super.req_type = OMPI_REQUEST_PML;
    request->super.req_status = ompi_request_empty.req_status;
    request->super.req_start = start;
    request->super.req_free = release;
    request->super.req_mpi_object.comm = comm;
    OBJ_RETAIN(comm);
    OMPI_DATATYPE_RETAIN(datatype);
    request->buffer = buffer;
    request->count = count;
    request->datatype = datatype;
    request->dest = dest;
    request->tag = tag;
    request->comm = comm;
    *made = &request->super;
    return OMPI_SUCCESS;
}

void bsend_install(void)
{
    if (pml_isend_init)
        return;
    pml_isend_init = mca_pml.pml_isend_init;
    mca_pml.pml_isend_init = isend_init;
}

void bsend_remove(void)
{
    if (!pml_isend_init)
        return;
    mca_pml.pml_isend_init = pml_isend_init;
    pml_isend_init = NULL;
}
