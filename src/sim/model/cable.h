/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets as the bytes that a cable carries. */
#ifndef SIM_MODEL_CABLE_H
#define SIM_MODEL_CABLE_H

#include "transport/frame.h"

struct sim_packet;

/* Writes the frame of a packet, with the bytes that the sender's memory holds now; returns its
 * length. */
size_t cable_frame(const struct sim_packet *pkt, uint8_t bytes[FRAME_MAX_BYTES]);

/* The packet passes a cable that may flip bits. If the checksums of the frame notice it, the packet
 * is corrupted. */
void cable_carry(struct sim_packet *pkt);

#endif
