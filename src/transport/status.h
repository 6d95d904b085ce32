/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TRANSPORT_STATUS_H
#define TRANSPORT_STATUS_H

/* How a work request completed, or what a responder's operation returned. */
enum transport_status {
    TRANSPORT_SUCCESS,
    TRANSPORT_NOT_READY,         /* responder: no receive is posted (RNR) */
    TRANSPORT_INVALID_REQUEST,   /* refused by the responder */
    TRANSPORT_ACCESS_ERROR,      /* refused by the responder: key, range or permission */
    TRANSPORT_OPERATIONAL_ERROR, /* the responder failed */
    TRANSPORT_LOCAL_LENGTH,      /* longer than the service allows */
    TRANSPORT_LOCAL_PROTECTION,  /* a response could not be written */
    TRANSPORT_BAD_RESPONSE,
    TRANSPORT_RETRY_EXCEEDED,
    TRANSPORT_RNR_RETRY_EXCEEDED,
    TRANSPORT_FLUSHED,
};

#endif
