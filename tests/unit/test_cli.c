/* SPDX-License-Identifier: BSD-2-Clause */
/* Parsing of the command line, and what is read from ELF and segment files. */
#include "cli/binary.h"
#include "cli/commands.h"
#include "cli/segment.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define WORDS(...) ((char *[]){ __VA_ARGS__, NULL })

static int parse(const char *command, char **words, struct invocation *out)
{
    bool help;
    int count = 0;

    while (words[count])
        count++;
    return options_parse(cli_find_command(command), count, words, out, &help);
}

static void options_take_both_forms(void **state)
{
    struct invocation out;

    assert_int_equal(parse("run", WORDS("--nodes", "4", "--node=3", "prog", "--nodes"), &out), 0);
    assert_string_equal(option_value(&out, "nodes"), "4");
    assert_string_equal(option_value(&out, "node"), "3");
    assert_null(option_value(&out, "devices"));
    assert_int_equal(out.operand_count, 2);
    assert_string_equal(out.operands[1], "--nodes");
}

static void two_dashes_end_the_options(void **state)
{
    struct invocation out;

    assert_int_equal(parse("run", WORDS("--", "--nodes", "x"), &out), 0);
    assert_int_equal(out.operand_count, 2);
    assert_string_equal(out.operands[0], "--nodes");
    assert_null(option_value(&out, "nodes"));
}

static void operands_may_stand_anywhere(void **state)
{
    struct invocation out;

    assert_int_equal(parse("list", WORDS("--json", "devices", "--nodes", "2"), &out), 0);
    assert_int_equal(out.operand_count, 1);
    assert_string_equal(out.operands[0], "devices");
    assert_string_equal(option_value(&out, "json"), "1");
    assert_string_equal(option_value(&out, "nodes"), "2");
}

static void numbers_stay_in_range(void **state)
{
    static char *const wrong[] = { "0",  "4097", "-1",  "+1",  " 1",
                                   "1 ", "",    "0x1", "1e1", "18446744073709551617" };
    struct invocation out;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        assert_int_equal(parse("run", WORDS("--nodes", wrong[i]), &out), CLI_USAGE);
    assert_int_equal(parse("run", WORDS("--nodes", "1"), &out), 0);
    assert_int_equal(parse("run", WORDS("--nodes", "4096"), &out), 0);
}

static void choices_are_whole_words(void **state)
{
    static char *const wrong[] = { "", "aut", "autoo", "auto agent", "agen", "gent", " " };
    struct invocation out;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        assert_int_equal(parse("run", WORDS("--copy", wrong[i]), &out), CLI_USAGE);
    assert_int_equal(parse("run", WORDS("--copy", "auto"), &out), 0);
    assert_int_equal(parse("run", WORDS("--copy", "agent"), &out), 0);
}

static void options_reach_the_environment(void **state)
{
    struct invocation out;

    setenv("VERBENA_PORTS", "3", 1);
    unsetenv("VERBENA_DEVICES");
    assert_int_equal(parse("run", WORDS("--nodes", "7"), &out), 0);
    options_export(&out);
    assert_string_equal(getenv("VERBENA_NODES"), "7");
    assert_string_equal(getenv("VERBENA_PORTS"), "3");
    assert_null(getenv("VERBENA_DEVICES"));
}

static void rows_fit_the_parser(void **state)
{
    for (const struct command *command = cli_commands; command->name; command++) {
        int count = 0;

        while (command->options[count].name)
            count++;
        assert_true(count <= CLI_OPTIONS_MAX);
        assert_non_null(command->run);
    }
}

static char folder[] = "/tmp/verbena-unit-XXXXXX";
static char file_path[128];

static void write_file(const void *bytes, size_t size)
{
    int fd;

    snprintf(file_path, sizeof(file_path), "%s/file", folder);
    fd = open(file_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, size), size);
    close(fd);
}

static void natures_are_told_apart(void **state)
{
    unsigned char header[64] = "\177ELF";

    assert_int_equal(binary_type_of("/proc/self/exe"), BINARY_DYNAMIC);
    assert_int_equal(binary_type_of("/nonexistent"), BINARY_NONE);
    write_file("#!/bin/sh\n", 10);
    assert_int_equal(binary_type_of(file_path), BINARY_NONE);
    write_file("", 0);
    assert_int_equal(binary_type_of(file_path), BINARY_NONE);
    write_file(header, sizeof(header));
    assert_int_equal(binary_type_of(file_path), BINARY_FOREIGN);
}

/* Any prefix of a library, and one whose every byte was turned, must be read without harm. */
static void damaged_libraries_do_no_harm(void **state)
{
    static unsigned char bytes[1 << 20];
    const char *library = SYSTEM_LIBRARY;
    int fd = open(library, O_RDONLY);
    ssize_t size = read(fd, bytes, sizeof(bytes));
    char missing[64];

    close(fd);
    assert_true(size > 4096);
    assert_true(binary_versions_cover(library, library, missing, sizeof(missing)));
    for (ssize_t cut = 1; cut < size; cut += 997) {
        write_file(bytes, cut);
        binary_versions_cover(library, file_path, missing, sizeof(missing));
        binary_versions_cover(file_path, library, missing, sizeof(missing));
    }
    for (ssize_t at = 0; at < 64; at++) {
        bytes[at] ^= 0xff;
        write_file(bytes, size);
        binary_versions_cover(library, file_path, missing, sizeof(missing));
        binary_type_of(file_path);
        bytes[at] ^= 0xff;
    }
}

static void missing_versions_are_named(void **state)
{
    char missing[64] = "";

    assert_false(binary_versions_cover("/proc/self/exe", SYSTEM_LIBRARY, missing, sizeof(missing)));
    assert_non_null(strstr(missing, "IBVERBS_"));
    assert_true(binary_versions_cover(SYSTEM_LIBRARY, "/nonexistent", missing, sizeof(missing)));
    assert_false(binary_versions_cover("/nonexistent", SYSTEM_LIBRARY, missing, sizeof(missing)));
}

static void only_unused_segments_go(void **state)
{
    char path[256];
    int fd;

    setenv("VERBENA_SHM_DIR", folder, 1);
    setenv("VERBENA_FABRIC", "unit", 1);
    assert_int_equal(segment_path(path, sizeof(path)), 0);
    assert_int_equal(segment_state_of(path), SEGMENT_ABSENT);
    fd = open(path, O_RDWR | O_CREAT, 0600);
    assert_int_equal(flock(fd, LOCK_SH), 0);
    assert_int_equal(segment_state_of(path), SEGMENT_IN_USE);
    segment_remove_unused();
    assert_int_equal(access(path, F_OK), 0);
    flock(fd, LOCK_UN);
    close(fd);
    assert_int_equal(segment_state_of(path), SEGMENT_STALE);
    segment_remove_unused();
    assert_int_equal(segment_state_of(path), SEGMENT_ABSENT);
}

static int make_folder(void **state)
{
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    unlink(file_path);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_take_both_forms),
        cmocka_unit_test(two_dashes_end_the_options),
        cmocka_unit_test(operands_may_stand_anywhere),
        cmocka_unit_test(numbers_stay_in_range),
        cmocka_unit_test(choices_are_whole_words),
        cmocka_unit_test(options_reach_the_environment),
        cmocka_unit_test(rows_fit_the_parser),
        cmocka_unit_test(natures_are_told_apart),
        cmocka_unit_test(damaged_libraries_do_no_harm),
        cmocka_unit_test(missing_versions_are_named),
        cmocka_unit_test(only_unused_segments_go),
    };

    return cmocka_run_group_tests_name("cli", tests, make_folder, remove_folder);
}
