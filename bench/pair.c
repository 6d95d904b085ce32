/* SPDX-License-Identifier: BSD-2-Clause */
#include "pair.h"

#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>

#define PORT              1
#define RETRY_COUNT       7
#define RNR_RETRY_FOREVER 7
#define ACK_TIMEOUT       14
#define RNR_TIMER_10_US   1
#define REMOTE_ACCESS                                                            \
    (IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

struct memory_address {
    uint64_t source;
    uint64_t landing;
    uint32_t key;
    uint32_t unused;
};

struct qp_address {
    uint32_t qpn;
    uint16_t lid;
    uint16_t unused;
};

static void open_device(struct pair *pair)
{
    int count = 0;
    struct ibv_device **list = ibv_get_device_list(&count);
    const char *wanted = pair->config.device;
    struct ibv_device_attr limits;

    if (!list || !count)
        errx(1, "no RDMA device: run this program with `verbena run`");
    for (int i = 0; i < count && !pair->context; i++) {
        if (!wanted || !strcmp(wanted, ibv_get_device_name(list[i])))
            pair->context = ibv_open_device(list[i]);
    }
    ibv_free_device_list(list);
    if (!pair->context)
        err(1, "cannot open device %s", wanted ? wanted : "");
    if (ibv_query_device(pair->context, &limits))
        err(1, "ibv_query_device");
    pair->max_read_depth = limits.max_qp_rd_atom < 16 ? limits.max_qp_rd_atom : 16;
    if (ibv_query_port(pair->context, PORT, &pair->port))
        err(1, "ibv_query_port");
}

static size_t whole_pages(size_t size)
{
    return (size + 4095) & ~(size_t)4095;
}

/* Removed at once, so that nothing stays behind. */
static void *allocate_segment(size_t size)
{
    int id = shmget(IPC_PRIVATE, size, IPC_CREAT | 0600);
    void *memory = id < 0 ? (void *)-1 : shmat(id, NULL, 0);

    if (memory == (void *)-1)
        err(1, "a System V segment of %zu bytes", size);
    shmctl(id, IPC_RMID, NULL);
    return memory;
}

static void allocate_buffers(struct pair *pair)
{
    size_t half = whole_pages(pair->config.size);
    void *memory;

    if (pair->config.heap) {
        memory = malloc(2 * half);
        if (!memory)
            err(1, "malloc");
    } else if (pair->config.segment) {
        memory = allocate_segment(2 * half);
    } else {
        memory = mmap(NULL, 2 * half, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
            err(1, "mmap");
    }
    memset(memory, 0, 2 * half);
    pair->source = memory;
    pair->landing = pair->source + half;
    pair->mr =
        ibv_reg_mr(pair->pd, memory, 2 * half,
                   IBV_ACCESS_LOCAL_WRITE | REMOTE_ACCESS);
    if (!pair->mr)
        err(1, "ibv_reg_mr");
}

static void swap_memory_addresses(struct pair *pair)
{
    struct memory_address mine = {
        .source = (uintptr_t)pair->source,
        .landing = (uintptr_t)pair->landing,
        .key = pair->mr->rkey,
    };
    struct memory_address theirs;

    harness_swap(&pair->peer, &mine, &theirs, sizeof(mine));
    pair->remote_source = theirs.source;
    pair->remote_landing = theirs.landing;
    pair->remote_key = theirs.key;
}

void pair_open(struct pair *pair, const struct pair_config *config, struct harness_peer peer)
{
    *pair = (struct pair){ .peer = peer, .config = *config };
    open_device(pair);
    pair->pd = ibv_alloc_pd(pair->context);
    if (!pair->pd)
        err(1, "ibv_alloc_pd");
    pair->cq = ibv_create_cq(pair->context, (int)config->cq_entries, NULL, NULL, 0);
    if (!pair->cq)
        err(1, "ibv_create_cq of %u entries", config->cq_entries);
    allocate_buffers(pair);
    swap_memory_addresses(pair);
}

static struct ibv_qp *create_qp(struct pair *pair)
{
    struct ibv_qp_init_attr init = {
        .send_cq = pair->cq,
        .recv_cq = pair->cq,
        .cap = { .max_send_wr = pair->config.send_depth,
                 .max_recv_wr = pair->config.recv_depth,
                 .max_send_sge = 1,
                 .max_recv_sge = 1,
                 .max_inline_data = pair->config.inline_bytes },
        .qp_type = IBV_QPT_RC,
    };
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = PORT,
        .qp_access_flags = REMOTE_ACCESS,
    };
    struct ibv_qp *qp = ibv_create_qp(pair->pd, &init);

    if (!qp)
        err(1, "ibv_create_qp");
    if (ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
        err(1, "ibv_modify_qp to INIT");
    return qp;
}

static void join_qp(struct pair *pair, struct ibv_qp *qp, const struct qp_address *remote)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = pair->port.active_mtu,
        .dest_qp_num = remote->qpn,
        .max_dest_rd_atomic = (uint8_t)pair->max_read_depth,
        .min_rnr_timer = RNR_TIMER_10_US,
        .ah_attr = { .dlid = remote->lid, .port_num = PORT },
    };

    if (ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
        err(1, "ibv_modify_qp to RTR");
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS,
        .timeout = ACK_TIMEOUT,
        .retry_cnt = RETRY_COUNT,
        .rnr_retry = RNR_RETRY_FOREVER,
        .max_rd_atomic = (uint8_t)pair->max_read_depth,
    };
    if (ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                          IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC))
        err(1, "ibv_modify_qp to RTS");
}

void pair_connect(struct pair *pair, unsigned count)
{
    unsigned first = pair->qp_count, total = first + count;
    struct qp_address *mine = calloc(count, sizeof(*mine));
    struct qp_address *theirs = calloc(count, sizeof(*theirs));

    pair->qps = realloc(pair->qps, total * sizeof(*pair->qps));
    if (!mine || !theirs || !pair->qps)
        err(1, "no memory for %u queue pairs", total);
    for (unsigned i = 0; i < count; i++) {
        pair->qps[first + i] = create_qp(pair);
        mine[i] = (struct qp_address){ .qpn = pair->qps[first + i]->qp_num, .lid = pair->port.lid };
    }
    harness_swap(&pair->peer, mine, theirs, count * sizeof(*mine));
    for (unsigned i = 0; i < count; i++)
        join_qp(pair, pair->qps[first + i], &theirs[i]);
    pair->qp_count = total;
    free(mine);
    free(theirs);
    harness_barrier(&pair->peer);
}

void pair_close(struct pair *pair)
{
    for (unsigned i = 0; i < pair->qp_count; i++)
        ibv_destroy_qp(pair->qps[i]);
    free(pair->qps);
    ibv_destroy_cq(pair->cq);
    ibv_dereg_mr(pair->mr);
    if (pair->config.segment)
        shmdt(pair->source);
    else if (pair->config.heap)
        free(pair->source);
    else
        munmap(pair->source, 2 * whole_pages(pair->config.size));
    ibv_dealloc_pd(pair->pd);
    ibv_close_device(pair->context);
}
