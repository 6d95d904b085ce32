/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared memory that a connected, idle queue pair takes, seen from the segment's file. */
#include "pair.h"

#include <err.h>
#include <getopt.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* perftest's own defaults: what an ordinary program asks for. */
#define DEFAULT_SEND_DEPTH 128
#define DEFAULT_RECV_DEPTH 512
#define WARM_UP_QPS        32

/* Blocks, not length: a sparse file takes only what was touched. */
static uint64_t segment_bytes(void)
{
    const char *directory = getenv("VERBENA_SHM_DIR"), *fabric = getenv("VERBENA_FABRIC");
    char pattern[512];
    struct stat about;
    uint64_t bytes = 0;
    glob_t found;

    snprintf(pattern, sizeof(pattern), "%s/verbena-%u-%s*", directory ? directory : "/dev/shm",
             getuid(), fabric ? fabric : "default");
    if (glob(pattern, 0, NULL, &found))
        errx(1, "no segment matches %s", pattern);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        if (!stat(found.gl_pathv[i], &about))
            bytes += (uint64_t)about.st_blocks * 512;
    }
    globfree(&found);
    return bytes;
}

static void post_all_receives(struct pair *pair)
{
    struct ibv_sge landing = { (uintptr_t)pair->landing, (uint32_t)pair->config.size,
                               pair->mr->lkey };
    struct ibv_recv_wr work = { .sg_list = &landing, .num_sge = 1 }, *bad;

    for (unsigned q = 0; q < pair->qp_count; q++) {
        for (unsigned i = 0; i < pair->config.recv_depth; i++) {
            if (ibv_post_recv(pair->qps[q], &work, &bad))
                errx(1, "ibv_post_recv failed");
        }
    }
    harness_barrier(&pair->peer);
}

static void measure(struct pair *pair, unsigned count)
{
    uint64_t before, idle, posted;
    double each, growth;

    /* The first few pay for tables that later ones share. */
    pair_connect(pair, WARM_UP_QPS);
    before = segment_bytes();
    harness_barrier(&pair->peer);
    pair_connect(pair, count);
    idle = segment_bytes();
    harness_barrier(&pair->peer);
    post_all_receives(pair);
    posted = segment_bytes();
    harness_barrier(&pair->peer);
    if (!pair->peer.initiator)
        return;
    each = (double)(idle - before) / (2.0 * count);
    growth = (double)(posted - idle) / (2.0 * pair->qp_count);
    printf("{\"program\": \"footprint\", \"qps\": %u, \"send_depth\": %u, \"recv_depth\": %u, "
           "\"bytes\": %.0f, \"bytes_receives_posted\": %.0f}\n",
           2 * count, pair->config.send_depth, pair->config.recv_depth, each, each + growth);
}

static int usage(FILE *out, int status)
{
    fputs("usage: bench-footprint [--qps N]    N (1000) on each of two processes; prints a JSON "
          "line\n"
          "Reads VERBENA_SHM_DIR and VERBENA_FABRIC to find the segment.\n",
          out);
    return status;
}

int main(int argc, char **argv)
{
    static const struct option table[] = {
        { "qps", required_argument, NULL, 'q' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 },
    };
    struct pair_config config = {
        .send_depth = DEFAULT_SEND_DEPTH,
        .recv_depth = DEFAULT_RECV_DEPTH,
        .cq_entries = DEFAULT_SEND_DEPTH + DEFAULT_RECV_DEPTH,
        .size = 64,
    };
    unsigned count = 1000;
    struct pair pair;
    int c;

    while ((c = getopt_long(argc, argv, "h", table, NULL)) != -1) {
        if (c != 'q')
            return c == 'h' ? usage(stdout, 0) : usage(stderr, 2);
        count = (unsigned)harness_number("qps", optarg, 1, 100000);
    }
    if (optind != argc)
        return usage(stderr, 2);
    pair_open(&pair, &config, harness_split(argv));
    measure(&pair, count);
    pair_close(&pair);
    return harness_join(&pair.peer) ? 0 : 1;
}
