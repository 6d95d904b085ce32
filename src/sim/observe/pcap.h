/* SPDX-License-Identifier: BSD-2-Clause */
/* Captures the packets on the links in a file for tshark and Wireshark: ERF records of type 21,
 * InfiniBand, in a pcap file of link type 197, or Ethernet frames of RoCEv2, link type 1. */
#ifndef SIM_OBSERVE_PCAP_H
#define SIM_OBSERVE_PCAP_H

#include <stdbool.h>

struct sim_packet;

extern bool pcap_on;

/* The first process creates the file. Returns 0 or an errno value with the reason logged. */
int pcap_open(const char *path, bool first);
void pcap_flush(void);

/* The first bit of the packet leaves its port. */
void pcap_packet(const struct sim_packet *pkt);

#endif
