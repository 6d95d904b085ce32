/* SPDX-License-Identifier: BSD-2-Clause */
/* What it costs to register memory: for the first time, and again. */
#include "harness.h"

#include <err.h>
#include <getopt.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE)

static struct ibv_pd *open_domain(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *context = list && *list ? ibv_open_device(*list) : NULL;
    struct ibv_pd *pd = context ? ibv_alloc_pd(context) : NULL;

    if (!pd)
        errx(1, "no RDMA device: run this program with `verbena run`");
    ibv_free_device_list(list);
    return pd;
}

static double register_once(struct ibv_pd *pd, void *memory, size_t size)
{
    double start = harness_now(), took;
    struct ibv_mr *mr = ibv_reg_mr(pd, memory, size, ACCESS);

    took = harness_now() - start;
    if (!mr)
        err(1, "ibv_reg_mr of %zu bytes", size);
    if (ibv_dereg_mr(mr))
        errx(1, "ibv_dereg_mr failed");
    return took;
}

/* Fresh memory each time, written before, as a program's buffers are. */
static void measure(struct ibv_pd *pd, size_t size, bool again, struct harness_times *times)
{
    for (unsigned r = 0; r < times->count; r++) {
        void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (memory == MAP_FAILED)
            err(1, "mmap of %zu bytes", size);
        memset(memory, 1, size);
        if (again)
            register_once(pd, memory, size);
        times->seconds[r] = register_once(pd, memory, size);
        munmap(memory, size);
    }
}

static int usage(FILE *out, int status)
{
    fputs("usage: bench-register [--size BYTES] [--repeats N] [--again]\n"
          "Prints one JSON line: microseconds to register memory, with --again memory that was\n"
          "registered before.\n",
          out);
    return status;
}

int main(int argc, char **argv)
{
    static const struct option table[] = {
        { "size", required_argument, NULL, 's' },
        { "repeats", required_argument, NULL, 'r' },
        { "again", no_argument, NULL, 'a' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 },
    };
    size_t size = 4096;
    unsigned repeats = 20;
    bool again = false;
    int c;

    while ((c = getopt_long(argc, argv, "h", table, NULL)) != -1) {
        switch (c) {
        case 's':
            size = harness_number("size", optarg, 1, 1UL << 32);
            break;
        case 'r':
            repeats = (unsigned)harness_number("repeats", optarg, 1, 100000);
            break;
        case 'a':
            again = true;
            break;
        default:
            return c == 'h' ? usage(stdout, 0) : usage(stderr, 2);
        }
    }
    if (optind != argc)
        return usage(stderr, 2);
    struct ibv_pd *pd = open_domain();
    struct harness_times times = harness_times_new(repeats);
    measure(pd, size, again, &times);
    printf("{\"program\": \"register\", \"size\": %zu, \"again\": %s, ", size,
           again ? "true" : "false");
    harness_print_times(&times, 1);
    harness_times_free(&times);
    return 0;
}
