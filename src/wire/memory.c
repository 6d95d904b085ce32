/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/wire.h"

#include "dma/copy.h"
#include "hca/mr.h"
#include "hca/proc.h"
#include "hca/responder.h"
#include "util/fault.h"

#include <string.h>

/* From now on, deregistration waits for the end of our epoch. False: it has begun already. */
static bool hold(const struct shared_mr *mr, uint32_t key)
{
    struct shared_mr *published = mr_published(mr);

    if (likely(load_relaxed(&published->touched)))
        return true;
    atomic_store(&published->touched, 1);
    return atomic_load(&mr->key) == key;
}

uint8_t *wire_memory_own(const struct mem_ref *ref, uint32_t key)
{
    const struct shared_mr *mr = mr_own(key);

    if (ref->kind == MEM_SEGMENT)
        return (uint8_t *)seg + ref->addr;
    if (ref->proc != (unsigned)proc_self || !mr || load_relaxed(&mr->key) != key ||
        mr->kind > MR_USER || !hold(mr, key))
        return NULL;
    return (uint8_t *)ref->addr;
}

/* Programs poll the last byte of a message, so it is written last, and a word as a whole. */
static void store_in_order(uint8_t *to, const uint8_t *from, size_t length)
{
    size_t last = length >= 8 ? 8 : 1;

    memcpy(to, from, length - last);
    atomic_thread_fence(memory_order_release);
    if (last == 8 && !((uintptr_t)(to + length) & 7)) {
        uint64_t word;

        memcpy(&word, from + length - 8, 8);
        *(volatile uint64_t *)(to + length - 8) = word;
    } else {
        memcpy(to + length - last, from + length - last, last);
    }
}

struct copy {
    uint8_t *own;
    void *bytes;
    size_t length;
};

static void write_own(void *context)
{
    const struct copy *copy = context;

    store_in_order(copy->own, copy->bytes, copy->length);
}

static void read_own(void *context)
{
    const struct copy *copy = context;

    memcpy(copy->bytes, copy->own, copy->length);
}

bool wire_memory_write(const struct mem_ref *ref, uint32_t key, const void *bytes, size_t length)
{
    struct copy copy = { wire_memory_own(ref, key), (void *)bytes, length };

    if (copy.own)
        return fault_survive(copy.own, length, write_own, &copy);
    struct local_list list = { .iov = { { (void *)bytes, length } }, .count = 1, .length = length };
    return !copy_out(&list, ref, 1);
}

bool wire_memory_read(const struct mem_ref *ref, uint32_t key, void *bytes, size_t length)
{
    struct copy copy = { wire_memory_own(ref, key), bytes, length };

    if (copy.own)
        return fault_survive(copy.own, length, read_own, &copy);
    struct local_list list = { .iov = { { bytes, length } }, .count = 1, .length = length };
    return !copy_in(&list, ref);
}

/* ---- the lists of a WQE ---- */

typedef bool (*copy_function)(const struct mem_ref *ref, uint32_t key, void *bytes, size_t length);

static bool write_to(const struct mem_ref *ref, uint32_t key, void *bytes, size_t length)
{
    return wire_memory_write(ref, key, bytes, length);
}

static bool copy_range(const struct wire_qp *qp, const struct wire_wqe *wqe, uint64_t offset,
                       uint8_t *bytes, size_t length, bool for_writing)
{
    copy_function copy = for_writing ? write_to : wire_memory_read;

    for (uint32_t i = 0; i < wqe->send.num_sge && length; i++) {
        const struct ibv_sge *sge = &wqe->sge[i];
        struct mem_ref ref;

        if (offset >= sge->length) {
            offset -= sge->length;
            continue;
        }
        size_t part = sge->length - offset < length ? sge->length - offset : length;
        if (wqe->send.flags & IBV_SEND_INLINE)
            memcpy(bytes, (char *)sge->addr + offset, part);
        else if (!mr_local(sge->lkey, qp->hca->pd->id, sge->addr + offset, part, for_writing,
                           &ref) ||
                 !copy(&ref, sge->lkey, bytes, part))
            return false;
        offset = 0;
        length -= part;
        bytes += part;
    }
    return !length;
}

const uint8_t *wire_memory_gathered(const struct wire_qp *qp, const struct wire_wqe *wqe,
                                    uint64_t offset, size_t length)
{
    const struct ibv_sge *sge = wqe->sge, *end = sge + wqe->send.num_sge;
    struct mem_ref ref;

    for (; sge < end && offset >= sge->length; sge++)
        offset -= sge->length;
    if (sge == end || sge->length - offset < length || wqe->send.flags & IBV_SEND_INLINE ||
        !mr_local(sge->lkey, qp->hca->pd->id, sge->addr + offset, length, false, &ref))
        return NULL;
    return wire_memory_own(&ref, sge->lkey);
}

bool wire_memory_gather(const struct wire_qp *qp, const struct wire_wqe *wqe, uint64_t offset,
                        void *bytes, size_t length)
{
    return copy_range(qp, wqe, offset, bytes, length, false);
}

bool wire_memory_scatter(const struct wire_qp *qp, const struct wire_wqe *wqe, uint64_t offset,
                         const void *bytes, size_t length)
{
    return copy_range(qp, wqe, offset, (uint8_t *)bytes, length, true);
}
