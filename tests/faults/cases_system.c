/* SPDX-License-Identifier: BSD-2-Clause */
/* The system: full memory, other versions, crashes, refused system calls, forks. */
#include "side.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define VERSION_OFFSET 8 /* after the segment's magic word */

static const struct request small_send = { .opcode = IBV_WR_SEND, .len = 16 };

static void segment_path(char *path, size_t size)
{
    rig_segment_path(getenv("VERBENA_FABRIC"), path, size);
}

static int run_in_child(int (*body)(void))
{
    int status;
    pid_t pid = fork();

    CHECK(pid >= 0, "fork: %s", strerror(errno));
    if (pid == 0)
        exit(body());
    waitpid(pid, &status, 0);
    CHECK(WIFEXITED(status), "a child died by signal %d", WTERMSIG(status));
    return WEXITSTATUS(status);
}

static int open_and_close(void)
{
    struct rig rig;
    int err = rig_open(&rig);

    return err ? err : rig_close(&rig);
}

/* Sends, writes, reads and fetch-and-adds of several sizes, comparing every byte. */
static void exercise(struct pair *pair)
{
    const uint32_t lengths[] = { 1, 100, 5000, 200000 };
    uint8_t sample[256];
    struct ibv_wc wc;

    for (int i = 0; i < 4; i++) {
        struct request request = { .opcode = IBV_WR_SEND, .len = lengths[i] };
        uint32_t n = lengths[i] < sizeof(sample) ? lengths[i] : sizeof(sample);
        uint32_t tail = lengths[i] - n;
        memset(pair->a.buf, 'A' + i, lengths[i]);
        CHECK_INT(far_post_recv(&pair->b, i, 0, 1 << 18), 0);
        CHECK_STATUS(pair_do(pair, &request), IBV_WC_SUCCESS);
        CHECK_INT(far_poll_recv(&pair->b, &wc, 3000), 1);
        CHECK_STATUS(wc.status, IBV_WC_SUCCESS);
        CHECK_INT(wc.byte_len, lengths[i]);
        far_read(&pair->b, tail, sample, n);
        CHECK(!memcmp(sample, pair->a.buf + tail, n), "a send of %u is wrong", lengths[i]);
        request.opcode = IBV_WR_RDMA_WRITE;
        request.remote_addr = pair->at.buf + (1 << 19);
        request.rkey = pair->at.rkey;
        CHECK_STATUS(pair_do(pair, &request), IBV_WC_SUCCESS);
        far_read(&pair->b, (1 << 19) + tail, sample, n);
        CHECK(!memcmp(sample, pair->a.buf + tail, n), "a write of %u is wrong", lengths[i]);
        request.opcode = IBV_WR_RDMA_READ;
        request.local_offset = 1 << 18;
        CHECK_STATUS(pair_do(pair, &request), IBV_WC_SUCCESS);
        CHECK(!memcmp(pair->a.buf + (1 << 18), pair->a.buf, lengths[i]), "a read of %u is wrong",
              lengths[i]);
    }
    struct request add = { .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .len = 8, .compare_add = 5 };
    uint64_t value;
    add.remote_addr = pair->at.buf;
    add.rkey = pair->at.rkey;
    CHECK_STATUS(pair_do(pair, &add), IBV_WC_SUCCESS);
    CHECK_STATUS(pair_do(pair, &add), IBV_WC_SUCCESS);
    memcpy(&value, pair->a.buf, sizeof(value));
    uint8_t expected[8];
    memset(expected, 'D', sizeof(expected));
    uint64_t before;
    memcpy(&before, expected, sizeof(before));
    CHECK(value == before + 5, "fetch-and-add found %#llx", (unsigned long long)value);
}

static void plain_exchange(bool remote)
{
    struct pair pair;

    pair_open(&pair, remote, &side_usual, &rig_patient);
    exercise(&pair);
    pair_close(&pair);
}

/* ---- a full file system ---- */

static void mount_small(const char *size)
{
    static char dir[] = "/tmp/verbena-small-XXXXXX";
    char options[64];

    if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
        case_skip("a private mount needs privileges: %s", strerror(errno));
    CHECK(mkdtemp(dir), "mkdtemp: %s", strerror(errno));
    snprintf(options, sizeof(options), "size=%s", size);
    if (mount("verbena-small", dir, "tmpfs", 0, options)) {
        int err = errno;
        rmdir(dir);
        case_skip("mounting a tmpfs: %s", strerror(err));
    }
    setenv("VERBENA_SHM_DIR", dir, 1);
}

static void unmount_small(void)
{
    const char *dir = getenv("VERBENA_SHM_DIR");

    umount2(dir, MNT_DETACH);
    rmdir(dir);
}

static bool is_out_of_room(int err)
{
    return err == ENOMEM || err == ENOSPC;
}

static void no_room_to_start(bool remote)
{
    mount_small("64k");
    int err = run_in_child(open_and_close);
    CHECK(is_out_of_room(err), "opening the device without room gave %d", err);
    unmount_small();
}

#define HOARD 200000

struct hoard {
    void *object[HOARD];
    int count;
};

typedef void *(*create_fn)(struct side *side);

static void *create_one_qp(struct side *side)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = side->send_cq,
        .recv_cq = side->recv_cq,
        .cap = { .max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 4, .max_recv_sge = 4 },
        .qp_type = IBV_QPT_RC,
    };

    return ibv_create_qp(side->rig.pd, &attr);
}

static void *create_one_cq(struct side *side)
{
    return ibv_create_cq(side->rig.ctx, 4096, NULL, NULL, 0);
}

static void *create_one_srq(struct side *side)
{
    struct ibv_srq_init_attr attr = { .attr = { .max_wr = 4096, .max_sge = 4 } };

    return ibv_create_srq(side->rig.pd, &attr);
}

static void *create_one_mr(struct side *side)
{
    return ibv_reg_mr(side->rig.pd, side->buf, 4096, IBV_ACCESS_LOCAL_WRITE);
}

static int destroy_one(create_fn create, void *object)
{
    if (create == create_one_qp)
        return ibv_destroy_qp(object);
    if (create == create_one_cq)
        return ibv_destroy_cq(object);
    return create == create_one_srq ? ibv_destroy_srq(object) : ibv_dereg_mr(object);
}

static void fill_up(struct side *side, create_fn create, struct hoard *hoard)
{
    hoard->count = 0;
    while (hoard->count < HOARD) {
        errno = 0;
        void *object = create(side);
        if (!object)
            break;
        hoard->object[hoard->count++] = object;
    }
    if (hoard->count < HOARD)
        CHECK(is_out_of_room(errno), "creating object %d without room gave %s", hoard->count,
              strerror(errno));
}

static void full_file_system(bool remote)
{
    static const create_fn creators[] = { create_one_qp, create_one_cq, create_one_srq,
                                          create_one_mr };
    static struct hoard hoard;
    struct pair pair;
    int filled = 0;

    mount_small("16m");
    pair_open(&pair, remote, &side_usual, &rig_patient);
    for (int i = 0; i < 4; i++) {
        fill_up(&pair.a, creators[i], &hoard);
        filled += hoard.count < HOARD;
        exercise(&pair);
        for (int k = 0; k < hoard.count; k++)
            CHECK_INT(destroy_one(creators[i], hoard.object[k]), 0);
        void *again = creators[i](&pair.a);
        CHECK(again, "after giving everything back: %s", strerror(errno));
        CHECK_INT(destroy_one(creators[i], again), 0);
    }
    CHECK(filled >= 2, "the file system never filled up");
    pair_close(&pair);
    unmount_small();
}

/* ---- versions and leftovers ---- */

static void patch_version(uint32_t delta)
{
    char path[256];
    uint32_t version;

    segment_path(path, sizeof(path));
    int fd = open(path, O_RDWR);
    CHECK(fd >= 0, "%s: %s", path, strerror(errno));
    CHECK(pread(fd, &version, sizeof(version), VERSION_OFFSET) == sizeof(version), "pread");
    version += delta;
    CHECK(pwrite(fd, &version, sizeof(version), VERSION_OFFSET) == sizeof(version), "pwrite");
    close(fd);
}

static int newcomer_pipe[2];

static int open_with_stderr_in_pipe(void)
{
    dup2(newcomer_pipe[1], STDERR_FILENO);
    return open_and_close();
}

static void two_versions(bool remote)
{
    char text[2048];
    struct pair pair;

    CHECK_INT(pipe2(newcomer_pipe, O_NONBLOCK), 0);
    pair_open(&pair, remote, &side_usual, &rig_patient);
    patch_version(1);
    CHECK(run_in_child(open_with_stderr_in_pipe) != 0, "another version was let in");
    ssize_t n = read(newcomer_pipe[0], text, sizeof(text) - 1);
    CHECK(n > 0, "another version was turned away without a word");
    text[n] = 0;
    CHECK(strstr(text, "version"), "the message does not speak of the version: %s", text);
    exercise(&pair);
    patch_version(-1u);
    CHECK_INT(run_in_child(open_and_close), 0);
    pair_close(&pair);
}

static void other_shape(bool remote)
{
    struct pair pair;
    pid_t pid;
    int status;

    pair_open(&pair, remote, &side_usual, &rig_patient);
    pid = fork();
    if (pid == 0) {
        setenv("VERBENA_NODES", "3", 1);
        setenv("VERBENA_LOG", "error", 1);
        close(STDERR_FILENO);
        exit(open_and_close());
    }
    waitpid(pid, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status), "a process with other nodes was let in");
    exercise(&pair);
    pair_close(&pair);
}

static int open_and_die(void)
{
    struct side side;

    side_open(&side, &side_usual);
    kill(getpid(), SIGKILL);
    return 0;
}

static void die_in_child(void)
{
    int status;
    pid_t pid = fork();

    if (pid == 0)
        exit(open_and_die());
    waitpid(pid, &status, 0);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "the victim ended with %#x", status);
}

static int exchange_of_its_own(void)
{
    plain_exchange(false);
    return 0;
}

static int exchange_with_another(void)
{
    plain_exchange(true);
    return 0;
}

static void stale_segment(bool remote)
{
    char path[256];

    segment_path(path, sizeof(path));
    die_in_child();
    CHECK(!access(path, F_OK), "the crash left no segment to test with");
    CHECK_INT(run_in_child(remote ? exchange_with_another : exchange_of_its_own), 0);
    CHECK(access(path, F_OK), "the next user left the segment behind");
}

static uint64_t segment_bytes(void)
{
    char path[256];
    struct stat st;

    segment_path(path, sizeof(path));
    return stat(path, &st) ? 0 : st.st_blocks * 512ull;
}

static void die_with_many_objects(void)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        struct side side;
        side_open(&side, &side_usual);
        for (int i = 0; i < 50; i++)
            if (!create_one_qp(&side) || !create_one_cq(&side) || !create_one_mr(&side))
                exit(1);
        kill(getpid(), SIGKILL);
    }
    waitpid(pid, &status, 0);
    CHECK(WIFSIGNALED(status), "objects could not be created after earlier crashes");
}

static void crashes_leak_nothing(bool remote)
{
    struct pair pair;
    uint64_t early;

    pair_open(&pair, remote, &side_usual, &rig_patient);
    for (int i = 0; i < 20; i++)
        die_with_many_objects();
    early = segment_bytes();
    for (int i = 0; i < 60; i++)
        die_with_many_objects();
    CHECK(segment_bytes() <= early + early / 4, "the segment grew from %llu to %llu bytes",
          (unsigned long long)early, (unsigned long long)segment_bytes());
    exercise(&pair);
    pair_close(&pair);
}

/* ---- refused system calls ---- */

#define REFUSE(call)                                   \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (call), 0, 1), \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)

static void install_filter(struct sock_filter *filter, size_t count)
{
    struct sock_fprog program = { .len = count, .filter = filter };

    CHECK_INT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        case_skip("seccomp: %s", strerror(errno));
}

static void refused_process_vm(bool remote)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        REFUSE(__NR_process_vm_readv),
        REFUSE(__NR_process_vm_writev),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };

    install_filter(filter, sizeof(filter) / sizeof(filter[0]));
    CHECK(syscall(__NR_process_vm_readv, getpid(), NULL, 0, NULL, 0, 0) == -1 && errno == EPERM,
          "the filter does not hold");
    plain_exchange(remote);
}

static void sleep_and_receive(struct pair *pair)
{
    struct pollfd fd = { .fd = pair->a.channel->fd, .events = POLLIN };
    struct ibv_cq *cq;
    void *context;
    struct ibv_wc wc;

    for (int i = 0; i < 20; i++) {
        CHECK_INT(ibv_req_notify_cq(pair->a.send_cq, 0), 0);
        CHECK_INT(pair_post(pair, &small_send), 0);
        usleep(1000);
        CHECK_INT(far_post_recv(&pair->b, i, 0, 64), 0);
        CHECK(poll(&fd, 1, 3000) == 1, "no completion event");
        CHECK_INT(ibv_get_cq_event(pair->a.channel, &cq, &context), 0);
        ibv_ack_cq_events(cq, 1);
        CHECK_INT(rig_poll(pair->a.send_cq, &wc, 0), 1);
        CHECK_STATUS(wc.status, IBV_WC_SUCCESS);
        CHECK_INT(far_poll_recv(&pair->b, &wc, 1000), 1);
    }
}

static void refused_descriptor_passing(bool remote)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        REFUSE(__NR_pidfd_getfd),
        REFUSE(__NR_pidfd_open),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct side_config config = side_usual;
    struct pair pair;

    install_filter(filter, sizeof(filter) / sizeof(filter[0]));
    config.with_channel = true;
    pair_open(&pair, remote, &config, &rig_patient);
    sleep_and_receive(&pair);
    pair_close(&pair);
}

static void wakes_without_descriptors(bool remote)
{
    struct rlimit limit = { .rlim_cur = 1024, .rlim_max = 1024 };
    struct side_config config = side_usual;
    struct pair pair;
    int first = -1, fd;

    CHECK_INT(setrlimit(RLIMIT_NOFILE, &limit), 0);
    config.with_channel = true;
    pair_open(&pair, remote, &config, &rig_patient);
    while ((fd = dup(0)) >= 0)
        first = first < 0 ? fd : first;
    CHECK_INT(errno, EMFILE);
    for (int i = 0; i < 2; i++) {
        CHECK_INT(far_post_recv(&pair.b, i, 0, 64), 0);
        CHECK_INT(far_arm(&pair.b), 0);
        CHECK_STATUS(pair_do(&pair, &small_send), IBV_WC_SUCCESS);
        CHECK_INT(far_event(&pair.b, 3000), 0);
    }
    CHECK(dup(0) < 0 && errno == EMFILE, "a descriptor of the program's has become free");
    close(first);
    CHECK(dup(0) == first, "the program cannot use its last descriptor");
    pair_close(&pair);
}

static void refused_membarrier(bool remote)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        REFUSE(__NR_membarrier),
        REFUSE(__NR_userfaultfd),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };

    install_filter(filter, sizeof(filter) / sizeof(filter[0]));
    plain_exchange(remote);
}

#define MESSAGES 600

/* So many that completions need memory in whole units. */
static int send_and_poll_all(void)
{
    struct side_config config = side_usual;
    struct pair pair;
    struct ibv_wc wc;

    config.send_depth = config.recv_depth = MESSAGES;
    config.cq_depth = MESSAGES;
    pair_open(&pair, false, &config, &rig_patient);
    for (int i = 0; i < MESSAGES; i++)
        CHECK_INT(far_post_recv(&pair.b, i, 0, 64), 0);
    for (int half = 0; half < 2; half++) {
        for (int i = 0; i < MESSAGES / 2; i++)
            CHECK_STATUS(pair_do(&pair, &small_send), IBV_WC_SUCCESS);
        for (int i = 0; i < MESSAGES / 2; i++) {
            CHECK(far_poll_recv(&pair.b, &wc, 3000) == 1, "of %d messages of half %d %d arrived",
                  MESSAGES / 2, half, i);
            CHECK_STATUS(wc.status, IBV_WC_SUCCESS);
        }
        CHECK_INT(far_poll_recv(&pair.b, &wc, 10), 0);
    }
    pair_close(&pair);
    return 0;
}

/* Without hole punching, freed memory keeps its contents. */
static void refused_holes(bool remote)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_fallocate, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0), /* plain allocation */
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct side side;

    install_filter(filter, sizeof(filter) / sizeof(filter[0]));
    side_open(&side, &side_usual); /* keeps the segment alive between processes */
    for (int i = 0; i < 3; i++)
        CHECK_INT(run_in_child(send_and_poll_all), 0);
    side_close(&side);
}

/* ---- forks ---- */

static int just_exit(void)
{
    return 0;
}

static void fork_with_objects(bool remote)
{
    struct pair pair;

    pair_open(&pair, remote, &side_usual, &rig_patient);
    exercise(&pair);
    CHECK_INT(run_in_child(just_exit), 0);
    exercise(&pair);
    CHECK_INT(run_in_child(exchange_of_its_own), 0);
    exercise(&pair);
    pair_close(&pair);
}

static void fork_with_fork_init(bool remote)
{
    CHECK_INT(ibv_fork_init(), 0);
    fork_with_objects(remote);
}

/* The child writes to its copy of registered pages during the parent's traffic. */
static void fork_and_write(bool remote)
{
    struct pair pair;
    int go[2];

    pair_open(&pair, remote, &side_usual, &rig_patient);
    CHECK_INT(pipe(go), 0);
    pid_t pid = fork();
    if (pid == 0) {
        char byte;
        for (size_t i = 0; i < pair.a.config.bytes; i += 4096)
            pair.a.buf[i] = 0x33;
        close(go[1]);
        _exit(read(go[0], &byte, 1) < 0);
    }
    for (int i = 0; i < 20; i++)
        exercise(&pair);
    close(go[1]);
    close(go[0]);
    waitpid(pid, NULL, 0);
    pair_close(&pair);
}

/* ---- destroying in the wrong order ---- */

static void destroy_order(bool remote)
{
    struct side_config config = side_usual;
    struct side side;

    config.use_srq = true;
    config.with_channel = true;
    side_open(&side, &config);
    CHECK_INT(ibv_dealloc_pd(side.rig.pd), EBUSY);
    CHECK_INT(ibv_dealloc_pd(side.other_pd), EBUSY);
    CHECK_INT(ibv_destroy_cq(side.send_cq), EBUSY);
    CHECK_INT(ibv_destroy_cq(side.recv_cq), EBUSY);
    CHECK_INT(ibv_destroy_srq(side.srq), EBUSY);
    CHECK_INT(ibv_destroy_comp_channel(side.channel), EBUSY);
    struct ibv_ah_attr attr = { .dlid = side.rig.port.lid, .port_num = 1 };
    CHECK_INT(ibv_dereg_mr(side.other_mr), 0);
    struct ibv_ah *ah = ibv_create_ah(side.other_pd, &attr);
    CHECK(ah, "ibv_create_ah: %s", strerror(errno));
    CHECK_INT(ibv_dealloc_pd(side.other_pd), EBUSY);
    CHECK_INT(ibv_destroy_ah(ah), 0);
    struct ibv_mw *mw = ibv_alloc_mw(side.other_pd, IBV_MW_TYPE_2);
    CHECK(mw, "ibv_alloc_mw: %s", strerror(errno));
    CHECK_INT(ibv_dealloc_pd(side.other_pd), EBUSY);
    CHECK_INT(ibv_dealloc_mw(mw), 0);
    side.other_mr = ibv_reg_mr(side.other_pd, side.buf, 4096, 0);
    CHECK(side.other_mr, "ibv_reg_mr: %s", strerror(errno));
    side_close(&side);
}

const struct fault_case system_cases[] = {
    { "plain-exchange", plain_exchange, BOTH_WAYS },
    { "no-room-to-start", no_room_to_start, LOCAL_ONLY },
    { "full-file-system", full_file_system, BOTH_WAYS },
    { "two-versions", two_versions, BOTH_WAYS },
    { "other-shape", other_shape, LOCAL_ONLY },
    { "stale-segment", stale_segment, BOTH_WAYS },
    { "crashes-leak-nothing", crashes_leak_nothing, LOCAL_ONLY },
    { "refused-process-vm", refused_process_vm, BOTH_WAYS },
    { "refused-descriptor-passing", refused_descriptor_passing, BOTH_WAYS },
    { "wakes-without-descriptors", wakes_without_descriptors, REMOTE_ONLY },
    { "refused-membarrier", refused_membarrier, BOTH_WAYS },
    { "refused-holes", refused_holes, LOCAL_ONLY },
    { "fork-with-objects", fork_with_objects, BOTH_WAYS },
    { "fork-with-fork-init", fork_with_fork_init, BOTH_WAYS },
    { "fork-and-write", fork_and_write, BOTH_WAYS },
    { "destroy-order", destroy_order, LOCAL_ONLY },
    { 0 },
};
