/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric.h"

#include "hca/segment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void choose_fabric(void)
{
    char name[64];

    snprintf(name, sizeof(name), "unit-%d", (int)getpid());
    setenv("VERBENA_FABRIC", name, 1);
}

static pid_t first;
static int first_waits_for;

void fabric_let_another_be_first(void)
{
    int ready[2], end[2], err = -1;

    choose_fabric();
    assert_int_equal(pipe(ready) | pipe(end), 0);
    first = fork();
    if (!first) {
        close(end[1]);
        err = segment_attach();
        if (write(ready[1], &err, sizeof(err)) == sizeof(err))
            (void)!read(end[0], &err, 1);
        _exit(0);
    }
    assert_int_equal(read(ready[0], &err, sizeof(err)), sizeof(err));
    assert_int_equal(err, 0);
    close(ready[0]);
    close(ready[1]);
    close(end[0]);
    first_waits_for = end[1];
}

void fabric_end_the_first(void)
{
    close(first_waits_for);
    assert_int_equal(waitpid(first, NULL, 0), first);
}

struct ibv_context *fabric_open(void)
{
    static struct ibv_context *context;

    if (context)
        return context;
    choose_fabric();
    struct ibv_device **list = ibv_get_device_list(NULL);
    assert_non_null(list);
    context = ibv_open_device(list[0]);
    assert_non_null(context);
    ibv_free_device_list(list);
    return context;
}

struct ibv_qp *fabric_rc_qp(struct ibv_pd *pd, struct ibv_cq *cq, unsigned depth)
{
    struct ibv_qp_init_attr init = {
        .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
        .cap = { .max_send_wr = depth, .max_recv_wr = depth, .max_send_sge = 4, .max_recv_sge = 4,
                 .max_inline_data = 64 },
    };
    struct ibv_qp *qp = ibv_create_qp(pd, &init);

    assert_non_null(qp);
    return qp;
}

static void bring_up(struct ibv_qp *qp, uint32_t dest_qpn, uint16_t lid)
{
    struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1,
        .qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
                           IBV_ACCESS_REMOTE_ATOMIC };
    struct ibv_qp_attr rtr = { .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024,
        .dest_qp_num = dest_qpn, .max_dest_rd_atomic = 1, .min_rnr_timer = 1,
        .ah_attr = { .dlid = lid, .port_num = 1 } };
    struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS, .timeout = 10, .retry_cnt = 1,
        .rnr_retry = 7, .max_rd_atomic = 1 };

    assert_int_equal(ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                                                  IBV_QP_ACCESS_FLAGS), 0);
    assert_int_equal(ibv_modify_qp(qp, &rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
                                                 IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                                 IBV_QP_MAX_DEST_RD_ATOMIC |
                                                 IBV_QP_MIN_RNR_TIMER), 0);
    assert_int_equal(ibv_modify_qp(qp, &rts, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                                 IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                                 IBV_QP_MAX_QP_RD_ATOMIC), 0);
}

void fabric_connect(struct ibv_qp *a, struct ibv_qp *b)
{
    struct ibv_port_attr port;

    assert_int_equal(ibv_query_port(a->context, 1, &port), 0);
    bring_up(a, b->qp_num, port.lid);
    bring_up(b, a->qp_num, port.lid);
}

struct ibv_qp *fabric_ud_qp(struct ibv_pd *pd, struct ibv_cq *send_cq, struct ibv_cq *recv_cq,
                            uint32_t qkey)
{
    struct ibv_qp_init_attr init = {
        .send_cq = send_cq, .recv_cq = recv_cq, .qp_type = IBV_QPT_UD,
        .cap = { .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 2, .max_recv_sge = 2 },
    };
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = qkey };
    struct ibv_qp *qp = ibv_create_qp(pd, &init);

    assert_non_null(qp);
    assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                                                  IBV_QP_QKEY), 0);
    attr.qp_state = IBV_QPS_RTR;
    assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
    attr.qp_state = IBV_QPS_RTS;
    assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
    return qp;
}

static FILE *log_file;
static int standard_error;

void fabric_log_begin(void)
{
    log_file = tmpfile();
    assert_non_null(log_file);
    standard_error = dup(STDERR_FILENO);
    dup2(fileno(log_file), STDERR_FILENO);
}

const char *fabric_log_end(void)
{
    static char text[2048];

    dup2(standard_error, STDERR_FILENO);
    close(standard_error);
    rewind(log_file);
    text[fread(text, 1, sizeof(text) - 1, log_file)] = '\0';
    fclose(log_file);
    return text;
}
