/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/sched/vthread_watch.h"

#include "hca/proc.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Reads the state and CPU time of a thread from /proc. Returns false if the thread is gone. */
static bool read_thread_stat(int pid, int tid, char *state, uint64_t *used)
{
    char name[64], text[512];
    unsigned long long user, system;
    ssize_t length;
    char *after_name;
    int fd;

    snprintf(name, sizeof(name), "/proc/%d/task/%d/stat", pid, tid);
    fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    length = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (length <= 0)
        return false;
    text[length] = '\0';
    after_name = strrchr(text, ')');
    if (!after_name ||
        sscanf(after_name + 2, "%c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", state, &user,
               &system) != 3)
        return false;
    *used = user + system;
    return *state != 'Z' && *state != 'X';
}

bool vthread_alive(const struct vthread *vthread)
{
    uint64_t used;
    char state;

    if (!vthread->known_by_pid)
        return proc_word_alive(vthread->process);
    /* A vthread reserved for a process that has not started yet has no pid. */
    return !vthread->pid || read_thread_stat(vthread->pid, vthread->pid, &state, &used);
}

bool vthread_watch_asleep(struct watch *watch, const struct vthread *runner)
{
    bool seen_before = runner && watch->runner == runner;
    uint64_t used, before = watch->used;
    char state;

    watch->runner = NULL;
    if (!runner || !(runner->guest || runner->watched) || !runner->tid ||
        load_acquire(&runner->waits_to_run) ||
        !read_thread_stat(runner->pid, runner->tid, &state, &used) || state != 'S')
        return false;
    *watch = (struct watch){ runner, used };
    return seen_before && used == before;
}
