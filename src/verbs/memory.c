/* SPDX-License-Identifier: BSD-2-Clause */
/* Protection domains, memory regions and windows, device memory. */

#include "verbs/verbs.h"

#include "check/check.h"
#include "hca/arena.h"
#include "hca/epoch.h"
#include "hca/mr.h"
#include "hca/observer.h"
#include "hca/qp.h"
#include "util/memory_file.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SUPPORTED_ACCESS                                                                           \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |                   \
     IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |                       \
     IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB | IBV_ACCESS_OPTIONAL_RANGE)
#define NEEDS_LOCAL_WRITE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

static atomic_uint next_pd = 1;

/* ---- protection domains ---- */

static struct hca_pd *new_pd(struct ibv_context *context, struct hca_pd *parent)
{
    struct hca_pd *pd = calloc(1, sizeof(*pd));

    if (!pd)
        return fail(ENOMEM);
    pd->ibv.context = context;
    pd->parent = parent;
    pd->id = parent ? parent->id : atomic_fetch_add(&next_pd, 1);
    pd->ibv.handle = pd->id;
    return pd;
}

EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    int err = ensure_attached();
    struct hca_pd *pd;

    if (err || (err = check_call(VERB_ALLOC_PD)))
        return fail(err);
    hca_charge(CALL_ALLOC_PD, 0);
    pd = new_pd(context, NULL);
    return check_made(CHECK_PD, pd, 0);
}

EXPORT int ibv_dealloc_pd(struct ibv_pd *ibv)
{
    struct hca_pd *pd = (struct hca_pd *)ibv;

    if (unlikely(check_on))
        check_destroys(CHECK_PD, pd, "ibv_dealloc_pd()");
    if (load_relaxed(&pd->users) > 0)
        return check_because(EBUSY, "%d objects of PD %u still exist", load_relaxed(&pd->users),
                             pd->id);
    check_gone(CHECK_PD, pd);
    if (pd->parent)
        atomic_fetch_sub(&pd->parent->users, 1);
    hca_free_object(pd);
    return 0;
}

struct ibv_td *verbs_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
    if (attr->comp_mask)
        return fail(EOPNOTSUPP);
    struct hca_td *td = calloc(1, sizeof(*td));
    if (!td)
        return fail(ENOMEM);
    td->ibv.context = context;
    return check_made(CHECK_TD, td, 0);
}

int verbs_dealloc_td(struct ibv_td *td)
{
    check_gone(CHECK_TD, td);
    free(td);
    return 0;
}

/* The parent domain's allocators are not used: our buffers are in the segment. */
struct ibv_pd *verbs_alloc_parent_domain(struct ibv_context *context,
                                         struct ibv_parent_domain_init_attr *attr)
{
    const uint32_t known =
        IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;

    if (attr->comp_mask & ~known)
        return fail(EOPNOTSUPP);
    if (!attr->pd)
        return fail(EINVAL);
    struct hca_pd *parent = real_pd(attr->pd);
    struct hca_pd *pd = new_pd(context, parent);
    if (!pd)
        return NULL;
    pd->td = attr->td;
    atomic_fetch_add(&parent->users, 1);
    return check_made(CHECK_PD, pd, 0);
}

/* ---- memory regions ---- */

static bool access_is_valid(unsigned access)
{
    return !(access & ~SUPPORTED_ACCESS) &&
           (!(access & NEEDS_LOCAL_WRITE) || access & IBV_ACCESS_LOCAL_WRITE);
}

static bool can_populate(uintptr_t page)
{
    static char probe;

    return !madvise((void *)((uintptr_t)&probe & ~(page - 1)), page, MADV_POPULATE_READ);
}

/* An adapter pins registered memory, so the memory must be mapped with the access that the region
 * grants. Before Linux 5.14 only the mapping itself can be checked. */
static bool memory_is_there(const void *addr, size_t length, unsigned access)
{
    uintptr_t page = sysconf(_SC_PAGESIZE);
    uintptr_t first = (uintptr_t)addr & ~(page - 1);
    size_t span = (uintptr_t)addr + length - first;
    int fill = access & IBV_ACCESS_LOCAL_WRITE ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;

    if (unlikely(check_on))
        check_pins(addr, length);
    if (!length || access & IBV_ACCESS_ON_DEMAND || !madvise((void *)first, span, fill))
        return true;
    return !can_populate(page) && !madvise((void *)first, span, MADV_NORMAL);
}

/* What a registration pins, in whole pages as the kernel counts it. */
static int64_t pinned_bytes(const void *addr, size_t length, unsigned access)
{
    uintptr_t page = sysconf(_SC_PAGESIZE), first = (uintptr_t)addr & ~(page - 1);

    return access & IBV_ACCESS_ON_DEMAND ? 0 : round_up((uintptr_t)addr + length - first, page);
}

static int64_t pinned_by(const struct hca_mr *mr)
{
    return pinned_bytes(mr->ibv.addr, mr->ibv.length, mr->own->access);
}

static struct ibv_mr *new_mr(struct ibv_pd *pd, enum mr_kind kind, void *addr, uint64_t ref,
                             uint64_t iova, size_t length, unsigned access)
{
    struct hca_mr *mr = calloc(1, sizeof(*mr));
    uint32_t key;

    if (!mr)
        return fail(ENOMEM);
    mr->own = mr_create(real_pd(pd)->id, kind, ref, iova, length, access, &key);
    if (!mr->own) {
        free(mr);
        return NULL;
    }
    mr->ibv.context = pd->context;
    mr->ibv.pd = pd;
    mr->ibv.addr = addr;
    mr->ibv.length = length;
    mr->ibv.handle = key >> 8;
    mr->ibv.lkey = key;
    mr->ibv.rkey = key;
    atomic_fetch_add(&real_pd(pd)->users, 1);
    return check_made(CHECK_MR, &mr->ibv, key);
}

EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                       unsigned int access)
{
    int err = ensure_attached();
    bool implicit = !addr && length == SIZE_MAX && access & IBV_ACCESS_ON_DEMAND;
    struct ibv_mr *mr;

    if (err || (err = check_call(VERB_REG_MR)))
        return fail(err);
    if (!access_is_valid(access) || !length ||
        (!implicit && (uintptr_t)addr + length < (uintptr_t)addr))
        return fail(check_because(EINVAL,
                                  "a region of %zu bytes at %p with access flags 0x%x: %s", length,
                                  addr, access,
                                  access_is_valid(access) ? "no bytes, or too many"
                                                          : "unknown flags, or remote writes or "
                                                            "atomics without local writes"));
    if (!memory_is_there(addr, length, access))
        return fail(check_because(EFAULT,
                                  "a region of %zu bytes at %p with access flags 0x%x: the memory "
                                  "is not mapped, or not for this access",
                                  length, addr, access));
    if (access & IBV_ACCESS_ZERO_BASED)
        iova = 0;
    if ((err = check_registers(1, pinned_bytes(addr, length, access))))
        return fail(err);
    hca_charge(CALL_REGISTER, implicit ? 0 : length);
    mr = new_mr(pd, MR_USER, addr, (uintptr_t)addr, iova, length, access);
    if (!mr)
        check_registers(-1, -pinned_bytes(addr, length, access));
    return mr;
}

#undef ibv_reg_mr
EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
    return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, access);
}

#undef ibv_reg_mr_iova
EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                      int access)
{
    return ibv_reg_mr_iova2(pd, addr, length, iova, access);
}

EXPORT int ibv_rereg_mr(struct ibv_mr *ibv, int flags, struct ibv_pd *pd, void *addr, size_t length,
                        int access)
{
    struct hca_mr *mr = (struct hca_mr *)ibv;
    const int known =
        IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS;

    if (!flags || flags & ~known ||
        (flags & IBV_REREG_MR_CHANGE_ACCESS && !access_is_valid(access)) ||
        (flags & IBV_REREG_MR_CHANGE_TRANSLATION &&
         (!addr || (uintptr_t)addr + length < (uintptr_t)addr)) ||
        (flags & IBV_REREG_MR_CHANGE_PD && !pd) || mr->own->kind != MR_USER || load_relaxed(&mr->windows)) {
        errno = EINVAL;
        return IBV_REREG_MR_ERR_INPUT;
    }
    if (!(flags & IBV_REREG_MR_CHANGE_TRANSLATION)) {
        addr = ibv->addr;
        length = ibv->length;
    }
    if (!(flags & IBV_REREG_MR_CHANGE_ACCESS))
        access = mr->own->access;
    if (!memory_is_there(addr, length, access)) {
        errno = EFAULT;
        return IBV_REREG_MR_ERR_INPUT;
    }
    int64_t pins_more = pinned_bytes(addr, length, access) - pinned_by(mr);
    int err = check_registers(0, pins_more);
    if (err) {
        errno = err;
        return IBV_REREG_MR_ERR_CMD;
    }
    if (mr_invalidate(mr->own)) {
        check_registers(0, -pins_more);
        errno = EBUSY;
        return IBV_REREG_MR_ERR_CMD;
    }
    mr_detach(mr->own);
    if (flags & IBV_REREG_MR_CHANGE_PD) {
        atomic_fetch_sub(&real_pd(ibv->pd)->users, 1);
        atomic_fetch_add(&real_pd(pd)->users, 1);
        ibv->pd = pd;
        mr->own->pd = real_pd(pd)->id;
    }
    if (flags & IBV_REREG_MR_CHANGE_ACCESS)
        mr->own->access = access;
    if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
        mr->own->addr = (uintptr_t)addr;
        mr->own->iova = mr->own->access & IBV_ACCESS_ZERO_BASED ? 0 : (uintptr_t)addr;
        mr->own->length = length;
        ibv->addr = addr;
        ibv->length = length;
    }
    mr_attach(mr->own);
    mr_validate(mr->own, ibv->lkey); /* the keys do not change */
    qp_recheck_receives();
    return 0;
}

EXPORT int ibv_dereg_mr(struct ibv_mr *ibv)
{
    struct hca_mr *mr = (struct hca_mr *)ibv;
    int err;

    if (unlikely(check_on))
        check_destroys(CHECK_MR, ibv, "ibv_dereg_mr()");
    if (load_relaxed(&mr->windows) > 0)
        return check_because(EBUSY, "memory windows are bound to the region with lkey 0x%x",
                             ibv->lkey);
    if (unlikely(check_on))
        check_deregisters(ibv);
    bool bounded = mr->own->length != UINT64_MAX; /* neither a null region nor the whole address space */
    hca_charge(CALL_DEREGISTER, bounded ? mr->own->length : 0);
    if (hca_engine->deregistered && bounded)
        hca_engine->deregistered(mr->own->iova, mr->own->length);
    bool pins = mr->own->kind == MR_USER && mr->own->proc == proc_self;
    int64_t pinned = pins ? pinned_by(mr) : 0;
    if (mr->own->proc == proc_self && (err = mr_destroy(mr->own)))
        return err;
    if (pins)
        check_registers(-1, -pinned);
    check_gone(CHECK_MR, ibv);
    if (mr->dm)
        atomic_fetch_sub(&mr->dm->users, 1);
    atomic_fetch_sub(&real_pd(ibv->pd)->users, 1);
    hca_free_object(mr);
    return 0;
}

int verbs_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
                    struct ibv_sge *sg_list, uint32_t num_sge)
{
    struct mem_ref ref;

    if (flags & ~IBV_ADVISE_MR_FLAG_FLUSH)
        return EINVAL;
    if (advice > IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
        return EOPNOTSUPP;
    for (uint32_t i = 0; i < num_sge; i++)
        if (!mr_local(sg_list[i].lkey, real_pd(pd)->id, sg_list[i].addr,
                      sg_list[i].length, advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, &ref))
            return EINVAL;
    return 0; /* a hint; there is nothing to prefetch */
}

/* ---- the null region ---- */

#define SINK_BYTES (4ull << 20)

static char *null_memory;
static pthread_once_t null_memory_made = PTHREAD_ONCE_INIT;

/* A few pages, mapped repeatedly, absorb all writes. */
static bool map_sink(char *at)
{
    int fd = memory_file("verbena-null", MFD_CLOEXEC);
    bool good = fd >= 0 && !ftruncate(fd, SINK_BYTES);

    for (uint64_t done = 0; good && done < MR_NULL_SPAN; done += SINK_BYTES)
        good = mmap(at + done, SINK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) !=
               MAP_FAILED;
    if (fd >= 0)
        close(fd);
    return good;
}

static void make_null_memory(void)
{
    char *zeros = mmap(NULL, 2 * MR_NULL_SPAN, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                       -1, 0);

    if (zeros == MAP_FAILED)
        return;
    if (map_sink(zeros + MR_NULL_SPAN)) {
        madvise(zeros, 2 * MR_NULL_SPAN, MADV_DONTDUMP);
        null_memory = zeros;
    } else {
        munmap(zeros, 2 * MR_NULL_SPAN);
    }
}

struct ibv_mr *verbs_alloc_null_mr(struct ibv_pd *pd)
{
    pthread_once(&null_memory_made, make_null_memory);
    if (!null_memory)
        return fail(ENOMEM);
    struct ibv_mr *mr = new_mr(pd, MR_NULL, NULL, (uintptr_t)null_memory, 0, SIZE_MAX,
                               IBV_ACCESS_LOCAL_WRITE);
    if (mr)
        mr->rkey = 0; /* local access only */
    return mr;
}

/* ---- memory windows ---- */

struct ibv_mw *verbs_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
    uint32_t key;
    struct hca_mw *mw;

    if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
        return fail(EINVAL);
    mw = calloc(1, sizeof(*mw));
    if (!mw)
        return fail(ENOMEM);
    mw->own = mr_create(real_pd(pd)->id, type == IBV_MW_TYPE_1 ? MW_TYPE_1 : MW_TYPE_2, 0, 0, 0,
                           0, &key);
    if (!mw->own) {
        free(mw);
        return NULL;
    }
    mr_revoke_key(mw->own); /* grants nothing until it is bound */
    mw->ibv.context = pd->context;
    mw->ibv.pd = pd;
    mw->ibv.rkey = key;
    mw->ibv.handle = key >> 8;
    mw->ibv.type = type;
    atomic_fetch_add(&real_pd(pd)->users, 1);
    return &mw->ibv;
}

int verbs_dealloc_mw(struct ibv_mw *ibv)
{
    struct hca_mw *mw = (struct hca_mw *)ibv;
    int err;

    if (mw->own->proc == proc_self && (err = mr_destroy(mw->own)))
        return err;
    if (mw->bound_to)
        atomic_fetch_sub(&mw->bound_to->windows, 1);
    atomic_fetch_sub(&real_pd(ibv->pd)->users, 1);
    free(mw);
    return 0;
}

/* Type 1: the adapter chooses the new key; the bind is an ordinary work request. */
int verbs_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
    struct ibv_send_wr *bad, wr = {
        .wr_id = bind->wr_id,
        .opcode = IBV_WR_BIND_MW,
        .send_flags = bind->send_flags,
        .bind_mw = { .mw = mw, .rkey = ibv_inc_rkey(mw->rkey), .bind_info = bind->bind_info },
    };

    if (mw->type != IBV_MW_TYPE_1 || (bind->bind_info.length && !bind->bind_info.mr))
        return EINVAL;
    int err = verbs_post_send(qp, &wr, &bad);
    if (!err)
        mw->rkey = wr.bind_mw.rkey;
    return err;
}

/* ---- device memory ---- */

static int dm_range_check(const struct hca_dm *dm, uint64_t offset, size_t length)
{
    return (offset | length) & 3 || offset > dm->length || length > dm->length - offset ? EINVAL
                                                                                        : 0;
}

static int copy_to_dm(struct ibv_dm *ibv, uint64_t offset, const void *from, size_t length)
{
    struct hca_dm *dm = (struct hca_dm *)ibv;
    int err = dm_range_check(dm, offset, length);

    if (!err)
        memcpy(dm->memory + offset, from, length);
    return err;
}

static int copy_from_dm(void *to, struct ibv_dm *ibv, uint64_t offset, size_t length)
{
    struct hca_dm *dm = (struct hca_dm *)ibv;
    int err = dm_range_check(dm, offset, length);

    if (!err)
        memcpy(to, dm->memory + offset, length);
    return err;
}

struct ibv_dm *verbs_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
    int err = ensure_attached();

    if (err)
        return fail(err);
    if (attr->comp_mask)
        return fail(EOPNOTSUPP);
    if (!attr->length || attr->length > dm_limit() || attr->log_align_req > 12)
        return fail(EINVAL);
    struct hca_dm *dm = calloc(1, sizeof(*dm));
    if (!dm)
        return fail(ENOMEM);
    /* A multiple of the alignment: blocks of the arena are aligned to their own size, up to a page. */
    dm->length = round_up(attr->length, 4);
    dm->memory = arena_alloc(round_up(dm->length, 4096));
    if (!dm->memory) {
        free(dm);
        return NULL;
    }
    dm->owner = proc_self;
    dm->ibv.context = context;
    dm->ibv.memcpy_to_dm = copy_to_dm;
    dm->ibv.memcpy_from_dm = copy_from_dm;
    dm->ibv.handle = seg_offset(dm->memory) >> 12;
    return &dm->ibv;
}

int verbs_free_dm(struct ibv_dm *ibv)
{
    struct hca_dm *dm = (struct hca_dm *)ibv;

    if (load_relaxed(&dm->users) > 0)
        return EBUSY;
    if (dm->owner == proc_self)
        arena_free(dm->memory, round_up(dm->length, 4096));
    free(dm);
    return 0;
}

struct ibv_mr *verbs_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *ibv, uint64_t offset,
                               size_t length, unsigned int access)
{
    struct hca_dm *dm = (struct hca_dm *)ibv;

    if (!access_is_valid(access) || !(access & IBV_ACCESS_ZERO_BASED) || offset > dm->length ||
        length > dm->length - offset)
        return fail(EINVAL);
    struct ibv_mr *mr = new_mr(pd, MR_DEVICE, NULL, seg_offset(dm->memory) + offset, 0, length,
                               access);
    if (mr) {
        ((struct hca_mr *)mr)->dm = dm;
        atomic_fetch_add(&dm->users, 1);
    }
    return mr;
}
