/* SPDX-License-Identifier: BSD-2-Clause */
/* The primitives under any transport between two processes, with nothing around them. */
#include "harness.h"

#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

struct options {
    const char *primitive;
    size_t size;
    unsigned iterations;
    unsigned repeats;
};

struct target {
    pid_t pid;
    void *address;
};

static void *map_buffer(size_t size)
{
    void *buffer =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

    if (buffer == MAP_FAILED)
        err(1, "mmap of %zu bytes", size);
    memset(buffer, 1, size);
    return buffer;
}

static void print_head(const struct options *o)
{
    printf("{\"program\": \"baseline\", \"primitive\": \"%s\", \"size\": %zu, ", o->primitive,
           o->size);
}

typedef ssize_t copy_call(pid_t, const struct iovec *, unsigned long, const struct iovec *,
                          unsigned long, unsigned long);

/* The copied-to process sleeps meanwhile, as the passive side of a one-sided operation may. */
static void measure_copy(const struct options *o, const struct harness_peer *peer, copy_call *copy)
{
    struct target mine = { getpid(), map_buffer(o->size) }, theirs;
    struct harness_times times = harness_times_new(o->repeats);

    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    harness_swap(peer, &mine, &theirs, sizeof(mine));
    for (unsigned r = 0; peer->initiator && r < o->repeats; r++) {
        struct iovec local = { mine.address, o->size }, remote = { theirs.address, o->size };
        double start = harness_now();

        for (unsigned i = 0; i < o->iterations; i++) {
            if (copy(theirs.pid, &local, 1, &remote, 1, 0) != (ssize_t)o->size)
                err(3, "%s refused", o->primitive);
        }
        times.seconds[r] = harness_now() - start;
    }
    harness_barrier(peer);
    if (peer->initiator) {
        print_head(o);
        harness_print_times(&times, o->iterations);
    }
    harness_times_free(&times);
    munmap(mine.address, o->size);
}

static void measure_memcpy(const struct options *o)
{
    void *from = map_buffer(o->size), *to = map_buffer(o->size);
    struct harness_times times = harness_times_new(o->repeats);

    for (unsigned r = 0; r < o->repeats; r++) {
        double start = harness_now();

        for (unsigned i = 0; i < o->iterations; i++) {
            memcpy(to, from, o->size);
            __asm__ volatile("" ::"r"(to) : "memory");
        }
        times.seconds[r] = harness_now() - start;
    }
    print_head(o);
    harness_print_times(&times, o->iterations);
    harness_times_free(&times);
    munmap(from, o->size);
    munmap(to, o->size);
}

static _Atomic unsigned *share_page(const struct harness_peer *peer)
{
    char control[CMSG_SPACE(sizeof(int))] = { 0 }, byte = 0;
    struct iovec data = { &byte, 1 };
    struct msghdr message = {
        .msg_iov = &data,
        .msg_iovlen = 1,
        .msg_control = control,
        .msg_controllen = sizeof(control),
    };
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    void *page;
    int fd;

    if (peer->initiator) {
        fd = memfd_create("handover", MFD_CLOEXEC);
        if (fd < 0 || ftruncate(fd, 4096))
            err(1, "memfd_create");
        *header = (struct cmsghdr){ CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
        memcpy(CMSG_DATA(header), &fd, sizeof(fd));
        if (sendmsg(peer->socket, &message, 0) != 1)
            err(1, "sendmsg");
    } else {
        if (recvmsg(peer->socket, &message, 0) != 1)
            err(1, "recvmsg");
        memcpy(&fd, CMSG_DATA(header), sizeof(fd));
    }
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED)
        err(1, "mmap");
    close(fd);
    return page;
}

/* One cache line that each side waits for and passes back: half a round trip is one hand-over. */
static void measure_handover(const struct options *o, const struct harness_peer *peer)
{
    _Atomic unsigned *turn = share_page(peer);
    struct harness_times times = harness_times_new(o->repeats);
    unsigned mine = peer->initiator ? 0 : 1, next = 0;

    harness_barrier(peer);
    for (unsigned r = 0; r < o->repeats; r++) {
        double start = harness_now();

        for (unsigned i = 0; i < o->iterations; i++, next += 2) {
            while (atomic_load_explicit(turn, memory_order_acquire) != next + mine)
                ;
            atomic_store_explicit(turn, next + mine + 1, memory_order_release);
        }
        times.seconds[r] = harness_now() - start;
    }
    harness_barrier(peer);
    if (peer->initiator) {
        print_head(o);
        harness_print_times(&times, 2.0 * o->iterations);
    }
    harness_times_free(&times);
    munmap((void *)turn, 4096);
}

static int usage(FILE *out, int status)
{
    fputs("usage: bench-baseline [--size BYTES] [--iters N] [--repeats N] PRIMITIVE\n"
          "PRIMITIVE: process_vm_writev, process_vm_readv, memcpy or handover\n"
          "Prints one JSON line: microseconds an operation (handover: one way). Ends with 3\n"
          "where the system refuses the call.\n",
          out);
    return status;
}

int main(int argc, char **argv)
{
    static const struct option table[] = {
        { "size", required_argument, NULL, 's' },
        { "iters", required_argument, NULL, 'n' },
        { "repeats", required_argument, NULL, 'r' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 },
    };
    struct options o = { .size = 8, .iterations = 5000, .repeats = 20 };
    struct harness_peer peer;
    int c;

    while ((c = getopt_long(argc, argv, "h", table, NULL)) != -1) {
        switch (c) {
        case 's':
            o.size = harness_number("size", optarg, 1, 1UL << 30);
            break;
        case 'n':
            o.iterations = harness_number("iters", optarg, 1, 1000000000);
            break;
        case 'r':
            o.repeats = harness_number("repeats", optarg, 1, 100000);
            break;
        default:
            return c == 'h' ? usage(stdout, 0) : usage(stderr, 2);
        }
    }
    if (optind != argc - 1)
        return usage(stderr, 2);
    o.primitive = argv[optind];

    peer = harness_split(argv);
    if (!strcmp(o.primitive, "process_vm_writev"))
        measure_copy(&o, &peer, process_vm_writev);
    else if (!strcmp(o.primitive, "process_vm_readv"))
        measure_copy(&o, &peer, process_vm_readv);
    else if (!strcmp(o.primitive, "handover"))
        measure_handover(&o, &peer);
    else if (strcmp(o.primitive, "memcpy"))
        return usage(stderr, 2);
    else if (peer.initiator)
        measure_memcpy(&o);
    return harness_join(&peer) ? 0 : 1;
}
