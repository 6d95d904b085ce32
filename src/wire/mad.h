/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WIRE_MAD_H
#define WIRE_MAD_H

#include "hca/mad.h"
#include "wire/wire.h"

#define WIRE_QP1 1

bool wire_mad_send(const struct hca_mad *mad);
/* A packet to QP1, with the frame that it was decoded from. */
void wire_mad_receive(const struct wire_arrival *arrival, const uint8_t *bytes, size_t length);
/* The same for a packet that another process has passed on to this one. */
void wire_mad_receive_forwarded(const struct wire_arrival *arrival);

#endif
