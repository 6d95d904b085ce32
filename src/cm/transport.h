/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CM_TRANSPORT_H
#define CM_TRANSPORT_H

/* How the messages of connections travel: through the mailboxes in the fabric's segment, or, over
 * Ethernet, as management datagrams. Callers hold cm_lock(). */

#include "cm/cm.h"

struct cm_transport {
    /* Sends the REQ or SIDR REQ of an id in CM_REQ_SENT. Returns 0, also when the request turned
     * out hopeless and the id has its event, or an errno value. */
    int (*request)(struct cm_id *cm, struct cm_message *m);
    /* Sends any other message to the peer. Returns 0, ESRCH if the peer is gone, ENOMEM. `wake`:
     * the message causes an event there. */
    int (*send)(struct cm_id *cm, const struct cm_message *m, bool wake);
    /* Asks the peer to disconnect; the id gets its event now or when the peer has answered. */
    void (*disconnect)(struct cm_id *cm, const struct cm_message *dreq);
    /* The timer of an id in CM_REQ_SENT has expired. NULL: the transport has timers of its own. */
    void (*request_timer)(struct cm_id *cm);
};

extern const struct cm_transport transport_segment, transport_mad;

static inline const struct cm_transport *transport(void)
{
    return hca_is_ethernet() ? &transport_mad : &transport_segment;
}

#endif
