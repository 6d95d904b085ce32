/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/mad.h"

#include "dma/agent.h"
#include "hca/proc.h"
#include "hca/traffic.h"
#include "util/fault.h"

#include <pthread.h>

#define LAST_TRIES 100

static atomic_bool last_poll_was_empty = true;

/* All sends are packets: there is no faster way for short ones. */
static bool send_fast(struct hca_qp *qp, const struct ibv_sge *sge, unsigned flags)
{
    return false;
}

static void progress(void)
{
}

/* A poll that is to find something in the CQ need not look into the sockets first. */
static bool poll_begin(struct hca_cq *cq)
{
    store_relaxed(&wire_service_polls, load_relaxed(&wire_service_polls) + 1); /* about so many */
    if (load_relaxed(&last_poll_was_empty))
        wire_receive(false);
    return true;
}

/* A program that has found something is likely to answer, and then to poll again. So its next
 * request goes first, together with the acknowledgement. If it does neither, the service thread
 * sends that. */
static void poll_end(int count)
{
    store_relaxed(&last_poll_was_empty, count == 0);
    if (!wire_receive_owes())
        return;
    atomic_thread_fence(memory_order_seq_cst);
    bool later = count || wire_receive_expects_more();
    if (!later || !wire_service_looks())
        wire_receive_answer(true);
}

/* A child shares its parent's sockets: if it kept them open, the kernel would give it packets. */
static void forget_in_child(void)
{
    wire_port_close();
    wire_qp_forget();
    wire_receive_forget();
    wire_batch_forget();
    wire_peer_forget();
}

static int start(void)
{
    static bool watches_forks;
    int err;

    if ((err = agent_init()) || (err = fault_init()) || (err = wire_inject_read()) ||
        (err = wire_port_open()))
        return err;
    if (!watches_forks)
        pthread_atfork(NULL, NULL, forget_in_child);
    watches_forks = true;
    if ((err = wire_service_start()))
        wire_port_close();
    return err;
}

static void stop(void)
{
    if (hca_mad_agent)
        hca_mad_agent->leave();
    wire_service_stop();
    /* Packets for other processes of this host may wait in our sockets. */
    for (int tries = 0; tries < LAST_TRIES && wire_receive(true); tries++)
        ;
    wire_receive_answer(true);
    agent_stop();
}

const struct hca_engine wire_engine = {
    .name = "wire",
    .send = wire_qp_post,
    .send_fast = send_fast,
    .progress = progress,
    .sq_flush = wire_qp_flush,
    .start = start,
    .stop = stop,
    .start_copy_agent = agent_start,
    .port_traffic = traffic_of_port,
    .poll_begin = poll_begin,
    .poll_end = poll_end,
    .qp_modified = wire_qp_modified,
    .mtu = wire_port_mtu,
    .gid = wire_port_gid,
    .fabric = wire_port_fabric,
    .send_mad = wire_mad_send,
};
