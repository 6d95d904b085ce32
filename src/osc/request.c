/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests of MPI_Rput() and MPI_Rget(). */
#include "osc/osc.h"

typedef struct osc_request osc_request_t;
OBJ_CLASS_DECLARATION(osc_request_t);

static int request_free(struct ompi_request_t **request)
{
    struct osc_request *own = (struct osc_request *)*request;

    if (!REQUEST_COMPLETE(*request))
        return MPI_ERR_REQUEST;
    OMPI_REQUEST_FINI(&own->super);
    OBJ_RELEASE(own);
    *request = MPI_REQUEST_NULL;
    return OMPI_SUCCESS;
}

static int request_cancel(struct ompi_request_t *request, int flag)
{
    return MPI_ERR_REQUEST;
}

static void construct(osc_request_t *request)
{
    request->super.req_type = OMPI_REQUEST_WIN;
    request->super.req_status._cancelled = 0;
    request->super.req_free = request_free;
    request->super.req_cancel = request_cancel;
}

OBJ_CLASS_INSTANCE(osc_request_t, ompi_request_t, construct, NULL);

struct osc_request *osc_request_new(struct ompi_win_t *win)
{
    struct osc_request *request = OBJ_NEW(osc_request_t);

    if (!request)
        return NULL;
    OMPI_REQUEST_INIT(&request->super, false);
    request->super.req_mpi_object.win = win;
    request->super.req_state = OMPI_REQUEST_ACTIVE;
    request->super.req_status.MPI_ERROR = MPI_SUCCESS;
    return request;
}

void osc_request_complete(struct osc_request *request, int error)
{
    request->super.req_status.MPI_ERROR = error;
    ompi_request_complete(&request->super, true);
}
