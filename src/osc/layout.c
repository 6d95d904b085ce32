/* SPDX-License-Identifier: BSD-2-Clause */
#include "osc/osc.h"

#include <opal/datatype/opal_convertor.h>

#define PARTS 32 /* that Open MPI lists at a time */

struct osc_layout osc_layout(const void *base, int count, ompi_datatype_t *type)
{
    struct osc_layout layout = { .base = (char *)base, .count = count, .type = type };
    size_t size;

    ompi_datatype_type_size(type, &size);
    layout.size = size * count;
    layout.contiguous = ompi_datatype_is_contiguous_memory_layout(type, count);
    layout.start = layout.base + type->super.true_lb;
    return layout;
}

void osc_layout_pack(const struct osc_layout *layout, void *to)
{
    opal_convertor_t convertor;
    struct iovec iov = { .iov_base = to, .iov_len = layout->size };
    uint32_t parts = 1;
    size_t length = layout->size;

    mtl_charge_copy(layout->size);
    if (layout->contiguous) {
        memcpy(to, layout->start, layout->size);
        return;
    }
    OBJ_CONSTRUCT(&convertor, opal_convertor_t);
    opal_convertor_copy_and_prepare_for_send(ompi_mpi_local_convertor, &layout->type->super,
                                             layout->count, layout->base, 0, &convertor);
    opal_convertor_pack(&convertor, &iov, &parts, &length);
    OBJ_DESTRUCT(&convertor);
}

void osc_layout_unpack(const struct osc_layout *layout, const void *from)
{
    opal_convertor_t convertor;
    struct iovec iov = { .iov_base = (void *)from, .iov_len = layout->size };
    uint32_t parts = 1;
    size_t length = layout->size;

    mtl_charge_copy(layout->size);
    if (layout->contiguous) {
        memcpy(layout->start, from, layout->size);
        return;
    }
    OBJ_CONSTRUCT(&convertor, opal_convertor_t);
    opal_convertor_copy_and_prepare_for_recv(ompi_mpi_local_convertor, &layout->type->super,
                                             layout->count, layout->base, 0, &convertor);
    opal_convertor_unpack(&convertor, &iov, &parts, &length);
    OBJ_DESTRUCT(&convertor);
}

void osc_layout_span(int count, ompi_datatype_t *type, int64_t *first, int64_t *end)
{
    const opal_datatype_t *super = &type->super;
    ptrdiff_t extent = super->ub - super->lb;
    int64_t last = (int64_t)extent * (count - 1);

    *first = super->true_lb + (last < 0 ? last : 0);
    *end = super->true_ub + (last > 0 ? last : 0);
}

static void move(struct rma_op *op, const struct rma_copy *copy, enum osc_direction direction,
                 enum rma_route route)
{
    if (direction == OSC_WRITE)
        rma_write(op, copy, route);
    else
        rma_read(op, copy, route);
}

static void move_parts(struct rma_op *op, const struct rma_copy *copy, int count,
                       ompi_datatype_t *type, enum osc_direction direction, enum rma_route route)
{
    struct rma_copy part = *copy;
    uint64_t left = copy->length;
    opal_convertor_t convertor;
    bool last = false;

    OBJ_CONSTRUCT(&convertor, opal_convertor_t);
    opal_convertor_copy_and_prepare_for_recv(ompi_mpi_local_convertor, &type->super, count,
                                             (void *)(uintptr_t)copy->remote, 0, &convertor);
    while (left && !last) {
        struct iovec iov[PARTS];
        uint32_t parts = PARTS;
        size_t length;

        last = opal_convertor_raw(&convertor, iov, &parts, &length);
        for (uint32_t i = 0; i < parts && left; i++) {
            part.remote = (uintptr_t)iov[i].iov_base;
            part.length = iov[i].iov_len < left ? iov[i].iov_len : left;
            move(op, &part, direction, route);
            part.local = (char *)part.local + part.length;
            left -= part.length;
        }
    }
    OBJ_DESTRUCT(&convertor);
}

void osc_layout_transfer(struct rma_op *op, struct rma_copy *copy, int count, ompi_datatype_t *type,
                         enum osc_direction direction, enum rma_route route)
{
    if (!ompi_datatype_is_contiguous_memory_layout(type, count)) {
        move_parts(op, copy, count, type, direction, route);
        return;
    }
    copy->remote += type->super.true_lb;
    move(op, copy, direction, route);
}
