/* SPDX-License-Identifier: BSD-2-Clause */
/* Timestamps of a message on its way. The time between two marks is a stage (observe/explain.c). */
#ifndef SIM_MODEL_MARKS_H
#define SIM_MODEL_MARKS_H

enum mark {
    MARK_CALLED, /* the program calls ibv_post_send */
    MARK_POSTED, /* the call returns */
    MARK_DOORBELL,
    MARK_FETCHED,
    /* of the last packet */
    MARK_STARTED, /* by a send engine */
    MARK_READY,   /* its payload is on the adapter */
    MARK_SENT,    /* its first bit is on the link */
    MARK_SWITCHED,
    MARK_ARRIVED,
    MARK_PROCESSED, /* by the receive engine */
    /* of the message */
    MARK_DELIVERED, /* visible in the receiver's memory */
    MARK_ACKED,     /* the acknowledgement or response was processed */
    MARK_COMPLETED, /* the CQE is visible to the sender */
    MARK_COUNT,
};

#define PACKET_MARKS (MARK_PROCESSED - MARK_STARTED + 1)

#endif
