/* When a message passed the points of its way; what lies between two of them is a stage of its
 * time. */
#ifndef SIM_MARKS_H
#define SIM_MARKS_H

enum mark {
    MARK_CALLED, /* the program calls */
    MARK_POSTED, /* and the call is over */
    MARK_RUNG,
    MARK_FETCHED,
    /* of the packet that ends it */
    MARK_STARTED, /* by an engine */
    MARK_READY,   /* all of it is on the adapter */
    MARK_SENT,    /* first bit on the link */
    MARK_SWITCHED,
    MARK_ARRIVED,
    MARK_TAKEN, /* the receiver has looked at it */
    /* of the message again */
    MARK_DELIVERED, /* visible in the receiver's memory */
    MARK_OVER,      /* acknowledged, or answered */
    MARK_COMPLETED, /* the sender can see that */
    MARK_COUNT,
};

#define PACKET_MARKS (MARK_TAKEN - MARK_STARTED + 1)

#endif
