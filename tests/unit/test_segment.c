/* SPDX-License-Identifier: BSD-2-Clause */
/* Which segment a process attaches to, from its environment, and which it refuses. */

#include "fabric.h"

#include "hca/proc.h"
#include "hca/segment.h"
#include "util/util.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int join_fabric(void **state)
{
    setenv("VERBENA_SEED", "1234567", 1);
    setenv("VERBENA_DEVICES", "2", 1);
    fabric_open();
    unsetenv("VERBENA_SEED");
    unsetenv("VERBENA_DEVICES");
    return 0;
}

/* What 'body' returns in a child with these variables, and what it logs. */
static char said[4096];

static int in_child(int (*body)(void), const char *name, const char *value)
{
    FILE *file = tmpfile();
    int status;
    pid_t child = fork();

    if (!child) {
        dup2(fileno(file), STDERR_FILENO);
        if (name)
            setenv(name, value, 1);
        _exit(body());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    rewind(file);
    said[fread(said, 1, sizeof(said) - 1, file)] = '\0';
    fclose(file);
    proc_reap_dead();
    return WEXITSTATUS(status);
}

static void expect_said(const char *text)
{
    if (!strstr(said, text))
        fail_msg("'%s' is not in '%s'", text, said);
}

/* ---- numbers ---- */

static struct fabric_config config;

static int read_config(void)
{
    return segment_read_config(&config);
}

static void numbers_have_limits(void **state)
{
    static const struct {
        const char *name;
        unsigned *field;
        unsigned minimum, maximum;
    } rows[] = {
        { "VERBENA_NODES", &config.nodes, 1, 4096 },   { "VERBENA_NODE", &config.node, 0, 4095 },
        { "VERBENA_DEVICES", &config.devices, 1, 8 },  { "VERBENA_PORTS", &config.ports, 1, 4 },
        { "VERBENA_SEED", &config.seed, 1, UINT_MAX },
    };
    static const char *const wrong[] = { "x", "-1", "+1", " 1", "1x", "99999999999999999999" };
    char text[64];

    for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
        unsetenv(rows[i].name);
        assert_int_equal(read_config(), 0);
        assert_int_equal(*rows[i].field, 0);
        setenv(rows[i].name, "", 1);
        assert_int_equal(read_config(), 0);
        assert_int_equal(*rows[i].field, 0);
        snprintf(text, sizeof(text), "%u", rows[i].minimum);
        setenv(rows[i].name, text, 1);
        assert_int_equal(read_config(), 0);
        assert_int_equal(*rows[i].field, rows[i].minimum);
        snprintf(text, sizeof(text), "%u", rows[i].maximum);
        setenv(rows[i].name, text, 1);
        assert_int_equal(read_config(), 0);
        assert_int_equal(*rows[i].field, rows[i].maximum);
        unsetenv(rows[i].name);
        snprintf(text, sizeof(text), "%llu", rows[i].maximum + 1ull);
        assert_int_equal(in_child(read_config, rows[i].name, text), EINVAL);
        snprintf(text, sizeof(text), "expected a number from %u to %u\n", rows[i].minimum,
                 rows[i].maximum);
        expect_said(text);
        if (rows[i].minimum)
            assert_int_equal(in_child(read_config, rows[i].name, "0"), EINVAL);
    }
    for (unsigned i = 0; i < ARRAY_SIZE(wrong); i++)
        assert_int_equal(in_child(read_config, "VERBENA_NODES", wrong[i]), EINVAL);
}

static void names_have_limits(void **state)
{
    char kept[80], name[80] = "", folder[600] = "/tmp";

    snprintf(kept, sizeof(kept), "%s", getenv("VERBENA_FABRIC"));
    memset(name, 'x', sizeof(config.name) - 1);
    setenv("VERBENA_FABRIC", name, 1);
    assert_int_equal(read_config(), 0);
    assert_string_equal(config.name, name);
    name[sizeof(config.name) - 1] = 'x';
    assert_int_equal(in_child(read_config, "VERBENA_FABRIC", name), EINVAL);
    expect_said("expected up to 64 letters, digits, '_', '.', '-'");
    assert_int_equal(in_child(read_config, "VERBENA_FABRIC", "a/b"), EINVAL);
    setenv("VERBENA_FABRIC", "", 1);
    assert_int_equal(read_config(), 0);
    assert_string_equal(config.name, "default");
    setenv("VERBENA_FABRIC", kept, 1);
    memset(folder, '/', sizeof(config.dir));
    assert_int_equal(in_child(read_config, "VERBENA_SHM_DIR", folder), EINVAL);
    expect_said("VERBENA_SHM_DIR is too long");
    folder[sizeof(config.dir) - 1] = '\0';
    assert_int_equal(in_child(read_config, "VERBENA_SHM_DIR", folder), 0);
    assert_int_equal(read_config(), 0);
}

/* The first outputs of splitmix64 with this seed are published. */
static void a_seed_decides_the_numbers(void **state)
{
    assert_int_equal(seg->seed, 1234567);
    assert_int_equal(segment_random(0), 6457827717110365317ull);
    assert_int_equal(segment_random(1), segment_random(1));
    assert_int_not_equal(segment_random(1), segment_random(2));
    assert_int_equal(seg->first_lid, 1 + segment_random(SEED_LID) % (0xbfff - 2));
    assert_int_equal(seg->nodes, 1);
    assert_int_equal(seg->devices, 2);
    assert_int_equal(seg->ports, 1);
}

/* ---- attaching ---- */

static int attach(void)
{
    return segment_attach();
}

static void the_shape_of_a_fabric_is_fixed(void **state)
{
    assert_int_equal(in_child(attach, NULL, NULL), 0);
    assert_int_equal(in_child(attach, "VERBENA_DEVICES", "2"), 0);
    assert_int_equal(in_child(attach, "VERBENA_DEVICES", "3"), EINVAL);
    expect_said("has 2 devices, this process asks for 3");
    assert_int_equal(in_child(attach, "VERBENA_NODES", "2"), EINVAL);
    expect_said("has 1 nodes, this process asks for 2");
    assert_int_equal(in_child(attach, "VERBENA_PORTS", "2"), EINVAL);
    expect_said("has 1 ports, this process asks for 2");
    assert_int_equal(in_child(attach, "VERBENA_NODE", "1"), EINVAL);
    expect_said("has 1 nodes: there is no node 1");
    assert_int_equal(in_child(attach, "VERBENA_NODE", "0"), 0);
}

/* A process of another PID or user namespace cannot be woken, unless it has prepared for that. */
static void far_processes_meet_if_they_can_wake_each_other(void **state)
{
    struct proc_slot *slot = proc_slot(proc_self);
    uint64_t *namespaces[] = { &slot->pid_namespace, &slot->user_namespace };
    uint32_t locked = slot->locked, wake_by_name = slot->wake_by_name;

    for (unsigned i = 0; i < ARRAY_SIZE(namespaces); i++) {
        *namespaces[i] += 1;
        slot->wake_by_name = 0;
        assert_int_equal(in_child(attach, NULL, NULL), EXDEV);
        expect_said("is in another PID or user namespace and cannot be woken from here: ");
        slot->wake_by_name = 1;
        slot->locked = 0;
        assert_int_equal(in_child(attach, NULL, NULL), EXDEV);
        slot->locked = locked;
        assert_int_equal(load_relaxed(&slot->agent_wanted), 0);
        assert_int_equal(in_child(attach, NULL, NULL), 0);
        assert_int_equal(load_relaxed(&slot->agent_wanted), 1);
        slot->wake_by_name = 0;
        store_relaxed(&slot->agent_wanted, 0);
        store_relaxed(&slot->agent_running, AGENT_FOR_ALL);
        assert_int_equal(in_child(attach, NULL, NULL), 0);
        store_relaxed(&slot->agent_wanted, 0);
        store_relaxed(&slot->agent_running, AGENT_OFF);
        *namespaces[i] -= 1;
    }
    slot->wake_by_name = wake_by_name;
}

/* Another fabric of this user, whose file is there already. */
static const char *strange_path(void)
{
    static char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/verbena-%u-strange-%d", segment_config()->dir,
             (unsigned)geteuid(), (int)getpid());
    return path;
}

/* Whether it attaches or not, it leaves the descriptors of the program alone. */
static int attach_strange(void)
{
    char name[64];

    snprintf(name, sizeof(name), "strange-%d", (int)getppid());
    setenv("VERBENA_FABRIC", name, 1);
    close(STDIN_FILENO);
    int err = segment_attach();
    return dup(STDERR_FILENO) == STDIN_FILENO ? err : -1;
}

static void what_is_not_ours_is_refused(void **state)
{
    const char *path = strange_path();
    char other[PATH_MAX + 2];

    snprintf(other, sizeof(other), "%s-2", path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(in_child(attach_strange, NULL, NULL), EPERM);
    expect_said("it is not a plain file; choose another --fabric");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(in_child(attach_strange, NULL, NULL), EPERM);
    expect_said("it is not a plain file");
    assert_int_equal(rmdir(path), 0);
    int fd = open(other, O_CREAT | O_RDWR, 0600);
    assert_int_equal(symlink(other, path), 0);
    assert_int_equal(in_child(attach_strange, NULL, NULL), EPERM);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(link(other, path), 0);
    assert_int_equal(in_child(attach_strange, NULL, NULL), EPERM);
    expect_said("it has another name, too (a hard link)");
    assert_int_equal(unlink(other), 0);
    close(fd);
    assert_int_equal(in_child(attach_strange, NULL, NULL), 0); /* empty, and ours alone */
    unlink(path);
}

/* Of another version, or damaged: nobody uses it, so it is replaced. */
static void a_file_that_nobody_uses_is_replaced(void **state)
{
    const char *path = strange_path();
    struct stat before, after;
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    for (int i = 0; i < 2000; i++)
        fputs("garbage ", file);
    fclose(file);
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(stat(path, &before), 0);
    assert_int_equal(in_child(attach_strange, NULL, NULL), 0);
    assert_int_equal(stat(path, &after), 0); /* _exit() leaves it behind */
    assert_int_equal(after.st_mode & 0777, 0600);
    assert_true(after.st_size >= (off_t)sizeof(struct segment));
    assert_int_equal(unlink(path), 0);
}

/* Somebody uses it, so it stays, and nobody with another layout joins. */
static void a_segment_of_another_version_is_left_alone(void **state)
{
    static const size_t fields[] = { offsetof(struct segment, magic),
                                     offsetof(struct segment, version),
                                     offsetof(struct segment, size_check) };
    uint8_t header[offsetof(struct segment, seed)];
    const char *path = strange_path();
    struct stat before, after;
    int fd = open(path, O_CREAT | O_RDWR, 0600);

    assert_int_equal(ftruncate(fd, sizeof(struct segment)), 0);
    assert_int_equal(flock(fd, LOCK_SH), 0);
    assert_int_equal(fstat(fd, &before), 0);
    for (unsigned i = 0; i <= ARRAY_SIZE(fields); i++) {
        memcpy(header, seg, sizeof(header));
        if (i < ARRAY_SIZE(fields))
            header[fields[i]]++;
        else
            assert_int_equal(ftruncate(fd, sizeof(struct segment) - 1), 0);
        assert_int_equal(pwrite(fd, header, sizeof(header), 0), sizeof(header));
        assert_int_equal(in_child(attach_strange, NULL, NULL), EPROTO);
        expect_said("in use by processes with another version of Verbena");
        assert_int_equal(stat(path, &after), 0);
        assert_int_equal(after.st_ino, before.st_ino);
    }
    close(fd);
    assert_int_equal(unlink(path), 0);
}

/* ---- leaving ---- */

static int attach_and_exit(void)
{
    int err = attach_strange();

    if (err)
        return err;
    exit(0);
}

static int attach_twice(void)
{
    int err = attach_strange(), status;
    pid_t child = fork();

    if (!child) {
        if (segment_attach())
            _exit(1);
        exit(0);
    }
    if (err || waitpid(child, &status, 0) != child || status)
        return -1;
    return access(segment_path(), F_OK);
}

/* And the pipes that killed processes have left beside it, of this fabric alone. */
static void the_last_one_removes_the_file(void **state)
{
    const char *base = strrchr(strange_path(), '/') + 1;
    char pipes[2][PATH_MAX + 8];

    for (int i = 0; i < 2; i++) {
        snprintf(pipes[i], sizeof(pipes[i]), "%s/.%s%s+1+2", segment_config()->dir, base,
                 i ? "-other" : "");
        assert_int_equal(mkfifo(pipes[i], 0600), 0);
    }
    assert_int_equal(in_child(attach_and_exit, NULL, NULL), 0);
    assert_int_equal(access(strange_path(), F_OK), -1);
    assert_int_equal(unlink(pipes[0]), -1);
    assert_int_equal(unlink(pipes[1]), 0);
    assert_int_equal(in_child(attach_twice, NULL, NULL), 0);
    assert_int_equal(unlink(strange_path()), 0);
}

/* A program may close every descriptor it finds. */
static int close_and_open_again(void)
{
    if (segment_attach() || segment_fd() < 512)
        return 1;
    close(segment_fd());
    int fd = segment_fd();
    if (fd < 0 || segment_fd() != fd || !segment_reaches(sizeof(struct segment)))
        return 2;
    if (segment_reaches(seg_limit + 1))
        return 3;
    return 0;
}

static void a_closed_file_is_opened_again(void **state)
{
    assert_int_equal(in_child(close_and_open_again, NULL, NULL), 0);
}

/* Another file under the same name is another fabric. */
static int open_after_replacement(void)
{
    if (attach_strange())
        return 1;
    unlink(segment_path());
    close(open(segment_path(), O_CREAT | O_RDWR, 0600));
    int fd = segment_open_again(), err = errno;
    unlink(segment_path());
    return fd == -1 && err == ENOENT ? 0 : 2;
}

static void a_replaced_file_is_not_opened(void **state)
{
    assert_int_equal(in_child(open_after_replacement, NULL, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_have_limits),
        cmocka_unit_test(names_have_limits),
        cmocka_unit_test(a_seed_decides_the_numbers),
        cmocka_unit_test(the_shape_of_a_fabric_is_fixed),
        cmocka_unit_test(far_processes_meet_if_they_can_wake_each_other),
        cmocka_unit_test(what_is_not_ours_is_refused),
        cmocka_unit_test(a_file_that_nobody_uses_is_replaced),
        cmocka_unit_test(a_segment_of_another_version_is_left_alone),
        cmocka_unit_test(the_last_one_removes_the_file),
        cmocka_unit_test(a_closed_file_is_opened_again),
        cmocka_unit_test(a_replaced_file_is_not_opened),
    };

    return cmocka_run_group_tests_name("segment", tests, join_fabric, NULL);
}
