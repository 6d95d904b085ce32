#include "transport/status.h"

#include "util/util.h"

const char *transport_status_name(enum transport_status status)
{
    static const char *const names[] = {
        [TRANSPORT_SUCCESS] = "success",
        [TRANSPORT_NOT_READY] = "receiver not ready",
        [TRANSPORT_INVALID_REQUEST] = "invalid request",
        [TRANSPORT_ACCESS_ERROR] = "remote access error",
        [TRANSPORT_OPERATIONAL_ERROR] = "remote operational error",
        [TRANSPORT_LOCAL_LENGTH] = "local length error",
        [TRANSPORT_LOCAL_PROTECTION] = "local protection error",
        [TRANSPORT_BAD_RESPONSE] = "bad response",
        [TRANSPORT_RETRY_EXCEEDED] = "retries exceeded",
        [TRANSPORT_RNR_RETRY_EXCEEDED] = "receiver-not-ready retries exceeded",
        [TRANSPORT_FLUSHED] = "flushed",
    };

    return (unsigned)status < ARRAY_SIZE(names) ? names[status] : "unknown status";
}
