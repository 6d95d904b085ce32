/* What a process sees through the verbs API, told by another process over a pipe. */
#ifndef CLI_PROBE_H
#define CLI_PROBE_H

#include "launch.h"

struct probe_port {
    char device[64];
    char gid[64];
    char state[32];
    char link_layer[32];
    unsigned int port;
    unsigned int lid;
    double rate; /* Gb/s */
};

typedef void (*probe_each)(const struct probe_port *port, void *context);

struct probe_place {
    const struct launch *launch; /* NULL: the system's own library, hence real devices */
    int node;
    bool quiet; /* what the library has to say is not for the user */
};

/* Runs "verbena probe" there and calls 'each' for every port it saw. Returns its exit status. */
int probe_ports(const struct probe_place *place, probe_each each, void *context);

/* Whether this machine has an RDMA device that is not software of this program. */
bool probe_real_device(void);

#endif
