/* Other processes, and the way to each: itself, shared memory on the same node, or rails. */
#ifndef MTL_ENDPOINT_H
#define MTL_ENDPOINT_H

#include "mtl/device.h"
#include "mtl/request.h"

#include <ompi/proc/proc.h>

#define NODE_NAME_MAX 96

/* What a process tells the others of itself. */
struct address {
    char node[NODE_NAME_MAX];
    int32_t pid;
    int32_t inbox;   /* a descriptor of that process, or -1 */
    uint32_t window; /* slots of each rail */
    uint32_t slot_size;
    uint32_t qps;
    uint32_t written; /* it looks at slots itself: messages are written there */
    uint32_t greeter; /* the datagram queue pair on its first path */
    uint32_t path_count;
    struct path_address path[PATHS_MAX];
};

/* A message as its parts; the data are those of a request. */
struct message {
    struct wire_header header;
    const void *body;
    uint32_t body_length;
    const void *data;
    uint32_t data_length;
    struct mtl_request *request; /* data from here instead */
};

enum way { WAY_SELF, WAY_SHARED, WAY_RAILS };

struct connection;
struct shared_peer;
struct pending;

struct endpoint {
    struct endpoint *next; /* in the table */
    struct endpoint *next_busy;
    bool busy; /* something waits for room */
    bool failed;
    enum way way;
    opal_process_name_t name;
    struct address address;
    struct shared_peer *shared;
    struct connection *connection;
    struct pending *pending, **last_pending;
};

int endpoints_init(const struct address *self);
void endpoints_free(void);

/* The endpoint of a process, made when it is first asked for; NULL with the reason in the log. */
struct endpoint *endpoint_of_name(const opal_process_name_t *name);
struct endpoint *endpoint_of_proc(struct ompi_proc_t *proc);

/* Processes on other hosts of the fabric are on other nodes, for all of Open MPI: it would move
 * windows and shared memory collectives through the memory of the machine that the hosts share. */
void endpoints_part_nodes(size_t count, struct ompi_proc_t **procs);

/* Calls for each. */
void endpoints_each(void (*call)(struct endpoint *endpoint));

/* Sends if there is room now. False: there is none, or others wait already. */
bool endpoint_try(struct endpoint *endpoint, struct message *message, enum rails_class class);

/* Sends a control message now, or as soon as there is room. */
void endpoint_control(struct endpoint *endpoint, enum wire_type type, const void *body,
                      uint32_t length);

/* Sends the message of a request as soon as there is room. */
void endpoint_wait(struct endpoint *endpoint, struct mtl_request *request);

/* Sends what was sent before and did not arrive. */
void endpoint_repeat(struct endpoint *endpoint, const struct wire_header *header, const void *body);

/* Tries everything that waits. Returns how many messages went. */
int endpoints_flush(void);

/* There is no way to it any more: ends everything that concerns it with an error. */
void endpoint_fail(struct endpoint *endpoint);

/* Writes header and all that follows; returns the length of what follows. */
uint32_t message_write(void *to, struct message *message);
uint32_t message_length(const struct message *message);

#endif
