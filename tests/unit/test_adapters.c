/* SPDX-License-Identifier: BSD-2-Clause */
/* Adapter files: what is right is read as it stands, what is wrong is refused with file, line and
 * reason; and every file that comes with the program is right and says where its numbers are from.
 */
#include "sim/adapter/adapter_file.h"
#include "sim/adapter/parameters.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char directory[] = "/tmp/verbena-adapters-XXXXXX";
static char error[PATH_MAX + 512];

static const char *path_of(const char *name)
{
    static char paths[2][PATH_MAX];
    static int next;

    next = !next;
    snprintf(paths[next], sizeof(paths[next]), "%s/%s", directory, name);
    return paths[next];
}

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(path_of(name), "w");

    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* Reads a file of the scratch directory; what is wrong is told without that directory. */
static const char *reason(const char *name, const char *settings, struct parameters *out)
{
    size_t length = strlen(directory) + 1;
    char *found;

    if (!parameters_read(path_of(name), settings, out, error, sizeof(error)))
        return "";
    while ((found = strstr(error, directory)))
        memmove(found, found + length, strlen(found + length) + 1);
    return error;
}

/* A file that is based on a whole one and has these lines from line 2 on. */
static void expect(const char *lines, const char *wanted)
{
    struct parameters unused;
    char text[1024];

    snprintf(text, sizeof(text), "based-on = %s/mt25208.adapter\n%s", SHIPPED, lines);
    write_file("bad.adapter", text);
    assert_string_equal(reason("bad.adapter", NULL, &unused), wanted);
}

static void expect_setting(const char *settings, const char *wanted)
{
    struct parameters unused;

    write_file("plain.adapter", "based-on = " SHIPPED "/mt25208.adapter\n");
    assert_string_equal(reason("plain.adapter", settings, &unused), wanted);
}

static void values_are_read(void **state)
{
    struct parameters out;

    write_file("good.adapter", "# A remark.\n"
                               "based-on = " SHIPPED "/mt25208.adapter\n"
                               "\n"
                               "title = Mine, of 2026   # a remark\n"
                               "host.post_send=1.5us\n"
                               "  host.poll_hit   =\t250   ns  # fitted\n"
                               "host.destroy_qp = 0.25 ms\n"
                               "host.destroy_connected_qp = 2 s\n"
                               "bus.rate = 4000 MB/s\n"
                               "bus.read_rate = 4 Gbit/s\n"
                               "link.rate = 1000 Mbit/s\n"
                               "bus.half_duplex = yes\n"
                               "hca.buffer = 1.5 MB\n"
                               "link.mtu = 4 KB\n"
                               "hca.engines = 3\n"
                               "nas.is = 2.5\n"
                               "icm.location = host\n");
    assert_string_equal(reason("good.adapter", NULL, &out), "");
    assert_string_equal(out.name, "good");
    assert_string_equal(out.title, "Mine, of 2026");
    assert_true(out.host.post_send == 1500);
    assert_true(out.host.poll_hit == 250);
    assert_true(out.host.destroy_qp == 250e3);
    assert_true(out.host.destroy_connected_qp == 2e9);
    assert_true(out.bus.rate == 4);
    assert_true(out.bus.read_rate == 0.5);
    assert_true(out.link.rate == 0.125);
    assert_true(out.bus.half_duplex);
    assert_int_equal(out.hca.buffer, 3 << 19);
    assert_int_equal(out.link.mtu, 4096);
    assert_int_equal(out.hca.engines, 3);
    assert_true(out.nas.is == 2.5);
    assert_int_equal(out.icm.location, ICM_IN_HOST);
    /* from the file it is based on, from the one that is based on, and from the row */
    assert_true(out.bus.write_overhead == 10);
    assert_true(out.host.modify_qp == 98667);
    assert_int_equal(out.host.page_size, 4096);
}

static void wrong_lines_are_refused(void **state)
{
    expect("\nbus.speed = 1 GB/s\n", "bad.adapter:3: unknown key 'bus.speed'");
    expect("bus.rate\n", "bad.adapter:2: expected 'key = value'");
    expect("bus.rate =  # nothing\n", "bad.adapter:2: expected 'key = value'");
    expect("= 3\n", "bad.adapter:2: expected 'key = value'");
    expect("bus.rate = 1 GB/s\nlink.mtu = 256 B\nbus.rate = 1 GB/s\n",
           "bad.adapter:4: bus.rate is already set in line 2");
}

static void wrong_units_are_refused(void **state)
{
    expect("bus.rate = 5 ns\n",
           "bad.adapter:2: bus.rate takes a rate (MB/s, GB/s, Mbit/s or Gbit/s), not '5 ns'");
    expect("bus.rate = 5\n",
           "bad.adapter:2: bus.rate takes a rate (MB/s, GB/s, Mbit/s or Gbit/s), not '5'");
    expect("hca.wqe_time = 5 sec\n",
           "bad.adapter:2: hca.wqe_time takes a time (ns, us, ms or s), not '5 sec'");
    expect("hca.wqe_time = inf\n",
           "bad.adapter:2: hca.wqe_time takes a time (ns, us, ms or s), not 'inf'");
    expect("hca.wqe_time = 1e3 ns\n",
           "bad.adapter:2: hca.wqe_time takes a time (ns, us, ms or s), not '1e3 ns'");
    expect("hca.buffer = 5 GB\n",
           "bad.adapter:2: hca.buffer takes a size (B, KB or MB), not '5 GB'");
    expect("hca.engines = 2 B\n", "bad.adapter:2: hca.engines takes a whole number, not '2 B'");
    expect("nas.is = many\n",
           "bad.adapter:2: nas.is takes a number, not 'many'");
    expect("bus.half_duplex = true\n",
           "bad.adapter:2: bus.half_duplex takes yes or no, not 'true'");
    expect("icm.location = moon\n",
           "bad.adapter:2: icm.location takes one of 'adapter host', not 'moon'");
    expect("icm.location = adapter host\n",
           "bad.adapter:2: icm.location takes one of 'adapter host', not 'adapter host'; "
           "did you mean adapter or host?");
}

static void impossible_values_are_refused(void **state)
{
    char text[512], wanted[128];

    expect("bus.rate = 0 GB/s\n",
           "bad.adapter:2: bus.rate must be from 0.001 to 10000 GB/s, not '0 GB/s'");
    expect("hca.wqe_time = -5 ns\n",
           "bad.adapter:2: hca.wqe_time must be from 0 to 60000000000 ns, not '-5 ns'");
    expect("bus.read_burst = 0 B\n", "bad.adapter:2: bus.read_burst must be a whole number from 1 to "
                                     "1099511627776 B, not '0 B'");
    expect("bus.read_burst = 0.5 B\n", "bad.adapter:2: bus.read_burst must be a whole number from 1 to "
                                       "1099511627776 B, not '0.5 B'");
    expect("link.mtu = 1000 B\n",
           "bad.adapter:2: link.mtu must be a power of two from 256 to 4096 B, "
           "not '1000 B'");
    expect("link.mtu = 8 KB\n",
           "bad.adapter:2: link.mtu must be a power of two from 256 to 4096 B, not '8 KB'");
    expect("hca.engines = 1.5\n",
           "bad.adapter:2: hca.engines must be a whole number from 1 to 16, not '1.5'");
    expect("hca.engines = 99999999999999999999999999\n",
           "bad.adapter:2: hca.engines must be a whole number from 1 to 16, not "
           "'99999999999999999999999999'");
    snprintf(text, sizeof(text), "title = %0200d\n", 0);
    snprintf(wanted, sizeof(wanted), "bad.adapter:2: title is longer than %zu characters",
             sizeof(((struct parameters *)0)->title) - 1);
    expect(text, wanted);
}

static void impossible_pairs_are_refused(void **state)
{
    expect("hca.buffer = 1 KB\n",
           "bad.adapter:2: hca.buffer holds less than one packet of link.mtu and link.header");
    expect("\nlink.receive_buffer = 1 KB\n",
           "bad.adapter:3: link.receive_buffer holds less than one "
           "packet of link.mtu and link.header");
    expect("hca.memory_rate = 0 GB/s\nhca.memory = 1 MB\n",
           "bad.adapter:3: hca.memory needs hca.memory_rate");
}

static void missing_keys_are_named(void **state)
{
    struct parameters unused;

    write_file("empty.adapter", "title = Nothing\n");
    assert_string_equal(reason("empty.adapter", NULL, &unused),
                        "empty.adapter: host.post_send is missing: posting a send WQE");
    assert_string_equal(reason("none.adapter", NULL, &unused),
                        "none.adapter: No such file or directory");
}

static void files_are_based_on_others(void **state)
{
    struct parameters out;

    write_file("first.adapter", "based-on = " SHIPPED "/mt23108.adapter\nlink.mtu = 2048 B\n"
                                "hca.wqe_time = 1 ns\n");
    write_file("second.adapter", "based-on = first\nhca.wqe_time = 2 ns\n");
    write_file("third.adapter", "based-on = second.adapter\nhca.engines = 2\n");
    assert_string_equal(reason("third.adapter", NULL, &out), "");
    assert_string_equal(out.name, "third");
    assert_int_equal(out.link.mtu, 2048);
    assert_true(out.hca.wqe_time == 2);
    assert_int_equal(out.hca.engines, 2);
    assert_int_equal(out.link.ports, 2);

    /* not beside it, but where the others are */
    setenv("VERBENA_ADAPTERS", SHIPPED, 1);
    write_file("fourth.adapter", "based-on = ibm12x\n");
    assert_string_equal(reason("fourth.adapter", NULL, &out), "");
    assert_int_equal(out.hca.engine_depth, 4);
    write_file("fifth.adapter", "\nbased-on = nothing\n");
    assert_string_equal(reason("fifth.adapter", NULL, &out),
                        "fifth.adapter:2: based-on: no adapter 'nothing' in " SHIPPED);
    unsetenv("VERBENA_ADAPTERS");
}

static void bases_that_fail(void **state)
{
    struct parameters unused;
    char name[32], text[64];

    write_file("wrong.adapter", "\nlink.mtu = 3 B\n");
    write_file("above.adapter", "based-on = wrong\n");
    assert_string_equal(
        reason("above.adapter", NULL, &unused),
        "wrong.adapter:2: link.mtu must be a power of two from 256 to 4096 B, not "
        "'3 B'");
    write_file("a.adapter", "based-on = b\n");
    write_file("b.adapter", "# b\nbased-on = a\n");
    assert_string_equal(reason("a.adapter", NULL, &unused),
                        "b.adapter:2: based-on: a is itself based on this file");
    write_file("self.adapter", "based-on = ./self.adapter\n");
    assert_string_equal(reason("self.adapter", NULL, &unused),
                        "self.adapter:1: based-on: ./self.adapter is itself based on this file");
    write_file("lost.adapter", "based-on = there/is.adapter\n");
    assert_string_equal(reason("lost.adapter", NULL, &unused),
                        "lost.adapter:1: based-on: there/is.adapter: No such file or directory");
    write_file("late.adapter", "link.mtu = 256 B\nbased-on = a\n");
    assert_string_equal(reason("late.adapter", NULL, &unused),
                        "late.adapter:2: based-on must be the first line");
    for (int i = 0; i < 9; i++) {
        snprintf(name, sizeof(name), "deep%d.adapter", i);
        snprintf(text, sizeof(text), "based-on = deep%d\n", i + 1);
        write_file(name, text);
    }
    assert_string_equal(reason("deep0.adapter", NULL, &unused),
                        "deep7.adapter:1: more than 8 files based on each other");
}

static void settings_come_last(void **state)
{
    struct parameters out;

    write_file("plain.adapter", "based-on = " SHIPPED "/mt25208.adapter\nbus.rate = 3 GB/s\n");
    assert_string_equal(reason("plain.adapter", " bus.rate = 4GB/s ;link.mtu=2KB; ", &out), "");
    assert_true(out.bus.rate == 4);
    assert_int_equal(out.link.mtu, 2048);
    assert_string_equal(reason("plain.adapter", "", &out), "");
    assert_true(out.bus.rate == 3);

    expect_setting("bus.rate", "--set: 'bus.rate' is not 'key=value'");
    expect_setting("bus.speed=1", "--set: unknown key 'bus.speed'");
    expect_setting("based-on=mt23108", "--set: unknown key 'based-on'");
    expect_setting("hca.engines=1;hca.engines=2", "--set: hca.engines is given twice");
    expect_setting("link.mtu=3B",
                   "--set: link.mtu must be a power of two from 256 to 4096 B, not '3B'");
    expect_setting("hca.buffer=300B",
                   "--set: hca.buffer holds less than one packet of link.mtu and link.header");
}

static void numbers_are_found_by_key(void **state)
{
    struct parameters out;
    double value = -1;

    write_file("plain.adapter", "based-on = " SHIPPED "/mt25208.adapter\nmpi.send = 2 us\n"
                                "bus.rate = 500 MB/s\nlink.mtu = 2 KB\nhca.engines = 3\n");
    assert_string_equal(reason("plain.adapter", NULL, &out), "");
    assert_int_equal(parameter_number(&out, "mpi.send", &value), 0);
    assert_true(value == 2000);
    assert_int_equal(parameter_number(&out, "bus.rate", &value), 0);
    assert_true(value == 0.5);
    assert_int_equal(parameter_number(&out, "link.mtu", &value), 0);
    assert_true(value == 2048);
    assert_int_equal(parameter_number(&out, "hca.engines", &value), 0);
    assert_true(value == 3);
    value = -1;
    assert_int_equal(parameter_number(&out, "title", &value), -1);
    assert_int_equal(parameter_number(&out, "hca.drain", &value), -1);
    assert_int_equal(parameter_number(&out, "icm.location", &value), -1);
    assert_int_equal(parameter_number(&out, "mpi", &value), -1);
    assert_true(value == -1);
}

static void nothing_is_stored_on_failure(void **state)
{
    struct parameters out = { .title = "untouched" };

    write_file("plain.adapter", "based-on = " SHIPPED "/mt25208.adapter\n");
    assert_string_not_equal(reason("plain.adapter", "bus.rate=no", &out), "");
    assert_string_equal(out.title, "untouched");
}

static void adapters_are_found(void **state)
{
    char path[PATH_MAX], small[8];

    setenv("VERBENA_ADAPTERS", SHIPPED, 1);
    assert_int_equal(parameters_find("mt25208", path, sizeof(path), error, sizeof(error)), 0);
    assert_string_equal(path, SHIPPED "/mt25208.adapter");
    assert_int_equal(parameters_find("mt9", path, sizeof(path), error, sizeof(error)), -1);
    assert_string_equal(error, "no adapter 'mt9' in " SHIPPED);
    assert_int_equal(parameters_find("mt25208", small, sizeof(small), error, sizeof(error)), -1);
    assert_string_equal(error, "mt25208: File name too long");
    assert_int_equal(parameters_find("no.adapter", path, sizeof(path), error, sizeof(error)), -1);
    assert_string_equal(error, "no.adapter: No such file or directory");
    unsetenv("VERBENA_ADAPTERS");
    write_file("mine.adapter", "");
    assert_int_equal(
        parameters_find(path_of("mine.adapter"), path, sizeof(path), error, sizeof(error)), 0);
}

/* Sorted by offset the rows leave no room for a number between them. */
static int by_offset(const void *a, const void *b)
{
    const struct parameter_row *first = *(const struct parameter_row *const *)a;
    const struct parameter_row *second = *(const struct parameter_row *const *)b;

    return first->offset < second->offset ? -1 : 1;
}

static size_t size_of(const struct parameter_row *row)
{
    switch (row->unit) {
    case UNIT_TEXT:
        return row->size;
    case UNIT_YES_NO:
        return sizeof(bool);
    case UNIT_CHOICE:
        return sizeof(unsigned int);
    default:
        return sizeof(double);
    }
}

static void every_member_has_its_row(void **state)
{
    const struct parameter_row *rows[PARAMETER_ROWS_MAX];
    size_t count = 0, end = offsetof(struct parameters, title);

    for (const struct parameter_row *row = parameter_rows; row->key; row++) {
        assert_true(*row->help);
        rows[count++] = row;
    }
    qsort(rows, count, sizeof(*rows), by_offset);
    for (size_t i = 0; i < count; i++) {
        if (rows[i]->offset < end || rows[i]->offset - end >= sizeof(double))
            fail_msg("before %s there is a member without a row, or two rows", rows[i]->key);
        end = rows[i]->offset + size_of(rows[i]);
    }
    assert_true(sizeof(struct parameters) - end < sizeof(double));
}

/* docs/adapters.md has a line for every row, and it says what the row says. */
static void rows_are_documented(void **state)
{
    FILE *file = fopen(DOCUMENT, "r");
    static char text[1 << 16];
    char line[512];

    assert_non_null(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    for (const struct parameter_row *row = parameter_rows; row->key; row++) {
        const char *kind = row->choices ? row->choices : parameter_unit_text(row->unit);
        const char *units = strstr(kind, " (");

        snprintf(line, sizeof(line), "| `%s` | %.*s | %s | %s |\n", row->key,
                 units ? (int)(units - kind) : (int)strlen(kind), kind,
                 row->default_value ? row->default_value : "required", row->help);
        if (!strstr(text, line))
            fail_msg("%s lacks this line: %s", DOCUMENT, line);
    }
}

static int has_origin(const struct adapter_line *line, void *path)
{
    static const char *const kinds[] = { "paper 00", "driver source: ", "specification: ",
                                         "public: ", "fitted",          "assumed" };

    if (!strcmp(line->key, "title") || !strcmp(line->key, "based-on"))
        return 0;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        if (!strncmp(line->origin, kinds[i], strlen(kinds[i])))
            return 0;
    }
    fail_msg("%s:%u: %s does not say where it is from", (char *)path, line->number, line->key);
    return -1;
}

static void shipped_file_is_right(const char *name, void *count)
{
    struct parameters out;
    char path[PATH_MAX];

    assert_int_equal(parameters_find(name, path, sizeof(path), error, sizeof(error)), 0);
    if (parameters_read(path, NULL, &out, error, sizeof(error)))
        fail_msg("%s", error);
    assert_string_equal(out.name, name);
    assert_int_equal(adapter_file_walk(path, has_origin, path, error, sizeof(error)), 0);
    ++*(int *)count;
}

static void shipped_files_are_right(void **state)
{
    int count = 0;

    setenv("VERBENA_ADAPTERS", SHIPPED, 1);
    assert_int_equal(adapter_list(shipped_file_is_right, &count, error, sizeof(error)), 0);
    unsetenv("VERBENA_ADAPTERS");
    assert_true(count > 0);
}

static int make_directory(void **state)
{
    return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
    char command[64];

    snprintf(command, sizeof(command), "rm -r %s", directory);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_read),
        cmocka_unit_test(wrong_lines_are_refused),
        cmocka_unit_test(wrong_units_are_refused),
        cmocka_unit_test(impossible_values_are_refused),
        cmocka_unit_test(impossible_pairs_are_refused),
        cmocka_unit_test(missing_keys_are_named),
        cmocka_unit_test(files_are_based_on_others),
        cmocka_unit_test(bases_that_fail),
        cmocka_unit_test(settings_come_last),
        cmocka_unit_test(numbers_are_found_by_key),
        cmocka_unit_test(nothing_is_stored_on_failure),
        cmocka_unit_test(adapters_are_found),
        cmocka_unit_test(every_member_has_its_row),
        cmocka_unit_test(rows_are_documented),
        cmocka_unit_test(shipped_files_are_right),
    };

    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
