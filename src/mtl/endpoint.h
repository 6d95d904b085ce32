/* SPDX-License-Identifier: BSD-2-Clause */
/* Peer processes, and the transport to each: self, shared memory on the same node, or rails. */
#ifndef MTL_ENDPOINT_H
#define MTL_ENDPOINT_H

#include "mtl/device.h"
#include "mtl/liveness.h"
#include "mtl/pieces.h"
#include "mtl/request.h"

#include <ompi/proc/proc.h>

#define NODE_NAME_MAX 96

/* What a process publishes about itself. */
struct address {
    char node[NODE_NAME_MAX];
    int32_t pid;
    int32_t inbox;   /* file descriptor in that process, or -1 */
    int32_t wake;    /* file descriptor of a pipe that wakes its progress thread, or -1 */
    uint32_t window; /* slots of each rail */
    uint32_t slot_size;
    uint32_t qps;
    uint32_t ud_qpn; /* of the UD endpoint, on its first path */
    uint32_t path_count;
    struct path_address path[PATHS_MAX];
};

/* A message to send. The data are 'data', or those of 'request' if it is set. */
struct message {
    struct wire_header header;
    const void *body;
    uint32_t body_length;
    const void *data;
    uint32_t data_length;
    struct mtl_request *request;
};

enum transport { TRANSPORT_SELF, TRANSPORT_SHARED, TRANSPORT_RAILS };

struct connection;
struct shared_peer;
struct pending;

struct endpoint {
    struct endpoint *next; /* in the hash table */
    struct endpoint *next_busy;
    bool busy; /* has pending messages */
    bool failed;
    enum transport transport;
    opal_process_name_t name;
    struct address address;
    struct liveness process; /* if it is on this machine, and that matters */
    struct shared_peer *shared;
    struct connection *connection;
    struct pending *pending, **last_pending;
    struct arriving arriving; /* through shared memory */
    uint64_t kept;            /* bytes of its longer messages that wait for their receives */
};

void endpoints_init(const struct address *self);
void endpoints_free(void);

/* The endpoint of a process, created on first use; NULL after logging why. */
struct endpoint *endpoint_of_name(const opal_process_name_t *name);
struct endpoint *endpoint_of_proc(struct ompi_proc_t *proc);

/* Marks processes on other hosts of the fabric as remote for all of Open MPI. Otherwise windows and
 * shared-memory collectives would go through the memory of the machine that the hosts share. */
void endpoints_mark_remote(size_t count, struct ompi_proc_t **procs);

/* Sends now. False: no slot is free, or other messages are pending. */
bool endpoint_try_send(struct endpoint *endpoint, struct message *message, enum rails_class class);

/* Sends a control message now, or as soon as a slot is free. */
void endpoint_send_control(struct endpoint *endpoint, enum wire_type type, const void *body,
                           uint32_t length);

/* Sends the message of a request as soon as a slot is free. */
void endpoint_queue(struct endpoint *endpoint, struct mtl_request *request);

/* Sends a message again that was lost with its rail. */
void endpoint_resend(struct endpoint *endpoint, const struct wire_header *header, const void *body);

/* Retries all pending messages. Returns how many were sent. */
int endpoints_flush(void);

/* The process cannot be reached any more: completes everything that involves it with an error. */
void endpoint_fail(struct endpoint *endpoint);

/* Fails the endpoints of processes that have died. Called now and then by an idle process. */
void endpoints_check_alive(void);

/* Copies body and data to 'to'; returns their length. */
uint32_t endpoint_write_message(void *to, struct message *message);
uint32_t endpoint_message_length(const struct message *message);

#endif
