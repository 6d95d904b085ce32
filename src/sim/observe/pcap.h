/* SPDX-License-Identifier: BSD-2-Clause */
/* The packets on the links as a capture file that tshark and Wireshark read: ERF records of type
 * 21, InfiniBand, in a pcap file of link type 197. */
#ifndef SIM_CAPTURE_H
#define SIM_CAPTURE_H

#include <stdbool.h>

struct sim_packet;

extern bool pcap_on;

/* The first process begins the file. Returns 0 or an errno value with the reason logged. */
int pcap_open(const char *path, bool first);
void pcap_flush(void);

/* The packet leaves its port. */
void pcap_packet(const struct sim_packet *pkt);

#endif
