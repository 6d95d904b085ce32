#ifndef TRANSPORT_STATUS_H
#define TRANSPORT_STATUS_H

/* How a request ended at the requester, and what a responder's operation says of one. */
enum transport_status {
    TRANSPORT_SUCCESS,
    TRANSPORT_NOT_READY,         /* responder: no receive; the requester is asked to wait */
    TRANSPORT_INVALID_REQUEST,   /* refused by the responder */
    TRANSPORT_ACCESS_ERROR,      /* refused by the responder: key, range or permission */
    TRANSPORT_OPERATIONAL_ERROR, /* the responder failed */
    TRANSPORT_LOCAL_LENGTH,      /* longer than the service allows */
    TRANSPORT_LOCAL_PROTECTION,  /* an answer could not be placed */
    TRANSPORT_BAD_RESPONSE,
    TRANSPORT_RETRY_EXCEEDED,
    TRANSPORT_RNR_RETRY_EXCEEDED,
    TRANSPORT_FLUSHED,
};

const char *transport_status_name(enum transport_status status);

#endif
