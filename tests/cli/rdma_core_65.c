/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes the calls of a program built for a newer rdma-core, found by name and version because the
 * installed headers may lack them. Exits with 0 if every call works or fails with EOPNOTSUPP.
 */
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVENT_ADDRINFO_RESOLVED 16
#define EVENT_USER              18
#define ASK_SUBNET_MANAGER      0x10
#define UNKNOWN_BIT             (1u << 30)

#define CHECK(condition)                                                                 \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            fprintf(stderr, "newer: line %d: %s, errno %d\n", __LINE__, #condition, errno); \
            exit(1);                                                                     \
        }                                                                                \
    } while (0)

#define REFUSED(call) (errno = 0, !(call) && errno == EOPNOTSUPP)

static void *find(const char *library, const char *name, const char *version)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    void *symbol = handle ? dlvsym(handle, name, version) : NULL;

    if (!symbol) {
        fprintf(stderr, "newer: %s\n", dlerror());
        exit(1);
    }
    return symbol;
}

#define VERB(version, type, name, ...) \
    type (*name)(__VA_ARGS__) = find("libibverbs.so.1", #name, "IBVERBS_" version)
#define CM(version, type, name, ...) \
    type (*name)(__VA_ARGS__) = find("librdmacm.so.1", #name, "RDMACM_" version)

struct mr_init_attr {
    size_t length;
    int access;
    uint64_t comp_mask, iova;
    void *addr;
    int fd;
    uint64_t fd_offset;
    void *dmah, *buf;
};

static void try_buffers(struct ibv_pd *pd)
{
    VERB("1.17", void *, ibv_alloc_buf, struct ibv_pd *, size_t, void **);
    VERB("1.17", struct ibv_mr *, ibv_reg_buf_mr, struct ibv_pd *, void *, void *, size_t, int);
    VERB("1.17", void, ibv_free_buf, void *);
    VERB("1.18", int, ibv_export_buf_dmabuf_fd, void *);
    VERB("1.15", struct ibv_mr *, ibv_reg_mr_ex, struct ibv_pd *, struct mr_init_attr *);
    void *buf;
    char *memory = ibv_alloc_buf(pd, 8192, &buf);

    CHECK(memory);
    struct ibv_mr *mr = ibv_reg_buf_mr(pd, buf, memory + 4096, 4096, IBV_ACCESS_LOCAL_WRITE);
    CHECK(mr && mr->addr == memory + 4096 && mr->length == 4096 && !ibv_dereg_mr(mr));
    CHECK(!ibv_reg_buf_mr(pd, buf, memory + 4096, 4097, 0) && errno == EINVAL);
    CHECK(!ibv_reg_buf_mr(pd, buf, memory - 1, 1, 0) && errno == EINVAL);
    CHECK(ibv_export_buf_dmabuf_fd(buf) == -1 && errno == ENODATA);
    struct mr_init_attr attr = { .length = 8192, .comp_mask = 3, .addr = memory };
    CHECK((mr = ibv_reg_mr_ex(pd, &attr)) && mr->addr == memory && !ibv_dereg_mr(mr));
    attr.comp_mask = 1;
    CHECK(!ibv_reg_mr_ex(pd, &attr) && errno == EINVAL);
    for (attr.comp_mask = 4; attr.comp_mask; attr.comp_mask <<= 1)
        CHECK(attr.comp_mask == 1 << 5 || REFUSED(ibv_reg_mr_ex(pd, &attr)));
    ibv_free_buf(buf);
}

static void try_refusals(struct ibv_context *context)
{
    VERB("1.15", void *, ibv_alloc_dmah, struct ibv_context *, void *);
    VERB("1.16", int, ibv_dm_export_dmabuf_fd, void *);
    VERB("1.18", int, _ibv_query_comp_cntr_caps, struct ibv_context *, void *, size_t);
    VERB("1.18", void *, ibv_create_comp_cntr, struct ibv_context *, void *);
    VERB("1.18", int, ibv_read_comp_cntr, void *, uint64_t *);
    struct ibv_parent_domain_init_attr parent = { .comp_mask = UNKNOWN_BIT };
    struct ibv_td_init_attr td = { .comp_mask = UNKNOWN_BIT };
    struct ibv_cq_init_attr_ex cq = { .cqe = 1, .comp_mask = UNKNOWN_BIT };
    struct ibv_qp_init_attr_ex qp = { .comp_mask = UNKNOWN_BIT };
    struct ibv_srq_init_attr_ex srq = { .comp_mask = UNKNOWN_BIT };
    struct ibv_xrcd_init_attr xrcd = { .comp_mask = UNKNOWN_BIT };
    struct ibv_alloc_dm_attr dm = { .length = 64, .comp_mask = UNKNOWN_BIT };
    struct ibv_qp_open_attr open_qp = { .comp_mask = UNKNOWN_BIT };
    uint64_t value;

    CHECK(REFUSED(ibv_alloc_dmah(context, NULL)));
    CHECK(ibv_dm_export_dmabuf_fd(NULL) == -1 && errno == EOPNOTSUPP);
    CHECK(_ibv_query_comp_cntr_caps(context, &value, sizeof(value)) == EOPNOTSUPP);
    CHECK(REFUSED(ibv_create_comp_cntr(context, NULL)));
    CHECK(ibv_read_comp_cntr(NULL, &value) == EOPNOTSUPP);
    CHECK(REFUSED(ibv_alloc_parent_domain(context, &parent)));
    CHECK(REFUSED(ibv_alloc_td(context, &td)));
    CHECK(REFUSED(ibv_create_cq_ex(context, &cq)));
    CHECK(REFUSED(ibv_create_qp_ex(context, &qp)));
    CHECK(REFUSED(ibv_create_srq_ex(context, &srq)));
    CHECK(REFUSED(ibv_open_xrcd(context, &xrcd)));
    CHECK(REFUSED(ibv_alloc_dm(context, &dm)));
    CHECK(REFUSED(ibv_open_qp(context, &open_qp)));
}

static void try_port(struct ibv_context *context)
{
    VERB("1.16", int, ibv_query_port_speed, struct ibv_context *, uint32_t, uint64_t *);
    VERB("PRIVATE_65", const char *, ibv_wr_opcode_str, int);
    struct {
        struct ibv_port_attr known;
        uint32_t added[4];
    } attr;
    uint64_t speed;

    memset(&attr, 0xff, sizeof(attr));
    CHECK(!verbs_get_ctx(context)->query_port(context, 1, &attr.known, sizeof(attr)));
    for (unsigned i = 0; i < 4; i++)
        CHECK(attr.added[i] == 0);
    CHECK(attr.known.active_width == 2 && attr.known.active_speed == 64);
    CHECK(!ibv_query_port_speed(context, 1, &speed) && speed == 2000);
    CHECK(ibv_query_port_speed(context, 200, &speed) == EINVAL);
    CHECK(!strcmp(ibv_wr_opcode_str(IBV_WR_SEND), "send"));
}

static void expect(struct rdma_event_channel *channel, unsigned type, uint64_t arg)
{
    struct rdma_cm_event *event;

    CHECK(!rdma_get_cm_event(channel, &event) && event->event == type && !event->status);
    CHECK(!memcmp(&event->param, &arg, sizeof(arg)));
    rdma_ack_cm_event(event);
}

static void try_cm(void)
{
    CM("1.4", int, rdma_resolve_addrinfo, struct rdma_cm_id *, const char *, const char *,
       const struct rdma_addrinfo *);
    CM("1.4", int, rdma_query_addrinfo, struct rdma_cm_id *, struct rdma_addrinfo **);
    CM("1.4", int, rdma_write_cm_event, struct rdma_cm_id *, unsigned, int, uint64_t);
    CM("1.5", int, repoll_create, int);
    struct rdma_addrinfo *info, hints = { .ai_flags = ASK_SUBNET_MANAGER };
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_id *id;

    CHECK(channel && !rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
    CHECK(rdma_query_addrinfo(id, &info) == -1 && errno == ENOENT);
    CHECK(!rdma_resolve_addrinfo(id, "127.0.0.1", "7471", NULL));
    expect(channel, EVENT_ADDRINFO_RESOLVED, 0);
    CHECK(rdma_resolve_addrinfo(id, "127.0.0.1", "7471", NULL) == -1 && errno == EBUSY);
    CHECK(!rdma_query_addrinfo(id, &info) && info->ai_dst_addr);
    rdma_freeaddrinfo(info);
    CHECK(rdma_resolve_addrinfo(id, NULL, "7471", &hints) == -1 && errno == EOPNOTSUPP);
    CHECK(!rdma_write_cm_event(id, EVENT_USER, 0, 0x123456789));
    expect(channel, EVENT_USER, 0x123456789);
    CHECK(rdma_write_cm_event(id, RDMA_CM_EVENT_ESTABLISHED, 0, 0) == -1 && errno == EINVAL);
    CHECK(!rdma_resolve_addrinfo(id, "127.0.0.1", "7471", NULL));
    CHECK(!rdma_destroy_id(id));
    rdma_destroy_event_channel(channel);
    CHECK(repoll_create(0) == -1 && errno == EOPNOTSUPP);
}

int main(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;
    struct ibv_pd *pd = context ? ibv_alloc_pd(context) : NULL;

    CHECK(pd);
    try_buffers(pd);
    try_refusals(context);
    try_port(context);
    try_cm();
    return 0;
}
