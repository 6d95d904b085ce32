/* SPDX-License-Identifier: BSD-2-Clause */
/* Files written and read as a whole: what replaces them, what refuses, what is left behind. */
#include "util/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/verbena-file-XXXXXX";

static int enter_folder(void **state)
{
    return mkdtemp(folder) && !chdir(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    return chdir("/") || rmdir(folder);
}

static void expect_text(const char *path, const char *text)
{
    char error[PATH_MAX + 64] = "";
    size_t length;
    char *found = file_read(path, FILE_TEXT_MAX, &length, error, sizeof(error));

    if (!found)
        fail_msg("%s", error);
    assert_string_equal(found, text);
    assert_int_equal(length, strlen(text));
    free(found);
}

static void expect_refusal(const char *path, size_t limit, const char *why)
{
    char error[PATH_MAX + 64] = "";
    size_t length;

    assert_null(file_read(path, limit, &length, error, sizeof(error)));
    if (!strstr(error, path) || !strstr(error, why))
        fail_msg("%s: '%s' is not in '%s'", path, why, error);
}

static void a_file_is_replaced_with_its_mode_and_links(void **state)
{
    struct stat status;

    umask(022);
    assert_int_equal(file_write("plain", "one", 3), 0);
    expect_text("plain", "one");
    assert_int_equal(stat("plain", &status), 0);
    assert_int_equal(status.st_mode & 07777, 0644);
    assert_int_equal(chmod("plain", 0600), 0);
    assert_int_equal(symlink("plain", "link"), 0);
    assert_int_equal(file_write("link", "second", 6), 0);
    expect_text("plain", "second");
    assert_int_equal(stat("plain", &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    assert_int_equal(lstat("link", &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    assert_int_equal(unlink("link"), 0);
    assert_int_equal(unlink("plain"), 0);
}

static void a_failure_leaves_the_file_as_it_was(void **state)
{
    struct rlimit whole, small;
    struct file_text file;
    sigset_t pending;
    char *text;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &whole), 0);
    assert_int_equal(file_write("kept", "old", 3), 0);
    small = whole;
    small.rlim_cur = 1;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_int_equal(file_write("kept", "newer", 5), -1);
    assert_int_equal(errno, EFBIG);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &whole), 0);
    assert_int_equal(sigpending(&pending), 0);
    assert_false(sigismember(&pending, SIGXFSZ));
    expect_text("kept", "old");
    fputs("dropped", file_begin(&file));
    file_drop(&file);
    expect_text("kept", "old");
    fputs("taken", file_begin(&file));
    text = file_take(&file);
    assert_string_equal(text, "taken");
    free(text);
    fputs("gathered", file_begin(&file));
    assert_int_equal(file_end(&file, "kept"), 0);
    expect_text("kept", "gathered");
    /* remove_folder() sees whether anything lies beside it. */
    assert_int_equal(unlink("kept"), 0);
}

static void errors_name_their_reason(void **state)
{
    struct file_text file;

    assert_int_equal(file_write("/dev/full", "x", 1), -1);
    assert_int_equal(errno, ENOSPC);
    assert_int_equal(file_write("no/such/folder", "x", 1), -1);
    assert_int_equal(errno, ENOENT);
    fputs("x", file_begin(&file));
    assert_int_equal(file_end(&file, "/dev/full"), -1);
    assert_int_equal(errno, ENOSPC);
}

static void a_pipe_is_written_directly(void **state)
{
    char text[8] = "";
    int fd;

    assert_int_equal(mkfifo("pipe", 0600), 0);
    fd = open("pipe", O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(file_write("pipe", "through", 7), 0);
    assert_int_equal(read(fd, text, 7), 7);
    assert_string_equal(text, "through");
    close(fd);
    assert_int_equal(unlink("pipe"), 0);
}

static void what_is_too_long_or_no_file_is_refused(void **state)
{
    char *long_text = malloc(FILE_TEXT_MAX + 1);

    memset(long_text, 'x', FILE_TEXT_MAX + 1);
    assert_int_equal(file_write("long", long_text, FILE_TEXT_MAX + 1), 0);
    expect_refusal("long", FILE_TEXT_MAX, "larger than the limit of 1 MiB");
    assert_int_equal(truncate("long", FILE_TEXT_MAX), 0);
    long_text[FILE_TEXT_MAX] = '\0';
    expect_text("long", long_text);
    free(long_text);
    assert_int_equal(unlink("long"), 0);
    expect_refusal("/dev/zero", FILE_TEXT_MAX, "is a device");
    expect_refusal("/", FILE_TEXT_MAX, "Is a directory");
    expect_refusal("nothing", FILE_TEXT_MAX, "No such file");
}

static void one_file_has_many_names(void **state)
{
    assert_int_equal(file_write("a", "x", 1), 0);
    assert_int_equal(file_write("b", "x", 1), 0);
    assert_int_equal(link("a", "hard"), 0);
    assert_int_equal(symlink("a", "soft"), 0);
    assert_true(file_same("a", "a"));
    assert_true(file_same("a", "./hard"));
    assert_true(file_same("soft", "a"));
    assert_false(file_same("a", "b"));
    assert_false(file_same("a", "nothing"));
    assert_false(file_same("/dev/null", "/dev/null"));
    unlink("a");
    unlink("b");
    unlink("hard");
    unlink("soft");
}

/* Descriptor 0 is one like any other where standard input is closed. */
static void no_descriptor_is_left_open(void **state)
{
    int input = dup(STDIN_FILENO);

    close(STDIN_FILENO);
    assert_int_equal(file_write("a", "one", 3), 0);
    assert_int_equal(file_write("a", "two", 3), 0);
    expect_text("a", "two");
    expect_refusal("a", 2, "larger than the limit");
    expect_refusal("/", FILE_TEXT_MAX, "Is a directory");
    assert_true(file_same("a", "./a"));
    int lowest = open("a", O_RDONLY);
    if (input >= 0)
        dup2(input, STDIN_FILENO);
    close(input);
    unlink("a");
    assert_int_equal(lowest, STDIN_FILENO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_replaced_with_its_mode_and_links),
        cmocka_unit_test(a_failure_leaves_the_file_as_it_was),
        cmocka_unit_test(errors_name_their_reason),
        cmocka_unit_test(a_pipe_is_written_directly),
        cmocka_unit_test(what_is_too_long_or_no_file_is_refused),
        cmocka_unit_test(one_file_has_many_names),
        cmocka_unit_test(no_descriptor_is_left_open),
    };

    return cmocka_run_group_tests(tests, enter_folder, remove_folder);
}
