/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TRANSPORT_COMPLETER_H
#define TRANSPORT_COMPLETER_H

/* Turns responses into completions, in order (IBA volume 1, 9.7.6). */

#include "transport/packet.h"

struct transport_qp;

void completer_receive(struct transport_qp *qp, uint64_t now, const struct packet *packet,
                       const struct opcode_info *info);

#endif
