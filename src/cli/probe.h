/* SPDX-License-Identifier: BSD-2-Clause */
/* The ports that a process sees through the verbs API, read from a child over a pipe. */
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

struct probe_target {
    const struct launch *launch; /* NULL: the system's libibverbs, for real devices */
    int node;
    bool quiet; /* discard messages of the library */
};

/* Runs "verbena probe" on the target and calls 'each' for every port. Returns its exit status. */
int probe_ports(const struct probe_target *target, probe_each each, void *context);

/* Whether this machine has an RDMA device other than our software adapters. */
bool probe_real_device(void);

#endif
