/* SPDX-License-Identifier: BSD-2-Clause */
/* Event descriptors, raised in this process and in another one. */

#include "fabric.h"

#include "hca/notify.h"
#include "hca/proc.h"
#include "hca/segment.h"
#include "hca/spare_fd.h"
#include "hca/wake_file.h"
#include "util/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int join_fabric(void **state)
{
    fabric_open();
    return 0;
}

static bool readable(int fd, int timeout_ms)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };

    return poll(&p, 1, timeout_ms) == 1;
}

static void each_raise_is_lowered_once(void **state)
{
    uint32_t id, next_id;
    int fd = notify_create(&id), other = notify_create(&next_id);

    assert_true(fd >= 0);
    assert_true(other >= 0);
    assert_int_not_equal(id, next_id);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_false(notify_lower(fd));
    notify_raise(proc_self, fd, id);
    notify_raise(proc_self, fd, id);
    assert_false(readable(other, 0));
    assert_true(notify_lower(fd));
    assert_true(notify_lower(fd));
    assert_false(notify_lower(fd));
    notify_close(fd, id);
    notify_close(other, next_id);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
}

/* A corrupted segment may name any descriptor and any process. */
static void only_event_descriptors_are_written_to(void **state)
{
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    notify_raise(proc_self, ends[1], 1);
    notify_raise(proc_self, -1, 1);
    notify_raise(proc_self, 1 << 20, 1);
    notify_raise(MAX_PROCS, ends[1], 1);
    assert_false(readable(ends[0], 0));
    close(ends[0]);
    close(ends[1]);
}

/* A process that joins, makes two event descriptors, and says what comes. */
struct peer {
    pid_t pid;
    unsigned index;
    int fds[2];
    uint32_t ids[2];
    int pipe_fd; /* its own end of a pipe, for what must not be written to */
    int said;    /* gets 'a' or 'b' for each event */
};

static void listen_forever(int out, bool by_name)
{
    struct {
        unsigned index;
        int fds[2];
        uint32_t ids[2];
        int pipe_fd;
    } about;
    int ends[2];

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (segment_attach() || pipe(ends))
        _exit(1);
    proc_slot(proc_self)->wake_by_name |= by_name;
    about.index = proc_self;
    about.pipe_fd = ends[1];
    for (int i = 0; i < 2; i++)
        about.fds[i] = notify_create(&about.ids[i]);
    if (write(out, &about, sizeof(about)) != sizeof(about))
        _exit(1);
    for (;;) {
        struct pollfd p[3] = { { .fd = about.fds[0], .events = POLLIN },
                               { .fd = about.fds[1], .events = POLLIN },
                               { .fd = ends[0], .events = POLLIN } };
        poll(p, 3, -1);
        for (int i = 0; i < 3; i++)
            if (p[i].revents) {
                if (i == 2 || !notify_lower(p[i].fd))
                    _exit(2);
                if (write(out, &"ab"[i], 1) != 1)
                    _exit(1);
            }
    }
}

static struct peer start_peer(bool by_name)
{
    struct peer peer;
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    peer.pid = fork();
    if (!peer.pid)
        listen_forever(ends[1], by_name);
    close(ends[1]);
    peer.said = ends[0];
    assert_int_equal(read(peer.said, &peer.index, sizeof(peer.index)), sizeof(peer.index));
    assert_int_equal(read(peer.said, peer.fds, sizeof(peer.fds)), sizeof(peer.fds));
    assert_int_equal(read(peer.said, peer.ids, sizeof(peer.ids)), sizeof(peer.ids));
    assert_int_equal(read(peer.said, &peer.pipe_fd, sizeof(int)), sizeof(int));
    return peer;
}

static void end_peer(struct peer *peer)
{
    close(peer->said);
    kill(peer->pid, SIGKILL);
    assert_int_equal(waitpid(peer->pid, NULL, 0), peer->pid);
}

static void expect_event(struct peer *peer, char which)
{
    char got = '?';

    assert_true(readable(peer->said, 30000));
    assert_int_equal(read(peer->said, &got, 1), 1);
    assert_int_equal(got, which);
}

static int lowest_free_descriptor(void)
{
    int fd = dup(STDERR_FILENO);

    close(fd);
    return fd;
}

static void another_process_is_woken_by_its_own_descriptor(void **state)
{
    struct peer peer = start_peer(false), second = start_peer(false);

    for (int i = 0; i < 3; i++) {
        notify_raise(peer.index, peer.fds[0], peer.ids[0]);
        expect_event(&peer, 'a');
        notify_raise(peer.index, peer.fds[1], peer.ids[1]);
        expect_event(&peer, 'b');
        notify_raise(second.index, second.fds[0], second.ids[0]);
        expect_event(&second, 'a');
    }
    assert_false(readable(peer.said, 0));
    assert_int_equal(load_relaxed(&proc_slot(peer.index)->agent_wanted), 0);
    end_peer(&peer);
    end_peer(&second);
    proc_reap_dead();
}

/* It asks the other process to look by itself instead. */
static void what_is_no_event_descriptor_of_another_process_is_left_alone(void **state)
{
    struct peer peer = start_peer(false);
    struct proc_slot *slot = proc_slot(peer.index);
    uint32_t attention = load_relaxed(&slot->attention), doorbell = load_relaxed(&slot->doorbell);
    int lowest = lowest_free_descriptor();

    notify_raise(peer.index, peer.pipe_fd, 77);
    assert_int_equal(load_relaxed(&slot->agent_wanted), 1);
    assert_int_equal(load_relaxed(&slot->attention), attention + 1);
    assert_int_equal(load_relaxed(&slot->doorbell), doorbell + 1);
    assert_int_equal(lowest_free_descriptor(), lowest);
    notify_raise(peer.index, peer.fds[1], peer.ids[1]);
    expect_event(&peer, 'b'); /* had the pipe been written to, the peer would have ended */
    end_peer(&peer);
    proc_reap_dead();
}

/* ---- no descriptors left ---- */

enum { DESCRIPTORS = 1024 };

static unsigned open_descriptors(void)
{
    unsigned count = 0;

    for (int fd = 0; fd < 2 * DESCRIPTORS; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void spare_descriptors_are_given_once(void **state)
{
    unsigned before = open_descriptors();

    errno = ENOENT;
    assert_false(spare_fd_release());
    errno = EMFILE;
    assert_true(spare_fd_release());
    assert_int_equal(open_descriptors(), before - 2);
    errno = EMFILE;
    assert_false(spare_fd_release());
    spare_fd_keep();
    spare_fd_keep();
    assert_int_equal(open_descriptors(), before);
    errno = ENFILE;
    assert_true(spare_fd_release());
    spare_fd_keep();
}

/* A program closed all descriptors, and got the same numbers for its own pipe. */
static void what_was_a_spare_descriptor_is_left_alone(void **state)
{
    struct stat st;
    int ends[2], replaced = 0;

    assert_int_equal(pipe(ends), 0);
    for (int fd = 512; fd < 2 * DESCRIPTORS; fd++)
        if (!fstat(fd, &st) && S_ISFIFO(st.st_mode))
            assert_int_equal(dup2(ends[replaced++], fd), fd);
    assert_int_equal(replaced, 2);
    unsigned before = open_descriptors();
    errno = EMFILE;
    assert_false(spare_fd_release());
    assert_int_equal(open_descriptors(), before);
    spare_fd_keep();
    assert_int_equal(open_descriptors(), before + 2);
    close(ends[0]);
    close(ends[1]);
}

static void without_a_free_descriptor_peers_are_woken_all_the_same(void **state)
{
    struct peer peer = start_peer(false), named = start_peer(true);
    struct rlimit whole, few;
    int fillers[DESCRIPTORS], count = 0;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &whole), 0);
    few = whole;
    few.rlim_cur = DESCRIPTORS;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    while ((fillers[count] = dup(STDERR_FILENO)) >= 0)
        count++;
    unsigned before = open_descriptors();
    for (int i = 0; i < 3; i++) {
        notify_raise(peer.index, peer.fds[i % 2], peer.ids[i % 2]);
        notify_raise(named.index, -1, named.ids[i % 2]);
        expect_event(&peer, "ab"[i % 2]);
        expect_event(&named, "ab"[i % 2]);
        assert_true(open_descriptors() <= before);
    }
    assert_int_equal(load_relaxed(&proc_slot(peer.index)->agent_wanted), 0);
    assert_int_equal(load_relaxed(&proc_slot(named.index)->agent_wanted), 0);
    while (count)
        close(fillers[--count]);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &whole), 0);
    end_peer(&peer);
    end_peer(&named);
    proc_reap_dead();
}

static bool is_first(const char *namespace, ino_t first)
{
    struct stat st;

    return !stat(namespace, &st) && st.st_ino == first;
}

/* Where descriptors can be duplicated, nobody needs files. */
static void looking_whether_files_are_needed_costs_no_descriptor(void **state)
{
    unsigned before = open_descriptors();
    bool needed = wake_file_needed();

    assert_int_equal(open_descriptors(), before);
    assert_int_equal(needed, proc_slot(proc_self)->wake_by_name);
    if (!is_first("/proc/self/ns/pid", KERNEL_FIRST_PID_NAMESPACE) ||
        !is_first("/proc/self/ns/user", KERNEL_FIRST_USER_NAMESPACE)) {
        assert_true(needed);
        return;
    }
    int pidfd = syscall(SYS_pidfd_open, getpid(), 0);
    int copy = syscall(SYS_pidfd_getfd, pidfd, pidfd, 0);
    assert_int_equal(needed, copy < 0);
    close(copy);
    close(pidfd);
}

/* A slot's next process has descriptors of its own under the same numbers. */
static void a_successor_gets_its_own_events(void **state)
{
    struct peer first = start_peer(false);

    int lowest = lowest_free_descriptor();
    notify_raise(first.index, first.fds[0], first.ids[0]);
    expect_event(&first, 'a');
    end_peer(&first);
    proc_reap_dead();
    for (int i = 0; i < 3; i++)
        notify_forget_process(first.index);
    for (int fd = 0; fd < 3; fd++)
        assert_true(fcntl(fd, F_GETFD) >= 0);
    assert_true(lowest_free_descriptor() <= lowest);
    struct peer next = start_peer(false);
    assert_int_equal(next.index, first.index);
    notify_raise(next.index, next.fds[0], next.ids[0]);
    expect_event(&next, 'a');
    end_peer(&next);
    proc_reap_dead();
}

static const char *file_name(unsigned proc, uint32_t id)
{
    static char name[PATH_MAX];
    const char *path = segment_path(), *base = strrchr(path, '/') + 1;

    snprintf(name, sizeof(name), "%.*s.%s+%u+%u", (int)(base - path), path, base, proc, id);
    return name;
}

static bool has_file(unsigned proc, uint32_t id)
{
    return access(file_name(proc, id), F_OK) == 0;
}

/* Nothing else under that name is written to. */
static void only_a_pipe_is_opened_by_name(void **state)
{
    const char *name = file_name(7, 8);
    unsigned before = open_descriptors();
    int fd = open(name, O_CREAT | O_RDWR, 0600);

    close(fd);
    assert_int_equal(wake_file_open(7, 8), -1);
    assert_int_equal(unlink(name), 0);
    assert_int_equal(wake_file_open(7, 8), -1);
    assert_int_equal(mkfifo(name, 0600), 0);
    assert_int_equal(wake_file_open(7, 8), -1); /* nobody reads from it */
    int reader = open(name, O_RDWR);
    fd = wake_file_open(7, 8);
    assert_true(fd >= 0);
    close(fd);
    close(reader);
    assert_int_equal(open_descriptors(), before);
    assert_int_equal(unlink(name), 0);
}

/* Where descriptors cannot be duplicated, they are named pipes, which go with their process. */
static void a_process_may_be_woken_by_name(void **state)
{
    struct peer peer = start_peer(true), second = start_peer(true);

    assert_true(proc_slot(peer.index)->wake_files >= peer.ids[1]);
    for (int i = 0; i < 3; i++) {
        notify_raise(peer.index, -1, peer.ids[0]); /* by name alone */
        expect_event(&peer, 'a');
        notify_raise(peer.index, -1, peer.ids[1]);
        expect_event(&peer, 'b');
        notify_raise(second.index, -1, second.ids[1]);
        expect_event(&second, 'b');
    }
    assert_true(has_file(peer.index, peer.ids[0]) && has_file(peer.index, peer.ids[1]));
    end_peer(&peer);
    proc_reap_dead();
    assert_false(has_file(peer.index, peer.ids[0]) || has_file(peer.index, peer.ids[1]));
    assert_true(has_file(second.index, second.ids[0]) && has_file(second.index, second.ids[1]));
    end_peer(&second);
    proc_reap_dead();
    assert_false(has_file(second.index, second.ids[0]));
}

static void a_named_descriptor_counts_as_others_do(void **state)
{
    struct proc_slot *slot = proc_slot(proc_self);
    uint32_t id, kept = slot->wake_by_name;

    slot->wake_by_name = 1;
    int fd = notify_create(&id);
    slot->wake_by_name = kept;
    assert_true(has_file(proc_self, id));
    assert_false(notify_lower(fd));
    notify_raise(proc_self, fd, id);
    notify_raise(proc_self, fd, id);
    assert_true(notify_lower(fd) && notify_lower(fd));
    assert_false(notify_lower(fd));
    notify_close(fd, id);
    assert_false(has_file(proc_self, id));
}

static unsigned calls[3];

#define HOOK(n)                \
    static void hook_##n(void) \
    {                          \
        calls[n]++;            \
    }
HOOK(0)
HOOK(1)
HOOK(2)

static void every_hook_is_called(void **state)
{
    notify_add_service_hook(hook_0);
    notify_add_service_hook(hook_1);
    notify_add_service_hook(hook_0);
    notify_add_service_hook(hook_2);
    notify_run_service_hooks();
    for (int i = 0; i < 3; i++)
        assert_int_equal(calls[i], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_event_descriptors_are_written_to),
        cmocka_unit_test(each_raise_is_lowered_once),
        cmocka_unit_test(another_process_is_woken_by_its_own_descriptor),
        cmocka_unit_test(what_is_no_event_descriptor_of_another_process_is_left_alone),
        cmocka_unit_test(spare_descriptors_are_given_once),
        cmocka_unit_test(what_was_a_spare_descriptor_is_left_alone),
        cmocka_unit_test(without_a_free_descriptor_peers_are_woken_all_the_same),
        cmocka_unit_test(looking_whether_files_are_needed_costs_no_descriptor),
        cmocka_unit_test(a_successor_gets_its_own_events),
        cmocka_unit_test(only_a_pipe_is_opened_by_name),
        cmocka_unit_test(a_process_may_be_woken_by_name),
        cmocka_unit_test(a_named_descriptor_counts_as_others_do),
        cmocka_unit_test(every_hook_is_called),
    };

    return cmocka_run_group_tests_name("notify", tests, join_fabric, NULL);
}
