/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CM_ETHERNET_H
#define CM_ETHERNET_H

/* Addresses of an Ethernet port: its GIDs are IP addresses of this host. */

#include "cm/address.h"

bool ethernet_find(const struct cm_address *address, unsigned *gid_index);
/* The GID that reaches `to`, as an address with port 0. False: none does. */
bool ethernet_pick_source(struct cm_address *source, const struct cm_address *to);
/* Replaces an address by the port's first one of the same family, if there is one. */
void ethernet_set_own(struct cm_address *address);
/* The same for a loopback address, unless that is the port's: it means this host. */
void ethernet_replace_loopback(struct cm_address *address);

#endif
