/* SPDX-License-Identifier: BSD-2-Clause */
/* One process: connect, run the schedule, disconnect dead peers, reconnect to survivors. */
#include "worker.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define DEATH_NOTICE_US 5000000u
#define MOURN_US        8000000u

static struct worker *the_worker;

static void fail_with(struct worker *worker, const char *prefix, const char *fmt, va_list args)
{
    int none = 0;

    if (atomic_compare_exchange_strong(&worker->board->failed, &none, 1)) {
        int n = snprintf(worker->board->report, REPORT_BYTES, "%s", prefix);
        vsnprintf(worker->board->report + n, REPORT_BYTES - n, fmt, args);
    }
    _exit(1);
}

void worker_fail(struct worker *worker, const char *fmt, ...)
{
    char prefix[64];
    va_list args;

    snprintf(prefix, sizeof(prefix), "process %d: ", worker->me);
    va_start(args, fmt);
    fail_with(worker, prefix, fmt, args);
    _exit(1);
}

void endpoint_fail(struct endpoint *ep, const char *fmt, ...)
{
    char prefix[96];
    va_list args;

    snprintf(prefix, sizeof(prefix), "process %d, link %d (%s to %d): ", ep->worker->me,
             ep->link->index, transport_name[ep->link->transport], ep->link->side[!ep->side].proc);
    va_start(args, fmt);
    fail_with(ep->worker, prefix, fmt, args);
    _exit(1);
}

static int peer_of(const struct endpoint *ep)
{
    return ep->link->side[!ep->side].proc;
}

static struct endpoint *find_endpoint(struct worker *worker, int link, int side)
{
    for (int i = 0; i < worker->endpoints; i++) {
        struct endpoint *ep = &worker->endpoint[i];
        if (ep->link->index == link && ep->side == side)
            return ep;
    }
    return NULL;
}

static void oob_deliver(struct endpoint *ep, const struct oob *msg)
{
    switch (msg->type) {
    case OOB_HELLO:
        ep->theirs = msg->wire;
        ep->have_hello = true;
        break;
    case OOB_READY:
        ep->peer_ready = true;
        break;
    default:
        ep->peer_done = true;
        ep->done_at_round = ep->worker->empty_rounds;
    }
}

static void oob_send(struct worker *worker, int to, const struct oob *msg)
{
    if (worker->peer[to].dead)
        return;
    if (send(worker->peer[to].fd, msg, sizeof(*msg), MSG_NOSIGNAL) < 0 && errno != EPIPE &&
        errno != ECONNRESET)
        worker_fail(worker, "out-of-band send: %s", strerror(errno));
}

static void endpoint_tell(struct endpoint *ep, enum oob_type type)
{
    struct oob msg = { .type = type, .link = ep->link->index, .wire = ep->mine };

    if (peer_of(ep) == ep->worker->me)
        oob_deliver(find_endpoint(ep->worker, ep->link->index, !ep->side), &msg);
    else
        oob_send(ep->worker, peer_of(ep), &msg);
}

static void peer_message(struct worker *worker, int from, const struct oob *msg)
{
    struct peer *peer = &worker->peer[from];

    switch (msg->type) {
    case OOB_AGAIN:
        peer->again = *msg;
        peer->have_again = true;
        break;
    case OOB_AGAIN_READY:
        peer->again_ready = true;
        break;
    case OOB_AGAIN_DONE:
        peer->again_done = true;
        break;
    default: {
        const struct plan_link *link = &worker->plan->link[msg->link];
        oob_deliver(find_endpoint(worker, msg->link, link->side[0].proc == worker->me ? 0 : 1),
                    msg);
    }
    }
}

static bool drain_peer(struct worker *worker, int from)
{
    struct peer *peer = &worker->peer[from];
    bool progress = false;
    struct oob msg;

    while (from != worker->me && !peer->dead) {
        ssize_t n = recv(peer->fd, &msg, sizeof(msg), MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        if (n == sizeof(msg)) {
            peer_message(worker, from, &msg);
        } else {
            peer->dead = true;
            worker->someone_died = true;
        }
        progress = true;
    }
    return progress;
}

static bool drain_peers(struct worker *worker)
{
    bool progress = false;

    for (int p = 0; p < worker->plan->procs; p++)
        progress |= drain_peer(worker, p);
    return progress;
}

static bool drain_cqs(struct worker *worker)
{
    struct ibv_wc wc[16];
    bool progress = false;

    for (int i = 0; i < worker->proc->cqs; i++) {
        int n = ibv_poll_cq(worker->cq[i], 16, wc);
        if (n < 0)
            worker_fail(worker, "ibv_poll_cq gave %d", n);
        for (int w = 0; w < n; w++)
            worker_completion(worker, &wc[w]);
        progress |= n > 0;
    }
    return progress;
}

static void take_event(struct worker *worker)
{
    struct ibv_cq *cq;
    void *context;

    if (ibv_get_cq_event(worker->channel, &cq, &context))
        worker_fail(worker, "ibv_get_cq_event: %s", strerror(errno));
    int index = (int)(intptr_t)context;
    if (index < 0 || index >= worker->proc->cqs || worker->cq[index] != cq)
        worker_fail(worker, "event of an unknown CQ");
    worker->unacked[index]++;
}

static bool channel_ready(struct worker *worker, int timeout_ms)
{
    struct pollfd fd = { .fd = worker->channel->fd, .events = POLLIN };

    return poll(&fd, 1, timeout_ms) > 0;
}

static void wait_for_events(struct worker *worker)
{
    struct pollfd fds[MAX_PROCS + 1] = { { .fd = worker->channel->fd, .events = POLLIN } };
    int count = 1;

    for (int i = 0; i < worker->proc->cqs; i++) {
        int err = ibv_req_notify_cq(worker->cq[i], 0);
        if (err)
            worker_fail(worker, "ibv_req_notify_cq: %s", strerror(err));
    }
    if (drain_cqs(worker))
        return;
    for (int p = 0; p < worker->plan->procs; p++)
        if (p != worker->me && !worker->peer[p].dead)
            fds[count++] = (struct pollfd){ .fd = worker->peer[p].fd, .events = POLLIN };
    int n = poll(fds, count, worker->awaits_credit ? 1 : 20);
    worker->awaits_credit = false;
    if (fds[0].revents & POLLIN)
        take_event(worker);
    else if (n == 0 && drain_cqs(worker) && !worker->someone_died && !channel_ready(worker, 500) &&
             poll(fds + 1, count - 1, 0) == 0) /* a peer may have died between the two */
        worker_fail(worker, "a completion came without its event");
}

static bool awaits_completion(const struct endpoint *ep)
{
    for (uint32_t i = ep->tail; i != ep->head; i++)
        if (ep->tx_failed || ep->ring[i % ep->plan->sq_depth].op.signalled)
            return true;
    return false;
}

static void mourn(struct endpoint *ep)
{
    bool connected = ep->state >= LINK_WIRED;
    bool reliable = !link_carries_header(ep->link);
    uint32_t promised =
        atomic_load(&ep->worker->board->side[ep->link->index][!ep->side].completed_receives);

    if (ep->state < LINK_MOURN) {
        ep->state = LINK_MOURN;
        ep->broken_since = rig_now_us();
        if (!connected) {
            ep->state = LINK_OVER;
            return;
        }
    }
    if (rig_now_us() - ep->broken_since > MOURN_US)
        endpoint_fail(ep,
                      "%u s after the peer's death: %u operations pending, %s error, %u messages "
                      "completed there and %u arrived",
                      MOURN_US / 1000000, ep->head - ep->tail, ep->broken ? "an" : "no", promised,
                      ep->rx_count);
    if (awaits_completion(ep))
        return;
    /* Receives posted by a dead process may still take a message; its loss must be detected. */
    if (reliable && !ep->broken) {
        endpoint_send_probe(ep);
        return;
    }
    if (ep->rx_count < promised && !ep->link->lossy)
        return;
    int err = rig_qp_error(ep->qp);
    if (err)
        endpoint_fail(ep, "modify to ERR: %s", strerror(err));
    ep->state = LINK_FLUSH;
}

static bool is_finished(struct endpoint *ep)
{
    if (!ep->peer_done || !ep->done_sent)
        return false;
    /* All messages of the peer were delivered before it reported so. */
    if (ep->link->lossy)
        return ep->worker->empty_rounds - ep->done_at_round >= 2;
    return ep->rx_count == ep->rx_total;
}

static bool advance_running(struct endpoint *ep)
{
    bool progress = false;

    while (endpoint_send_more(ep))
        progress = true;
    if (ep->tx_exhausted && ep->head == ep->tail && !ep->done_sent) {
        ep->done_sent = true;
        endpoint_tell(ep, OOB_DONE);
        progress = true;
    }
    if (is_finished(ep)) {
        check_landing(ep);
        ep->state = LINK_OVER;
        progress = true;
    }
    return progress;
}

static bool advance(struct endpoint *ep)
{
    struct peer *peer = &ep->worker->peer[peer_of(ep)];

    if (ep->state == LINK_OVER)
        return false;
    if (ep->state == LINK_FLUSH) {
        if (ep->recvs.outstanding == 0)
            ep->state = LINK_OVER;
        else if (rig_now_us() - ep->broken_since > MOURN_US)
            endpoint_fail(ep, "%u receives were not flushed", ep->recvs.outstanding);
        return false;
    }
    if (peer->dead && !(ep->peer_done && ep->done_sent)) {
        mourn(ep);
        return false;
    }
    if (ep->broken) {
        if (rig_now_us() - ep->broken_since > DEATH_NOTICE_US)
            endpoint_fail(ep, "an error, but the peer lives");
        return false;
    }
    if (ep->state == LINK_HELLO && ep->have_hello) {
        endpoint_connect(ep);
        endpoint_tell(ep, OOB_READY);
        ep->state = LINK_WIRED;
        return true;
    }
    if (ep->state == LINK_WIRED && ep->peer_ready)
        ep->state = LINK_RUN;
    return ep->state == LINK_RUN && advance_running(ep);
}

static bool all_over(const struct worker *worker)
{
    for (int i = 0; i < worker->endpoints; i++)
        if (worker->endpoint[i].state != LINK_OVER)
            return false;
    return true;
}

static void run_schedule(struct worker *worker)
{
    while (!all_over(worker)) {
        bool progress = drain_peers(worker);

        for (int i = 0; i < worker->endpoints; i++)
            progress |= advance(&worker->endpoint[i]);
        bool completions = drain_cqs(worker);
        worker->empty_rounds += !completions;
        if (progress || completions)
            continue;
        if (worker->channel)
            wait_for_events(worker);
        else
            sched_yield();
    }
}

static bool await_peer(struct worker *worker, int with, const bool *flag)
{
    while (!*flag && !worker->peer[with].dead) {
        struct pollfd fd = { .fd = worker->peer[with].fd, .events = POLLIN };
        poll(&fd, 1, 1000);
        drain_peer(worker, with);
    }
    return *flag;
}

static void greet(struct worker *worker, int with, struct ibv_qp *qp, struct ibv_cq *cq,
                  struct ibv_mr *mr, uint64_t *words)
{
    struct ibv_sge out = { .addr = (uintptr_t)&words[0], .length = 8, .lkey = mr->lkey };
    struct ibv_sge in = { .addr = (uintptr_t)&words[1], .length = 8, .lkey = mr->lkey };
    struct ibv_recv_wr recv_wr = { .wr_id = 1, .sg_list = &in, .num_sge = 1 }, *bad_recv;
    struct ibv_send_wr wr = { .wr_id = 2,
                              .sg_list = &out,
                              .num_sge = 1,
                              .opcode = IBV_WR_SEND,
                              .send_flags = IBV_SEND_SIGNALED };
    struct ibv_send_wr *bad;
    struct oob msg = { .type = OOB_AGAIN_READY };
    struct ibv_wc wc;

    if (ibv_post_recv(qp, &recv_wr, &bad_recv))
        worker_fail(worker, "posting a receive on the new connection");
    int err = rig_qp_connect(qp, 7, &worker->peer[with].again.wire.addr, 0, &rig_patient);
    if (err)
        worker_fail(worker, "connecting again to %d: %s", with, strerror(err));
    oob_send(worker, with, &msg);
    if (!await_peer(worker, with, &worker->peer[with].again_ready))
        return;
    if (ibv_post_send(qp, &wr, &bad))
        worker_fail(worker, "posting a send on the new connection");
    for (int left = 2; left; left--) {
        int n = rig_poll(cq, &wc, 8000);
        drain_peer(worker, with);
        if (worker->peer[with].dead)
            return;
        if (n != 1 || wc.status != IBV_WC_SUCCESS)
            worker_fail(worker, "a new connection with %d does not work: %s", with,
                        n == 1 ? ibv_wc_status_str(wc.status) : "no completion");
    }
    if (words[1] != rig_mix(with))
        worker_fail(worker, "a new connection with %d brought the wrong bytes", with);
    msg.type = OOB_AGAIN_DONE;
    oob_send(worker, with, &msg);
    await_peer(worker, with, &worker->peer[with].again_done);
}

static void meet_again(struct worker *worker, int with)
{
    uint64_t words[2] = { rig_mix(worker->me), 0 };
    struct ibv_cq *cq = ibv_create_cq(worker->rig.ctx, 8, NULL, NULL, 0);
    struct ibv_mr *mr = ibv_reg_mr(worker->rig.pd, words, sizeof(words), IBV_ACCESS_LOCAL_WRITE);
    struct ibv_qp_init_attr attr = {
        .send_cq = cq,
        .recv_cq = cq,
        .cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
        .qp_type = IBV_QPT_RC,
    };
    struct ibv_qp *qp = cq && mr ? ibv_create_qp(worker->rig.pd, &attr) : NULL;
    struct oob msg = { .type = OOB_AGAIN };

    if (!qp || rig_qp_init(qp, 0))
        worker_fail(worker, "resources for a new connection: %s", strerror(errno));
    rig_addr_of(&worker->rig, qp, 7, &msg.wire.addr);
    oob_send(worker, with, &msg);
    if (await_peer(worker, with, &worker->peer[with].have_again))
        greet(worker, with, qp, cq, mr, words);
    if (ibv_destroy_qp(qp) || ibv_destroy_cq(cq) || ibv_dereg_mr(mr))
        worker_fail(worker, "destroying the new connection");
}

/* Every process handles the pairs in the same order, which prevents deadlock. */
static void meet_survivors(struct worker *worker)
{
    for (int a = 0; a < worker->plan->procs; a++) {
        for (int b = a + 1; b < worker->plan->procs; b++) {
            int with = a == worker->me ? b : b == worker->me ? a : -1;
            if (with < 0)
                continue;
            drain_peer(worker, with);
            if (!worker->peer[with].dead)
                meet_again(worker, with);
        }
    }
}

/* Creates and destroys objects during the traffic. */
static void *churn(void *arg)
{
    struct worker *worker = arg;
    static uint8_t mem[65536];

    while (!atomic_load(&worker->churn_stop)) {
        struct ibv_mr *mr = ibv_reg_mr(worker->rig.pd, mem, sizeof(mem), IBV_ACCESS_LOCAL_WRITE);
        struct ibv_cq *cq = ibv_create_cq(worker->rig.ctx, 64, NULL, NULL, 0);
        struct ibv_qp_init_attr attr = {
            .send_cq = cq,
            .recv_cq = cq,
            .cap = { .max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1 },
            .qp_type = IBV_QPT_RC,
        };
        struct ibv_qp *qp = cq ? ibv_create_qp(worker->rig.pd, &attr) : NULL;

        if (!mr || !qp)
            worker_fail(worker, "creating objects beside the traffic: %s", strerror(errno));
        if (ibv_destroy_qp(qp) || ibv_destroy_cq(cq) || ibv_dereg_mr(mr))
            worker_fail(worker, "destroying objects beside the traffic");
        usleep(200);
    }
    return NULL;
}

static void describe(int sig)
{
    struct worker *worker = the_worker;

    for (int i = 0; i < worker->endpoints; i++) {
        const struct endpoint *ep = &worker->endpoint[i];
        char line[256];
        int n =
            snprintf(line, sizeof(line),
                     "# process %d link %d %s to %d: state %d, posted %u, retired %u of %u, "
                     "received %u of %u%s%s\n",
                     worker->me, ep->link->index, transport_name[ep->link->transport], peer_of(ep),
                     ep->state, ep->head, ep->tail, ep->plan->ops, ep->rx_count, ep->rx_total,
                     ep->broken ? ", broken" : "", ep->peer_done ? ", peer done" : "");
        if (write(STDERR_FILENO, line, n) < 0)
            return;
    }
}

static void collect_endpoints(struct worker *worker)
{
    for (int l = 0; l < worker->plan->links; l++) {
        for (int s = 0; s < 2; s++) {
            const struct plan_link *link = &worker->plan->link[l];
            if (link->side[s].proc != worker->me)
                continue;
            struct endpoint *ep = &worker->endpoint[worker->endpoints];
            ep->worker = worker;
            ep->index = worker->endpoints++;
            ep->link = link;
            ep->side = s;
            ep->plan = &link->side[s];
        }
    }
}

int worker_run(const struct plan *plan, struct board *board, int me, const int *fds)
{
    struct worker *worker = calloc(1, sizeof(*worker));

    worker->plan = plan;
    worker->proc = &plan->proc[me];
    worker->board = board;
    worker->me = me;
    the_worker = worker;
    signal(SIGUSR1, describe);
    for (int p = 0; p < plan->procs; p++)
        worker->peer[p].fd = fds[p];
    collect_endpoints(worker);
    worker_open(worker);
    for (int i = 0; i < worker->endpoints; i++)
        endpoint_open(&worker->endpoint[i]);
    for (int i = 0; i < worker->endpoints; i++)
        endpoint_tell(&worker->endpoint[i], OOB_HELLO);
    if (worker->proc->churn && pthread_create(&worker->churn, NULL, churn, worker))
        worker_fail(worker, "pthread_create");
    run_schedule(worker);
    if (!worker->someone_died)
        check_cells(worker);
    if (worker->proc->churn) {
        atomic_store(&worker->churn_stop, true);
        pthread_join(worker->churn, NULL);
    }
    meet_survivors(worker);
    for (int i = 0; i < worker->endpoints; i++)
        endpoint_close(&worker->endpoint[i]);
    worker_close(worker);
    free(worker);
    return 0;
}
