/* SPDX-License-Identifier: BSD-2-Clause */
/* Control operations: what it costs to create, connect and destroy objects, to post and to poll. */
#include "bench/experiments/groups.h"
#include "mr_lifecycle.h"
#include "object_lifecycle.h"
#include "post_poll.h"
#include "qp_lifecycle.h"
#include "runs.h"

static const struct object_lifecycle_spec cq_create = {
    .type = &object_cq,
    .spans = LIFECYCLE_SPANS({ "create", OBJECT_CREATE, OBJECT_CREATE }),
};
static const struct object_lifecycle_spec cq_destroy = {
    .type = &object_cq,
    .spans = LIFECYCLE_SPANS({ "destroy", OBJECT_DESTROY, OBJECT_DESTROY }),
};
static const struct object_lifecycle_spec pd_lifecycle = {
    .type = &object_pd,
    .spans = LIFECYCLE_SPANS({ "allocate", OBJECT_CREATE, OBJECT_CREATE },
                             { "deallocate", OBJECT_DESTROY, OBJECT_DESTROY }),
};
static const struct object_lifecycle_spec srq_lifecycle = {
    .type = &object_srq,
    .spans = LIFECYCLE_SPANS({ "create", OBJECT_CREATE, OBJECT_CREATE },
                             { "destroy", OBJECT_DESTROY, OBJECT_DESTROY }),
};
static const struct object_lifecycle_spec ah_lifecycle = {
    .type = &object_ah,
    .spans = LIFECYCLE_SPANS({ "create", OBJECT_CREATE, OBJECT_CREATE },
                             { "destroy", OBJECT_DESTROY, OBJECT_DESTROY }),
};

static const struct qp_lifecycle_spec qp_create = {
    .unconnected = LIFECYCLE_SPANS({ "create", QP_CREATE, QP_CREATE }),
};
static const struct qp_lifecycle_spec qp_connect = {
    .connected =
        LIFECYCLE_SPANS({ "connect", QP_TO_INIT, QP_TO_RTS }, { "to INIT", QP_TO_INIT, QP_TO_INIT },
                        { "to RTR", QP_TO_RTR, QP_TO_RTR }, { "to RTS", QP_TO_RTS, QP_TO_RTS }),
};
static const struct qp_lifecycle_spec qp_destroy = {
    .unconnected =
        LIFECYCLE_SPANS({ "unconnected", QP_UNCONNECTED_DESTROY, QP_UNCONNECTED_DESTROY }),
    .connected = LIFECYCLE_SPANS({ "connected", QP_DESTROY, QP_DESTROY }),
};

static const struct mr_lifecycle_spec mr_reg = {
    .touched = LIFECYCLE_SPANS({ "register", MR_REGISTER, MR_REGISTER }),
    .untouched = LIFECYCLE_SPANS({ "untouched", MR_REGISTER, MR_REGISTER }),
};
static const struct mr_lifecycle_spec mr_dereg = {
    .touched = LIFECYCLE_SPANS({ "deregister", MR_DEREGISTER, MR_DEREGISTER }),
};

const struct experiment experiments_control[] = {
    {
        .name = "qp-create",
        .title = "How long does it take to create a queue pair, by queue depth?",
        .source = "MIBA section 5.1, figure 4",
        .options = "--depths 16..4K --iterations 200 --warmup 10",
        .quick = "--depths 16,256,4K --iterations 50",
        .ranks = 1,
        .run = qp_lifecycle_run,
        .spec = &qp_create,
    },
    {
        .name = "qp-connect",
        .title = "How long does it take to connect a queue pair, by queue depth?",
        .source = "MIBA section 5.1, table 1",
        .options = "--depths 16..4K --iterations 200 --warmup 10",
        .quick = "--depths 16,256,4K --iterations 50",
        .ranks = 2,
        .run = qp_lifecycle_run,
        .spec = &qp_connect,
    },
    {
        .name = "qp-destroy",
        .title = "How long does it take to destroy a queue pair, connected or not?",
        .source = "MIBA section 5.1, table 1 and figure 4",
        .options = "--depths 16..4K --iterations 200 --warmup 10",
        .quick = "--depths 16,256,4K --iterations 50",
        .ranks = 2,
        .run = qp_lifecycle_run,
        .spec = &qp_destroy,
    },
    {
        .name = "cq-create",
        .title = "How long does it take to create a completion queue, by its size?",
        .source = "MIBA section 5.1, figure 3",
        .options = "--depths 16..64K --iterations 200 --warmup 10",
        .quick = "--depths 16,1K,64K --iterations 50",
        .ranks = 1,
        .run = object_lifecycle_run,
        .spec = &cq_create,
    },
    {
        .name = "cq-destroy",
        .title = "How long does it take to destroy a completion queue, by its size?",
        .source = "MIBA section 5.1, figure 3",
        .options = "--depths 16..64K --iterations 200 --warmup 10",
        .quick = "--depths 16,1K,64K --iterations 50",
        .ranks = 1,
        .run = object_lifecycle_run,
        .spec = &cq_destroy,
    },
    {
        .name = "mr-reg",
        .title = "How long does it take to register memory, touched before or not?",
        .source = "MIBA section 5.1, figure 2",
        .options = "--sizes 4K..64M --iterations 500 --warmup 10",
        .quick = "--sizes 4K,256K,16M --iterations 50",
        .ranks = 1,
        .run = mr_lifecycle_run,
        .spec = &mr_reg,
    },
    {
        .name = "mr-dereg",
        .title = "How long does it take to deregister memory?",
        .source = "MIBA section 5.1, figure 2",
        .options = "--sizes 4K..64M --iterations 500 --warmup 10",
        .quick = "--sizes 4K,256K,16M --iterations 50",
        .ranks = 1,
        .run = mr_lifecycle_run,
        .spec = &mr_dereg,
    },
    {
        .name = "post-send",
        .title = "How long does it take to post sends?",
        .source = "MIBA section 5.1, table 1",
        .options = "--sizes 8 --ops send,write,read --batches 1..16 --iterations 1000",
        .quick = "--batches 1,16 --iterations 200 --warmup 10",
        .ranks = 2,
        .run = post_poll_run,
        .spec = &(const struct post_poll_spec){ CALL_POST_SEND },
    },
    {
        .name = "post-recv",
        .title = "How long does it take to post receives?",
        .source = "MIBA section 5.1, table 1",
        .options = "--sizes 8 --ops send --batches 1..16 --iterations 1000",
        .quick = "--batches 1,16 --iterations 200 --warmup 10",
        .ranks = 2,
        .run = post_poll_run,
        .spec = &(const struct post_poll_spec){ CALL_POST_RECEIVE },
    },
    {
        .name = "poll-hit",
        .title = "How long does a poll take if it finds completions?",
        .source = "MIBA section 5.1, table 1",
        .options = "--sizes 8 --ops send --batches 1..16 --iterations 1000",
        .quick = "--batches 1,16 --iterations 200 --warmup 10",
        .ranks = 2,
        .run = post_poll_run,
        .spec = &(const struct post_poll_spec){ CALL_POLL },
    },
    {
        .name = "poll-empty",
        .title = "How long does a poll take if it finds nothing?",
        .source = "MIBA section 5.1, table 1",
        .options = "--batches 1..16 --iterations 10000",
        .quick = "--batches 1,16 --iterations 1000",
        .ranks = 1,
        .run = poll_empty_run,
    },
    {
        .name = "pd",
        .title = "How long does it take to allocate and to free a protection domain?",
        .source = "beyond the papers, by the method of MIBA section 5.1",
        .options = "--batches 1..16 --iterations 200 --warmup 10",
        .quick = "--batches 1,16 --iterations 50",
        .ranks = 1,
        .run = object_lifecycle_run,
        .spec = &pd_lifecycle,
    },
    {
        .name = "srq-create",
        .title = "How long does it take to create and to destroy a shared receive queue?",
        .source = "beyond the papers, by the method of MIBA section 5.1",
        .options = "--depths 16..4K --iterations 200 --warmup 10",
        .quick = "--depths 16,256,4K --iterations 50",
        .ranks = 1,
        .run = object_lifecycle_run,
        .spec = &srq_lifecycle,
    },
    {
        .name = "ah",
        .title = "How long does it take to create and to destroy an address handle?",
        .source = "beyond the papers, by the method of MIBA section 5.1",
        .options = "--batches 1..16 --iterations 200 --warmup 10",
        .quick = "--batches 1,16 --iterations 50",
        .ranks = 1,
        .run = object_lifecycle_run,
        .spec = &ah_lifecycle,
    },
    {
        .name = "mw-bind",
        .title = "How long does it take to bind a memory window, and to unbind it?",
        .source = "beyond the papers, by the method of MIBA section 5.1",
        .options = "--sizes 4K,64K,1M,16M --iterations 500 --warmup 10",
        .quick = "--sizes 4K,1M --iterations 100",
        .ranks = 2,
        .run = mw_bind_run,
    },
    { .name = NULL },
};
