/* SPDX-License-Identifier: BSD-2-Clause */
/* Which System V segments count as left behind by the dead. */
#include "util/sysv_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE 12345

static int create_private(size_t size)
{
    return shmget(IPC_PRIVATE, size, 0600);
}

/* The id of a segment whose creator has died. */
static int left_behind(int (*create)(size_t size))
{
    int ends[2], id, status;

    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (!child) {
        id = create(SIZE);
        _exit(write(ends[1], &id, sizeof(id)) != sizeof(id));
    }
    assert_int_equal(read(ends[0], &id, sizeof(id)), sizeof(id));
    assert_int_equal(waitpid(child, &status, 0), child);
    close(ends[0]);
    close(ends[1]);
    assert_true(id >= 0);
    return id;
}

static bool exists(int id)
{
    struct shmid_ds found;

    return !shmctl(id, IPC_STAT, &found);
}

static void what_the_dead_leave_is_removed(void **state)
{
    int first = left_behind(sysv_memory_create), second = left_behind(sysv_memory_create);

    sysv_memory_remove_stale();
    assert_false(exists(first));
    assert_false(exists(second));
}

static void what_the_living_use_stays(void **state)
{
    int own = sysv_memory_create(SIZE), other = sysv_memory_create(SIZE);

    assert_true(own >= 0 && other >= 0 && own != other);
    sysv_memory_remove_stale();
    assert_true(exists(own) && exists(other));
    shmctl(own, IPC_RMID, NULL);
    shmctl(other, IPC_RMID, NULL);
}

static void what_others_have_created_stays(void **state)
{
    int id = left_behind(create_private);

    sysv_memory_remove_stale();
    assert_true(exists(id));
    shmctl(id, IPC_RMID, NULL);
}

/* Its memory is there, and no segment stays for others to find. */
static void mapped_memory_is_removed_at_once(void **state)
{
    char *memory = sysv_memory_map(SIZE);

    assert_non_null(memory);
    assert_int_equal(memory[0] | memory[SIZE - 1], 0);
    memory[SIZE - 1] = 1;
    assert_int_equal(munmap(memory, SIZE), 0);
    int id = sysv_memory_create(SIZE); /* the key is free again */
    struct shmid_ds found;

    assert_int_equal(shmctl(id, IPC_STAT, &found), 0);
    assert_int_equal(found.shm_perm.__key & 0xffff, getpid() & 0xffff);
    shmctl(id, IPC_RMID, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_dead_leave_is_removed),
        cmocka_unit_test(what_the_living_use_stays),
        cmocka_unit_test(what_others_have_created_stays),
        cmocka_unit_test(mapped_memory_is_removed_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
