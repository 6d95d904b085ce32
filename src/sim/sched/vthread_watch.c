/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/sched/vthread_watch.h"

#include "hca/proc.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What /proc says of a thread: its state, and the processor time it has used. False: it is gone. */
static bool look_at_thread(int pid, int tid, char *state, uint64_t *used)
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
    /* One that was reserved for a process which has not started yet has no pid at first. */
    return !vthread->pid || look_at_thread(vthread->pid, vthread->pid, &state, &used);
}

bool vthread_watch_asleep(struct watch *watch, const struct vthread *holder)
{
    bool seen_before = holder && watch->holder == holder;
    uint64_t used, before = watch->used;
    char state;

    watch->holder = NULL;
    if (!holder || !(holder->guest || holder->watched) || !holder->tid || load_acquire(&holder->waits_to_run) ||
        !look_at_thread(holder->pid, holder->tid, &state, &used) || state != 'S')
        return false;
    *watch = (struct watch){ holder, used };
    return seen_before && used == before;
}
