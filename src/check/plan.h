/* SPDX-License-Identifier: BSD-2-Clause */
/* The fault plan of --inject: rows of text, one for each fault. Knows no verbs objects, so that the
 * command line can check a plan before it starts anything. */
#ifndef CHECK_PLAN_H
#define CHECK_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLAN_ROWS_MAX 64
#define PLAN_ROW_SIZE 96 /* of its text */

/* Calls that can be made to fail. */
enum plan_verb {
    VERB_OPEN_DEVICE,
    VERB_ALLOC_PD,
    VERB_REG_MR,
    VERB_CREATE_CHANNEL,
    VERB_CREATE_CQ,
    VERB_CREATE_SRQ,
    VERB_CREATE_QP,
    VERB_MODIFY_QP,
    VERB_CREATE_AH,
    VERB_POST_SEND,
    VERB_POST_RECV,
    VERB_RESOLVE_ADDR,
    VERB_RESOLVE_ROUTE,
    VERB_CONNECT,
    VERB_ACCEPT,
    VERB_COUNT,
};

enum plan_fault {
    PLAN_CALL,      /* the call fails with an errno */
    PLAN_LIMIT,     /* registrations beyond a limit fail with ENOMEM */
    PLAN_STATUS,    /* the work request completes with an error */
    PLAN_QP_ERROR,  /* the QP of the work request moves to error */
    PLAN_PORT_DOWN, /* so do the others: before the work request is posted */
    PLAN_PORT_UP,
    PLAN_FATAL,      /* IBV_EVENT_DEVICE_FATAL: the device is gone */
    PLAN_DISCONNECT, /* the connection of the work request's QP is lost */
    PLAN_PAUSE,      /* the thread that posts does nothing for a while */
    /* the connection manager */
    PLAN_ADDR_ERROR,     /* rdma_resolve_addr() ends with RDMA_CM_EVENT_ADDR_ERROR */
    PLAN_ROUTE_ERROR,    /* rdma_resolve_route() ends with RDMA_CM_EVENT_ROUTE_ERROR */
    PLAN_CM_REJECT,      /* rdma_connect() ends with RDMA_CM_EVENT_REJECTED */
    PLAN_CM_TIMEOUT,     /* rdma_connect() ends with RDMA_CM_EVENT_UNREACHABLE */
    PLAN_ACCEPT_REJECT,  /* rdma_accept() ends with RDMA_CM_EVENT_REJECTED */
    PLAN_ACCEPT_TIMEOUT, /* rdma_accept() ends with RDMA_CM_EVENT_UNREACHABLE */
    PLAN_CM_DISCONNECT,  /* a connection ends as soon as it is established */
};

/* What a process may have registered at a time. */
enum plan_limit { LIMIT_REGIONS, LIMIT_BYTES, LIMIT_COUNT };

struct plan_row {
    enum plan_fault fault;
    enum plan_verb verb;
    int value; /* errno, status or what is limited */
    uint64_t limit;
    int opcode;        /* of the work request, -1: any */
    uint64_t pause_ns;
    uint64_t nth;      /* strikes at this occurrence, 0: not limited to one */
    uint64_t every;    /* strikes only at multiples of this, 0: not limited to them */
    uint64_t after;    /* spares this many occurrences first */
    double rate;       /* strikes with this probability, below 0: always */
    int node;          /* only on this host, -1: on all */
    char program[32];  /* only in this program, empty: in all */
    char text[PLAN_ROW_SIZE]; /* as the user wrote it */
};

struct plan {
    uint64_t seed; /* 0: not given */
    unsigned count;
    struct plan_row rows[PLAN_ROWS_MAX];
};

/* Reads the rows of `text`, then those of the file at `path`; either may be NULL. Rows end at ';' or
 * a newline. Returns 0, or -1 with the reason in `error`. */
int plan_read(const char *text, const char *path, struct plan *plan, char *error, size_t size);

#endif
