/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/sysv_memory.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#define KEYS      0x76620000 /* and the 65535 that follow */
#define KEY_MASK  0xffff
#define KEYS_TRIED 256

int sysv_memory_create(size_t size)
{
    int id = -1;

    errno = EEXIST;
    for (unsigned try = 0; id < 0 && errno == EEXIST && try < KEYS_TRIED; try++)
        id = shmget(KEYS | ((getpid() + try) & KEY_MASK), size, IPC_CREAT | IPC_EXCL | 0600);
    return id;
}

void *sysv_memory_map(size_t size)
{
    int id = sysv_memory_create(size);
    void *memory = id < 0 ? MAP_FAILED : shmat(id, NULL, 0);

    if (id >= 0)
        shmctl(id, IPC_RMID, NULL);
    return memory == MAP_FAILED ? NULL : memory;
}

/* The creator is 0 if it is in a PID namespace that this process does not see. */
static bool is_stale(const struct shmid_ds *found)
{
    return (found->shm_perm.__key & ~KEY_MASK) == KEYS && found->shm_perm.cuid == geteuid() &&
           !found->shm_nattch && found->shm_cpid > 0 && kill(found->shm_cpid, 0) && errno == ESRCH;
}

void sysv_memory_each_stale(void (*each)(int id, uint64_t bytes, void *context), void *context)
{
    struct shm_info info;
    struct shmid_ds found;
    int last = shmctl(0, SHM_INFO, (struct shmid_ds *)&info);

    for (int index = 0; index <= last; index++) {
        int id = shmctl(index, SHM_STAT, &found);

        if (id >= 0 && is_stale(&found))
            each(id, found.shm_segsz, context);
    }
}

static void remove_one(int id, uint64_t bytes, void *unused)
{
    shmctl(id, IPC_RMID, NULL);
}

void sysv_memory_remove_stale(void)
{
    sysv_memory_each_stale(remove_one, NULL);
}
