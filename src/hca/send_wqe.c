/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/send_wqe.h"

#include <string.h>

size_t send_wqe_extra(const struct send_wqe *wqe)
{
    size_t bytes = wqe->num_sge * sizeof(struct ibv_sge);

    for (uint32_t i = 0; wqe->flags & IBV_SEND_INLINE && i < wqe->num_sge; i++)
        bytes += wqe->sge[i].length;
    return bytes;
}

void send_wqe_copy(struct send_wqe *to, const struct send_wqe *from, struct ibv_sge *extra)
{
    char *data = (char *)(extra + from->num_sge);

    *to = *from;
    to->next = NULL;
    to->sge = extra;
    if (from->num_sge)
        memcpy(extra, from->sge, from->num_sge * sizeof(struct ibv_sge));
    for (uint32_t i = 0; from->flags & IBV_SEND_INLINE && i < from->num_sge; i++) {
        memcpy(data, (void *)from->sge[i].addr, from->sge[i].length);
        extra[i].addr = (uintptr_t)data;
        data += from->sge[i].length;
    }
}
