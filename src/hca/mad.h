/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef HCA_MAD_H
#define HCA_MAD_H

/* Management datagrams, which engines with Ethernet ports carry between the QP1s of two hosts. All
 * processes of a host share its QP1. */

#include <stdbool.h>
#include <stdint.h>

#define MAD_BYTES 256

struct hca_mad {
    unsigned gid_index; /* our GID */
    uint8_t peer[16];   /* the other end's */
    uint8_t bytes[MAD_BYTES];
};

/* The calls run inside an epoch and must not wait. */
struct hca_mad_agent {
    /* The process slot that has to receive a datagram. */
    unsigned (*owner)(const struct hca_mad *mad);
    void (*receive)(const struct hca_mad *mad);
    /* The process leaves the fabric. */
    void (*leave)(void);
};

extern const struct hca_mad_agent *hca_mad_agent; /* NULL: none */

#endif
