/* SPDX-License-Identifier: BSD-2-Clause */
/* Our own loop over the verbs API between two processes: latency, and rate or bandwidth. */
#include "pair.h"

#include <arpa/inet.h>
#include <err.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POLL_BATCH     16
#define RECV_BATCH_MAX 16
#define BYTE_AT(i)     ((uint8_t)((i)*7 + 1))

static const struct operation {
    const char *name;
    enum ibv_wr_opcode opcode;
} operations[] = {
    { "send", IBV_WR_SEND },
    { "write", IBV_WR_RDMA_WRITE },
    { "read", IBV_WR_RDMA_READ },
    { "add", IBV_WR_ATOMIC_FETCH_AND_ADD },
};

struct options {
    const struct operation *operation;
    bool rate;
    bool use_inline;
    bool overrun_receives;
    unsigned qps;
    unsigned window;
    unsigned burst;
    unsigned interval;
    unsigned recv_depth;
    unsigned iterations;
    unsigned repeats;
    struct pair_config pair;
};

struct receives {
    struct ibv_recv_wr work[RECV_BATCH_MAX];
    unsigned owed; /* taken by arrivals and not yet posted again */
};

struct loop {
    const struct options *o;
    struct pair *pair;
    struct ibv_sge source, landing;
    struct ibv_send_wr work;
    struct receives *receives;
    unsigned *unsignalled; /* per queue pair, posts since the last that asks for a completion */
    unsigned recv_batch, recv_posted;
    unsigned outstanding;
    uint32_t sent, consumed_there; /* messages of a stream, and how many the other side has seen */
    uint32_t arrived, expected, reported;
};

static void post_receives(struct loop *loop, unsigned q)
{
    struct ibv_recv_wr *bad;

    if (ibv_post_recv(loop->pair->qps[q], loop->receives[q].work, &bad))
        errx(1, "ibv_post_recv failed");
    loop->receives[q].owed -= loop->recv_batch;
}

/* A send's wr_id holds how many posts its completion accounts for; a receive's, its queue pair. */
static void reap(struct loop *loop)
{
    struct ibv_wc done[POLL_BATCH];
    int n = ibv_poll_cq(loop->pair->cq, POLL_BATCH, done);

    if (n < 0)
        errx(1, "ibv_poll_cq failed");
    for (int i = 0; i < n; i++) {
        if (done[i].status != IBV_WC_SUCCESS)
            errx(1, "completion: %s", ibv_wc_status_str(done[i].status));
        if (!(done[i].opcode & IBV_WC_RECV)) {
            loop->outstanding -= (unsigned)done[i].wr_id;
            continue;
        }
        loop->arrived++;
        if (done[i].wc_flags & IBV_WC_WITH_IMM)
            loop->consumed_there = ntohl(done[i].imm_data);
        if (++loop->receives[done[i].wr_id].owed == loop->recv_batch)
            post_receives(loop, (unsigned)done[i].wr_id);
    }
}

static void post(struct loop *loop, unsigned q, bool last)
{
    struct ibv_send_wr *bad;
    unsigned posts = ++loop->unsignalled[q];

    while (loop->outstanding >= loop->o->window)
        reap(loop);
    loop->outstanding++;
    loop->work.send_flags &= ~(unsigned)IBV_SEND_SIGNALED;
    /* The post that fills the window asks too, or nothing would ever empty it. */
    if (last || posts >= loop->o->interval || loop->outstanding == loop->o->window) {
        loop->work.send_flags |= IBV_SEND_SIGNALED;
        loop->work.wr_id = posts;
        loop->unsignalled[q] = 0;
    }
    if (ibv_post_send(loop->pair->qps[q], &loop->work, &bad))
        errx(1, "ibv_post_send failed");
}

static void wait_for_arrivals(struct loop *loop, unsigned count)
{
    loop->expected += count;
    while (loop->arrived != loop->expected)
        reap(loop);
}

static void wait_for_completions(struct loop *loop)
{
    while (loop->outstanding)
        reap(loop);
}

static double ping_pong(struct loop *loop)
{
    double start = harness_now();

    for (unsigned i = 0; i < loop->o->iterations; i++) {
        if (!loop->pair->peer.initiator)
            wait_for_arrivals(loop, 1);
        post(loop, i % loop->o->qps, false);
        if (loop->pair->peer.initiator)
            wait_for_arrivals(loop, 1);
    }
    return harness_now() - start;
}

/*
 * As programs on reliable connections do, a stream never has more messages under way than the other
 * side keeps receives posted, unless told to run into RNR.
 */
static void await_credit(struct loop *loop)
{
    unsigned room = loop->recv_posted - loop->recv_batch + 1;

    while (!loop->o->overrun_receives && loop->sent - loop->consumed_there >= room)
        reap(loop);
    loop->sent++;
}

static void report_consumed(struct loop *loop)
{
    loop->reported = loop->arrived;
    loop->work.opcode = IBV_WR_SEND_WITH_IMM;
    loop->work.imm_data = htonl(loop->arrived);
    post(loop, 0, true);
}

static void consume_stream(struct loop *loop)
{
    unsigned grant = loop->recv_posted / 4;

    loop->expected += loop->o->iterations;
    while (loop->arrived != loop->expected) {
        reap(loop);
        if (loop->arrived - loop->reported > grant && loop->arrived != loop->expected)
            report_consumed(loop);
    }
    report_consumed(loop);
}

static void post_stream(struct loop *loop)
{
    unsigned q = 0;

    for (unsigned i = 0, in_burst = 0; i < loop->o->iterations; i++) {
        if (loop->o->operation->opcode == IBV_WR_SEND)
            await_credit(loop);
        /* Close to the end every queue pair's last post must ask for its completion. */
        post(loop, q, loop->o->iterations - i <= loop->o->qps * loop->o->burst);
        if (++in_burst == loop->o->burst) {
            in_burst = 0;
            q = q + 1 == loop->o->qps ? 0 : q + 1;
        }
    }
}

/* Timed until the receiver tells that it has the last message: only what is delivered counts. */
static double send_stream(struct loop *loop)
{
    double start = harness_now();

    if (loop->pair->peer.initiator) {
        post_stream(loop);
        while (loop->consumed_there != loop->sent)
            reap(loop);
    } else {
        consume_stream(loop);
    }
    wait_for_completions(loop);
    return harness_now() - start;
}

static double one_sided(struct loop *loop)
{
    double start = harness_now();

    if (!loop->pair->peer.initiator)
        return 0;
    if (loop->o->rate) {
        post_stream(loop);
        wait_for_completions(loop);
    } else {
        for (unsigned i = 0; i < loop->o->iterations; i++) {
            post(loop, i % loop->o->qps, true);
            wait_for_completions(loop);
        }
    }
    return harness_now() - start;
}

static void prepare_receives(struct loop *loop)
{
    for (unsigned q = 0; q < loop->o->qps; q++) {
        struct receives *receives = &loop->receives[q];

        for (unsigned i = 0; i < loop->recv_batch; i++) {
            receives->work[i] = (struct ibv_recv_wr){
                .wr_id = q,
                .next = i + 1 < loop->recv_batch ? &receives->work[i + 1] : NULL,
                .sg_list = &loop->landing,
                .num_sge = 1,
            };
        }
        receives->owed = loop->recv_posted;
        while (receives->owed)
            post_receives(loop, q);
    }
}

static void loop_open(struct loop *loop, const struct options *o, struct pair *pair)
{
    uint32_t size = (uint32_t)o->pair.size;
    bool reads = o->operation->opcode == IBV_WR_RDMA_READ;
    bool adds = o->operation->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    unsigned quarter = o->recv_depth / 4;

    *loop = (struct loop){
        .o = o,
        .pair = pair,
        .source = { (uintptr_t)pair->source, size, pair->mr->lkey },
        .landing = { (uintptr_t)pair->landing, size, pair->mr->lkey },
        .receives = calloc(o->qps, sizeof(struct receives)),
        .unsignalled = calloc(o->qps, sizeof(unsigned)),
        .recv_batch = quarter > RECV_BATCH_MAX ? RECV_BATCH_MAX
                      : quarter                ? quarter
                                               : 1,
    };
    loop->recv_posted = o->recv_depth / loop->recv_batch * loop->recv_batch;
    if (!loop->receives || !loop->unsignalled)
        err(1, "calloc");
    loop->work = (struct ibv_send_wr){
        .sg_list = reads || adds ? &loop->landing : &loop->source,
        .num_sge = 1,
        .opcode = o->operation->opcode,
        .send_flags = o->use_inline ? IBV_SEND_INLINE : 0,
        .wr.rdma = { .remote_addr = reads ? pair->remote_source : pair->remote_landing,
                     .rkey = pair->remote_key },
    };
    if (adds) {
        loop->work.wr.atomic.compare_add = 1;
        loop->work.wr.atomic.rkey = pair->remote_key;
    }
    for (size_t i = 0; i < size; i++)
        pair->source[i] = BYTE_AT(i);
    if (o->operation->opcode == IBV_WR_SEND)
        prepare_receives(loop);
    harness_barrier(&pair->peer);
}

static void check_sum(const struct loop *loop)
{
    uint64_t sum, expected = (uint64_t)loop->o->iterations * (loop->o->repeats + 1);

    memcpy(&sum, loop->pair->landing, sizeof(sum));
    if (!loop->pair->peer.initiator && sum != expected)
        errx(1, "%lu additions made %lu", (unsigned long)expected, (unsigned long)sum);
}

static void check_landing(const struct loop *loop)
{
    bool lands_here =
        loop->o->operation->opcode == IBV_WR_SEND ||
        loop->pair->peer.initiator == (loop->o->operation->opcode == IBV_WR_RDMA_READ);

    for (size_t i = 0; lands_here && i < loop->o->pair.size; i++) {
        if (loop->pair->landing[i] != BYTE_AT(i))
            errx(1, "byte %zu arrived wrong", i);
    }
}

static void print_result(const struct options *o, struct harness_times *times)
{
    bool two_way = !o->rate && o->operation->opcode == IBV_WR_SEND;

    printf("{\"program\": \"live\", \"op\": \"%s\", \"mode\": \"%s\", \"size\": %zu, \"qps\": %u, "
           "\"window\": %u, \"burst\": %u, \"signal\": %u, \"inline\": %s, ",
           o->operation->name, o->rate ? "rate" : "latency", o->pair.size, o->qps, o->window,
           o->burst, o->interval, o->use_inline ? "true" : "false");
    harness_print_times(times, o->iterations * (two_way ? 2.0 : 1.0));
}

static void measure(const struct options *o, struct pair *pair)
{
    struct harness_times times = harness_times_new(o->repeats);
    struct loop loop;
    bool sends = o->operation->opcode == IBV_WR_SEND;
    double (*once)(struct loop *) = !sends ? one_sided : o->rate ? send_stream : ping_pong;

    loop_open(&loop, o, pair);
    once(&loop);
    for (unsigned r = 0; r < o->repeats; r++)
        times.seconds[r] = once(&loop);
    harness_barrier(&pair->peer);
    if (o->operation->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
        check_sum(&loop);
    else
        check_landing(&loop);
    if (pair->peer.initiator)
        print_result(o, &times);
    harness_times_free(&times);
    free(loop.receives);
    free(loop.unsignalled);
}

static int usage(FILE *out, int status)
{
    fputs("usage: bench-live [options]        two processes; prints one JSON line\n"
          "  --op send|write|read|add (send)   --mode latency|rate   (latency)\n"
          "  --size BYTES           (8)        --inline              payload inside the request\n"
          "  --qps N                (1)        queue pairs, all on one CQ\n"
          "  --window N             (128)      posts in flight over all queue pairs\n"
          "  --burst N              (1)        posts to a queue pair before the next one's turn\n"
          "  --signal N             (1)        a completion for every Nth post\n"
          "  --recv-depth N         (512)      receives kept posted on each queue pair\n"
          "  --rnr                             a send stream may run out of receives\n"
          "  --iters N --repeats N  (2000, 20) timed operations in a repeat, repeats\n"
          "  --heap                            buffers from malloc, not whole pages of their own\n"
          "  --segment                         buffers in a System V segment\n"
          "  --device NAME                     (the first)\n",
          out);
    return status;
}

static const struct operation *find_operation(const char *name)
{
    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
        if (!strcmp(operations[i].name, name))
            return &operations[i];
    }
    errx(2, "--op takes send, write, read or add, not '%s'", name);
}

static bool mode_is_rate(const char *name)
{
    if (strcmp(name, "rate") && strcmp(name, "latency"))
        errx(2, "--mode takes latency or rate, not '%s'", name);
    return !strcmp(name, "rate");
}

static void set_option(struct options *o, int option, const char *value)
{
    switch (option) {
    case 'o':
        o->operation = find_operation(value);
        break;
    case 'm':
        o->rate = mode_is_rate(value);
        break;
    case 's':
        o->pair.size = harness_number("size", value, 1, 1UL << 30);
        break;
    case 'q':
        o->qps = (unsigned)harness_number("qps", value, 1, 4096);
        break;
    case 'w':
        o->window = (unsigned)harness_number("window", value, 1, 8192);
        break;
    case 'b':
        o->burst = (unsigned)harness_number("burst", value, 1, 8192);
        break;
    case 'g':
        o->interval = (unsigned)harness_number("signal", value, 1, 8192);
        break;
    case 'd':
        o->recv_depth = (unsigned)harness_number("recv-depth", value, 1, 16384);
        break;
    case 'n':
        o->iterations = (unsigned)harness_number("iters", value, 1, 1000000000);
        break;
    case 'r':
        o->repeats = (unsigned)harness_number("repeats", value, 1, 100000);
        break;
    case 'i':
        o->use_inline = true;
        break;
    case 'N':
        o->overrun_receives = true;
        break;
    case 'H':
        o->pair.heap = true;
        break;
    case 'G':
        o->pair.segment = true;
        break;
    case 'D':
        o->pair.device = value;
        break;
    }
}

int main(int argc, char **argv)
{
    static const struct option table[] = {
        { "op", required_argument, NULL, 'o' },     { "mode", required_argument, NULL, 'm' },
        { "size", required_argument, NULL, 's' },   { "qps", required_argument, NULL, 'q' },
        { "window", required_argument, NULL, 'w' }, { "burst", required_argument, NULL, 'b' },
        { "signal", required_argument, NULL, 'g' }, { "recv-depth", required_argument, NULL, 'd' },
        { "iters", required_argument, NULL, 'n' },  { "repeats", required_argument, NULL, 'r' },
        { "inline", no_argument, NULL, 'i' },       { "rnr", no_argument, NULL, 'N' },
        { "segment", no_argument, NULL, 'G' },
        { "heap", no_argument, NULL, 'H' },         { "device", required_argument, NULL, 'D' },
        { "help", no_argument, NULL, 'h' },         { NULL, 0, NULL, 0 },
    };
    struct options o = {
        .operation = operations,
        .qps = 1,
        .window = 128,
        .burst = 1,
        .interval = 1,
        .recv_depth = 512,
        .iterations = 2000,
        .repeats = 20,
        .pair.size = 8,
    };
    struct pair pair;
    int c;

    while ((c = getopt_long(argc, argv, "h", table, NULL)) != -1) {
        if (c == 'h' || c == '?')
            return c == 'h' ? usage(stdout, 0) : usage(stderr, 2);
        set_option(&o, c, optarg);
    }
    if (optind != argc)
        return usage(stderr, 2);
    if (o.operation->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD && o.pair.size != sizeof(uint64_t))
        errx(2, "--op add takes a size of 8");
    o.pair.send_depth = o.window;
    o.pair.recv_depth = o.recv_depth;
    o.pair.inline_bytes = o.use_inline ? (unsigned)o.pair.size : 0;
    o.pair.cq_entries = o.window + o.qps * o.recv_depth;

    pair_open(&pair, &o.pair, harness_split(argv));
    pair_connect(&pair, o.qps);
    measure(&o, &pair);
    pair_close(&pair);
    return harness_join(&pair.peer) ? 0 : 1;
}
