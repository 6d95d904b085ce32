/* SPDX-License-Identifier: BSD-2-Clause */
/* Life and death of processes as the kernel's locks tell them, and locks in the segment. */

#include "fabric.h"

#include "hca/arena.h"
#include "hca/bounce.h"
#include "hca/proc.h"
#include "hca/proc_lock.h"
#include "hca/qp.h"
#include "hca/shm_lock.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int join_fabric(void **state)
{
    fabric_open();
    return 0;
}

/* A child that has joined the fabric, and sleeps. */
static pid_t start_peer(unsigned *index)
{
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();

    if (!child) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        unsigned mine = segment_attach() ? MAX_PROCS : (unsigned)proc_self;
        if (write(ready[1], &mine, sizeof(mine)) != sizeof(mine))
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ready[0], index, sizeof(*index)), sizeof(*index));
    close(ready[0]);
    close(ready[1]);
    assert_true(*index < MAX_PROCS && (int)*index != proc_self);
    return child;
}

static void end_peer(pid_t child)
{
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static void a_lock_ends_with_its_process(void **state)
{
    unsigned peer;
    pid_t child = start_peer(&peer);

    assert_true(proc_slot(peer)->locked);
    assert_int_equal(proc_lock_state(segment_fd(), peer), PROC_LOCK_HELD);
    assert_true(proc_alive(peer));
    end_peer(child);
    assert_int_equal(proc_lock_state(segment_fd(), peer), PROC_LOCK_FREE);
    uint64_t reaped = load_relaxed(&seg->reap_count), drops = load_relaxed(&seg->share_drops);
    uint32_t generation = load_relaxed(&proc_slot(peer)->generation);
    proc_reap_dead();
    assert_int_equal(load_acquire(&proc_slot(peer)->state), PROC_FREE);
    assert_int_equal(load_relaxed(&seg->reap_count), reaped + 1);
    assert_int_equal(load_relaxed(&seg->share_drops), drops + 1);
    assert_int_equal(load_relaxed(&proc_slot(peer)->generation), generation + 1);
}

/* The answer "it lives" is remembered for a few milliseconds. */
static void the_dead_stay_dead(void **state)
{
    unsigned peer;
    pid_t child = start_peer(&peer);

    assert_true(proc_alive(peer));
    end_peer(child);
    for (int i = 0; i < 10000 && proc_alive(peer); i++)
        usleep(100);
    assert_false(proc_alive(peer));
    assert_false(proc_runs(peer));
    proc_reap_dead();
}

/* Where the kernel refuses the lock, a pidfd tells whether the process runs. */
static void without_a_lock_a_pidfd_tells(void **state)
{
    unsigned peer;
    pid_t child = start_peer(&peer);

    proc_slot(peer)->locked = 0;
    assert_true(proc_alive(peer));
    end_peer(child);
    for (int i = 0; i < 10000 && proc_alive(peer); i++)
        usleep(100);
    assert_false(proc_alive(peer));
    proc_reap_dead();
}

/* A corrupted segment may have any number in the place of a process. */
static void numbers_of_no_process_are_nobody(void **state)
{
    assert_true(proc_alive(proc_self));
    assert_true(proc_runs(proc_self));
    assert_true(proc_word_alive(proc_word(proc_self)));
    assert_true(proc_word_runs(proc_word(proc_self)));
    for (unsigned index = MAX_PROCS; index; index *= 2) {
        assert_false(proc_alive(index));
        assert_false(proc_runs(index));
    }
    assert_false(proc_alive(-1u));
    assert_false(proc_runs(-1u));
    assert_false(proc_word_alive(0));
    assert_false(proc_word_runs(0));
    assert_false(proc_word_alive((MAX_PROCS + 1u) << 16));
    assert_false(proc_word_runs((MAX_PROCS + 1u) << 16));
    assert_false(proc_word_alive(proc_word(proc_self) + 1)); /* another generation */
    assert_false(proc_word_runs(proc_word(proc_self) + 1));
}

/* Whatever a process has left in its slot, the next one does not find it there. */
static void a_slot_begins_anew(void **state)
{
    unsigned peer, next;
    pid_t child = start_peer(&peer);
    struct proc_slot *slot = proc_slot(peer);

    end_peer(child);
    proc_reap_dead();
    assert_int_equal(load_acquire(&slot->state), PROC_FREE);
    slot->node = slot->wake_files = 7;
    slot->pid = 7;
    slot->start_time = slot->pid_namespace = slot->user_namespace = 7;
    store_relaxed(&slot->attention, 7);
    store_relaxed(&slot->doorbell, 7);
    store_relaxed(&slot->agent_wanted, 7);
    store_relaxed(&slot->swaps, 7);
    store_relaxed(&slot->maps_memory, 7);
    store_relaxed(&slot->copy.state, COPY_BUSY);
    store_relaxed(&slot->open[MAX_OPEN_DEVICES - 1].used, 1);
    store_relaxed(&slot->threads[MAX_THREAD_LINES - 1].epoch, 7);
    store_relaxed(&slot->threads[MAX_THREAD_LINES - 1].used, 1);

    child = start_peer(&next);
    assert_int_equal(next, peer);
    assert_int_equal(slot->pid, child);
    assert_int_equal(slot->node, 0);
    assert_int_equal(slot->pid_namespace, proc_slot(proc_self)->pid_namespace);
    assert_int_equal(slot->user_namespace, proc_slot(proc_self)->user_namespace);
    assert_true(slot->start_time > 7);
    assert_int_equal(slot->wake_files, 0);
    assert_int_equal(load_relaxed(&slot->attention), 0);
    assert_int_equal(load_relaxed(&slot->doorbell), 0);
    assert_int_equal(load_relaxed(&slot->agent_wanted), 0);
    assert_int_equal(load_relaxed(&slot->swaps), 0);
    assert_int_equal(load_relaxed(&slot->maps_memory), 0);
    assert_int_equal(load_relaxed(&slot->copy.state), COPY_IDLE);
    assert_int_equal(load_relaxed(&slot->open[MAX_OPEN_DEVICES - 1].used), 0);
    assert_int_equal(load_relaxed(&slot->threads[MAX_THREAD_LINES - 1].epoch), 0);
    assert_int_equal(load_relaxed(&slot->threads[MAX_THREAD_LINES - 1].used), 0);
    end_peer(child);
    proc_reap_dead();
}

/* What another PID namespace says of a pid has no meaning here. */
static void a_foreign_pid_does_not_matter(void **state)
{
    unsigned peer;
    pid_t child = start_peer(&peer);

    proc_slot(peer)->pid = 0x3fffffff;
    proc_slot(peer)->pid_namespace++;
    proc_reap_dead();
    assert_true(proc_alive(peer));
    assert_false(proc_is_near(peer));
    assert_int_equal(proc_pidfd(peer), -1);
    assert_int_equal(proc_memory(peer), -1);
    proc_slot(peer)->pid = getpid();
    proc_reap_dead();
    assert_true(proc_alive(peer));
    end_peer(child);
    proc_reap_dead();
    assert_int_equal(load_acquire(&proc_slot(peer)->state), PROC_FREE);
}

/* Nor does it if the program closes all descriptors, or forks. */
static void the_lock_outlives_descriptors_and_not_the_process(void **state)
{
    unsigned peer;
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();

    if (!child) {
        if (segment_attach())
            _exit(1);
        for (int fd = 3; fd < 2048; fd++)
            if (fd != ready[1])
                close(fd);
        pid_t grandchild = fork();
        if (!grandchild) {
            close(ready[1]);
            sleep(30);
            _exit(0);
        }
        unsigned mine = proc_self;
        if (write(ready[1], &mine, sizeof(mine)) != sizeof(mine) ||
            write(ready[1], &grandchild, sizeof(grandchild)) != sizeof(grandchild))
            _exit(1);
        for (;;)
            pause();
    }
    pid_t grandchild;
    assert_int_equal(read(ready[0], &peer, sizeof(peer)), sizeof(peer));
    assert_int_equal(read(ready[0], &grandchild, sizeof(grandchild)), sizeof(grandchild));
    assert_int_equal(proc_lock_state(segment_fd(), peer), PROC_LOCK_HELD);
    end_peer(child);
    assert_int_equal(proc_lock_state(segment_fd(), peer), PROC_LOCK_FREE);
    kill(grandchild, SIGKILL);
    close(ready[1]);
    while (read(ready[0], &byte, 1) > 0)
        ;
    close(ready[0]);
    proc_reap_dead();
}

/* Daemons close standard input; descriptor 0 is then one like any other, and stays free for them. */
static void a_process_joins_without_standard_input(void **state)
{
    pid_t child = fork();
    int status;

    if (!child) {
        close(STDIN_FILENO);
        if (segment_attach() || segment_fd() < 512)
            _exit(1);
        _exit(dup(STDERR_FILENO) == STDIN_FILENO ? 0 : 2);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    proc_reap_dead();
}

static void descriptors_of_peers_stay_out_of_the_way(void **state)
{
    unsigned peer;
    pid_t child = start_peer(&peer);
    int input = dup(STDIN_FILENO);

    close(STDIN_FILENO);
    int pidfd = proc_pidfd(peer), mem = proc_memory(peer);
    if (input >= 0)
        dup2(input, STDIN_FILENO);
    close(input);
    assert_true(pidfd >= 512);
    assert_true(mem >= 512);
    assert_int_equal(proc_pidfd(peer), pidfd);
    assert_int_equal(proc_memory(peer), mem);
    end_peer(child);
    proc_reap_dead();
}

static void *sleep_on(void *arg)
{
    for (;;)
        pause();
    return NULL;
}

/* The first thread has ended, which the kernel shows as a process that is exiting. */
static void a_process_that_ends_does_not_stay(void **state)
{
    unsigned peer;
    pid_t child = start_peer(&peer), half_dead;
    struct proc_slot *slot = proc_slot(peer);
    char name[64], text[1024] = "";

    assert_true(proc_any_staying());
    half_dead = fork();
    if (!half_dead) {
        pthread_t thread;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pthread_create(&thread, NULL, sleep_on, NULL);
        pthread_exit(NULL);
    }
    snprintf(name, sizeof(name), "/proc/%d/stat", (int)half_dead);
    for (int i = 0; i < 10000 && !strstr(text, ") Z"); i++) {
        FILE *file = fopen(name, "r");
        assert_non_null(file);
        text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
        fclose(file);
        usleep(1000);
    }
    assert_non_null(strstr(text, ") Z"));
    unsigned long long start;
    assert_int_equal(
        sscanf(strrchr(text, ')') + 2,
               "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
               &start),
        1);
    pid_t kept_pid = slot->pid;
    uint64_t kept_start = slot->start_time;
    uint32_t own_state = load_acquire(&proc_slot(proc_self)->state);
    store_release(&proc_slot(proc_self)->state, PROC_LEAVING);
    assert_true(proc_any_staying());
    slot->pid = half_dead;
    slot->start_time = start;
    assert_false(proc_any_staying());
    slot->pid = kept_pid;
    slot->start_time = kept_start + 1;
    assert_false(proc_any_staying()); /* a pid with another start time is another process */
    slot->start_time = kept_start;
    store_release(&proc_slot(proc_self)->state, own_state);
    end_peer(half_dead);
    end_peer(child);
    proc_reap_dead();
}

static void a_pid_runs_until_its_process_has_ended(void **state)
{
    siginfo_t info;
    pid_t child = fork();

    if (!child)
        _exit(0);
    assert_int_equal(waitid(P_PID, child, &info, WEXITED | WNOWAIT), 0);
    assert_true(proc_pid_runs(getpid()));
    assert_false(proc_pid_runs(child)); /* a zombie */
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_false(proc_pid_runs(child));
}

/* As a process sees it that has not joined. */
static void a_fabric_is_alive_while_one_of_its_processes_is(void **state)
{
    uint32_t own_state = load_acquire(&proc_slot(proc_self)->state);

    for (int by_lock = 0; by_lock < 2; by_lock++) {
        unsigned peer;
        pid_t child = start_peer(&peer);
        proc_slot(peer)->locked = by_lock;
        assert_true(proc_any_alive(segment_fd()));
        store_release(&proc_slot(proc_self)->state, PROC_LEAVING);
        assert_true(proc_any_alive(segment_fd()));
        end_peer(child);
        assert_false(proc_any_alive(segment_fd()));
        store_release(&proc_slot(proc_self)->state, own_state);
        assert_true(proc_any_alive(segment_fd()));
        proc_reap_dead();
    }
}

/* It has threads until exec succeeds, and may come back. */
static void a_process_in_exec_is_not_alive_and_runs(void **state)
{
    uint32_t word = proc_word(proc_self);

    proc_exec_begin();
    assert_false(proc_alive(proc_self) || proc_word_alive(word));
    assert_true(proc_runs(proc_self) && proc_word_runs(word));
    proc_exec_failed();
    assert_true(proc_alive(proc_self) && proc_word_alive(word));
}

static void those_who_wait_reap_the_dead(void **state)
{
    unsigned peer;

    end_peer(start_peer(&peer));
    for (int i = 0; i < 10000 && load_acquire(&proc_slot(peer)->state) != PROC_FREE; i++) {
        proc_reap_periodically();
        usleep(1000);
    }
    assert_int_equal(load_acquire(&proc_slot(peer)->state), PROC_FREE);
}

static void another_namespace_is_far_while_its_process_lives(void **state)
{
    unsigned peer;
    pid_t child = start_peer(&peer);

    assert_false(proc_any_far());
    proc_slot(peer)->user_namespace++;
    assert_true(proc_any_far());
    end_peer(child);
    for (int i = 0; i < 10000 && proc_any_far(); i++)
        usleep(100);
    assert_false(proc_any_far());
    proc_reap_dead();
}

/* ---- bounce blocks ---- */

static void a_sender_has_so_many_blocks_and_uses_them_again(void **state)
{
    enum { ALL = 8 * BOUNCE_BLOCKS };
    static struct cqe notes[ALL + 1];
    struct bounce_block *blocks[ALL];

    for (int i = 0; i < 3 * BOUNCE_BLOCKS; i++) { /* one after the other, they fill one chunk */
        blocks[i % BOUNCE_BLOCKS] = bounce_take(proc_self, &notes[0]);
        assert_ptr_equal(bounce_find(&notes[0]), blocks[i % BOUNCE_BLOCKS]);
        assert_ptr_equal(blocks[i % BOUNCE_BLOCKS], blocks[0] + i % BOUNCE_BLOCKS);
        bounce_return(&notes[0]);
    }
    for (int i = 0; i < ALL; i++) {
        blocks[i] = bounce_take(proc_self, &notes[i]);
        assert_non_null(blocks[i]);
        memset(blocks[i]->data, i + 1, BOUNCE_BYTES);
    }
    assert_null(bounce_take(proc_self, &notes[ALL]));
    for (int i = 0; i < ALL; i++)
        assert_true(blocks[i]->data[0] == i + 1 && blocks[i]->data[BOUNCE_BYTES - 1] == i + 1);
    for (int i = 0; i < ALL; i++) {
        bounce_return(&notes[i]);
        assert_ptr_equal(bounce_take(proc_self, &notes[i]), blocks[i]);
        assert_null(bounce_take(proc_self, &notes[ALL]));
    }
    for (int i = 0; i < ALL; i++)
        bounce_return(&notes[i]);
    memset(&notes[0].data, 0xff, sizeof(notes[0].data)); /* a corrupted segment */
    assert_null(bounce_find(&notes[0]));
    bounce_return(&notes[0]);
}

/* The blocks that its predecessor had have gone with it. */
static void a_new_receiver_has_blocks_of_its_own(void **state)
{
    struct cqe note;
    unsigned first, next;
    pid_t child = start_peer(&first);

    assert_non_null(bounce_take(first, &note));
    end_peer(child);
    proc_reap_dead();
    child = start_peer(&next);
    assert_int_equal(next, first);
    struct bounce_block *block = bounce_take(next, &note);
    assert_non_null(block);
    assert_int_equal(seg->unit_owner[seg_offset(block) >> UNIT_SHIFT], next + 1);
    end_peer(child);
    proc_reap_dead();
}

/* A sender in another process fills one chunk of blocks here, and begins a second. */
static pid_t start_bouncer(struct cqe notes[BOUNCE_BLOCKS + 1])
{
    const size_t size = (BOUNCE_BLOCKS + 1) * sizeof(*notes);
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    unsigned receiver = proc_self;
    pid_t child = fork();

    if (!child) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        bool good = !segment_attach();
        for (unsigned i = 0; i < BOUNCE_BLOCKS + 1; i++)
            good &= bounce_take(receiver, &notes[i]) != NULL;
        if (!good || write(ready[1], notes, size) != (ssize_t)size)
            _exit(1);
        for (;;)
            pause();
    }
    close(ready[1]);
    for (size_t got = 0; got < size;) {
        ssize_t part = read(ready[0], (char *)notes + got, size - got);
        assert_true(part > 0);
        got += part;
    }
    close(ready[0]);
    return child;
}

static void chunks_of_a_dead_sender_are_freed_when_they_are_read(void **state)
{
    static struct cqe notes[BOUNCE_BLOCKS + 1];
    proc_reap_dead();
    uint64_t before = arena_bytes_used();
    pid_t child = start_bouncer(notes);

    for (unsigned i = 0; i < BOUNCE_BLOCKS + 1; i++) {
        assert_non_null(bounce_find(&notes[i]));
        for (unsigned k = 0; k < i; k++)
            assert_ptr_not_equal(bounce_find(&notes[i]), bounce_find(&notes[k]));
    }
    for (unsigned i = 1; i < BOUNCE_BLOCKS; i++)
        bounce_return(&notes[i]);
    bounce_return(&notes[BOUNCE_BLOCKS]);
    bounce_free_abandoned();
    assert_true(arena_bytes_used() >= before + 2 * sizeof(struct bounce_chunk));
    end_peer(child);
    proc_reap_dead();
    bounce_free_abandoned();
    assert_int_equal(load_relaxed(&bounce_find(&notes[0])->busy), 1);
    assert_true(arena_bytes_used() > before);
    bounce_return(&notes[0]);
    qp_handle_errors(); /* which looks after what the dead leave */
    assert_int_equal(arena_bytes_used(), before);
}

/* Another process takes the last slot but one between the two looks at it. */
static bool is_free_at_first(unsigned index)
{
    static unsigned looks;

    return index == MAX_PROCS - 1 || (index == MAX_PROCS - 2 && !looks++);
}

static void a_slot_that_is_taken_meanwhile_is_let_go(void **state)
{
    pid_t child = fork();
    int status;

    if (!child) {
        if (segment_attach() || proc_lock_claim(is_free_at_first) != MAX_PROCS - 1)
            _exit(1);
        _exit(proc_lock_state(segment_fd(), MAX_PROCS - 2) == PROC_LOCK_FREE &&
                      proc_lock_state(segment_fd(), MAX_PROCS - 1) == PROC_LOCK_HELD
                  ? 0
                  : 2);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    proc_reap_dead();
}

/* As a corrupted segment may have it: the holder lives and knows nothing of it. */
static void a_lock_that_is_never_released_is_taken_over(void **state)
{
    struct shm_lock lock = { 0 };

    shm_lock_patience_ns = 50000000;
    store_relaxed(&lock.holder, proc_word(proc_self));
    assert_true(shm_lock(&lock));
    shm_unlock(&lock);
    assert_false(shm_lock(&lock));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lock_ends_with_its_process),
        cmocka_unit_test(the_dead_stay_dead),
        cmocka_unit_test(without_a_lock_a_pidfd_tells),
        cmocka_unit_test(numbers_of_no_process_are_nobody),
        cmocka_unit_test(a_slot_begins_anew),
        cmocka_unit_test(a_foreign_pid_does_not_matter),
        cmocka_unit_test(the_lock_outlives_descriptors_and_not_the_process),
        cmocka_unit_test(a_process_joins_without_standard_input),
        cmocka_unit_test(descriptors_of_peers_stay_out_of_the_way),
        cmocka_unit_test(a_process_that_ends_does_not_stay),
        cmocka_unit_test(a_pid_runs_until_its_process_has_ended),
        cmocka_unit_test(a_fabric_is_alive_while_one_of_its_processes_is),
        cmocka_unit_test(a_process_in_exec_is_not_alive_and_runs),
        cmocka_unit_test(those_who_wait_reap_the_dead),
        cmocka_unit_test(another_namespace_is_far_while_its_process_lives),
        cmocka_unit_test(a_sender_has_so_many_blocks_and_uses_them_again),
        cmocka_unit_test(a_new_receiver_has_blocks_of_its_own),
        cmocka_unit_test(chunks_of_a_dead_sender_are_freed_when_they_are_read),
        cmocka_unit_test(a_slot_that_is_taken_meanwhile_is_let_go),
        cmocka_unit_test(a_lock_that_is_never_released_is_taken_over),
    };

    return cmocka_run_group_tests_name("life", tests, join_fabric, NULL);
}
