/* SPDX-License-Identifier: BSD-2-Clause */
#include "mtl/request.h"

#include "mtl/record.h"

#include <ompi/request/request.h>

void request_of_send(struct mtl_request *request, struct opal_convertor_t *convertor)
{
    bool prepared = convertor->flags & CONVERTOR_SEND;

    request->convertor = convertor;
    request->sending = true;
    if (!prepared) {
        /* The PML's fast path for contiguous data, where pBaseBuf already includes the offset. */
        request->buffer = (char *)convertor->pBaseBuf;
        request->size = convertor->local_size;
        return;
    }
    opal_convertor_get_packed_size(convertor, &request->size);
    request->buffer = NULL;
    if (!opal_convertor_need_buffers(convertor))
        request->buffer = (char *)convertor->pBaseBuf + convertor->pDesc->true_lb;
}

void request_of_receive(struct mtl_request *request, struct opal_convertor_t *convertor)
{
    request->convertor = convertor;
    request->sending = false;
    opal_convertor_get_packed_size(convertor, &request->size);
    request->buffer = NULL;
    if (request->size && !opal_convertor_need_buffers(convertor))
        request->buffer = (char *)convertor->pBaseBuf + convertor->pDesc->true_lb;
}

void request_pack(struct mtl_request *request, void *to)
{
    struct iovec iov = { .iov_base = to, .iov_len = request->size };
    uint32_t count = 1;
    size_t length = request->size;

    mtl_charge_copy(request->size);
    if (request->buffer)
        memcpy(to, request->buffer, request->size);
    else if (request->size)
        opal_convertor_pack(request->convertor, &iov, &count, &length);
}

void request_unpack(struct mtl_request *request, uint64_t offset, const void *from, uint64_t length)
{
    struct iovec iov = { .iov_base = (void *)from };
    uint32_t count = 1;
    size_t done;

    if (offset >= request->size)
        return;
    if (length > request->size - offset)
        length = request->size - offset;
    mtl_charge_copy(length);
    if (request->buffer) {
        memcpy(request->buffer + offset, from, length);
    } else if (length) {
        iov.iov_len = done = length;
        opal_convertor_unpack(request->convertor, &iov, &count, &done);
    }
}

void request_matched(struct mtl_request *request, const struct match_key *key, uint64_t size)
{
    ompi_status_public_t *status = &request->super.ompi_req->req_status;

    mtl_charge(mtl.costs.receive);
    status->MPI_SOURCE = key->source;
    status->MPI_TAG = key->tag;
    status->MPI_ERROR = size > request->size ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
    status->_ucount = size > request->size ? request->size : size;
}

void request_done(struct mtl_request *request, int error)
{
    request->error = error;
    if (unlikely(recording))
        record_done(request);
    /* A receive may have MPI_ERR_TRUNCATE already; the status of a send is set only here. */
    if (request->super.ompi_req && (request->sending || error != MPI_SUCCESS))
        request->super.ompi_req->req_status.MPI_ERROR = error;
    request->next = NULL;
    if (mtl.done)
        mtl.last_done->next = request;
    else
        mtl.done = request;
    mtl.last_done = request;
}
