/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines of the log: whole, prefixed, at the level that was asked for. */
#include "util/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int pipe_ends[2], standard_error;

static int catch_standard_error(void **state)
{
    standard_error = dup(STDERR_FILENO);
    return pipe(pipe_ends) || dup2(pipe_ends[1], STDERR_FILENO) < 0;
}

static int release_standard_error(void **state)
{
    dup2(standard_error, STDERR_FILENO);
    return close(standard_error) || close(pipe_ends[0]) || close(pipe_ends[1]);
}

/* What was logged since the last call, without "verbena[PID] " before it. */
static const char *logged(void)
{
    static char text[4096];
    char prefix[32];

    /* So that read() does not wait if nothing was logged. */
    assert_int_equal(write(pipe_ends[1], "", 1), 1);
    ssize_t got = read(pipe_ends[0], text, sizeof(text));
    assert_true(got > 0 && text[got - 1] == '\0');
    snprintf(prefix, sizeof(prefix), "verbena[%d] ", (int)getpid());
    if (!*text)
        return text;
    assert_memory_equal(text, prefix, strlen(prefix));
    return text + strlen(prefix);
}

static void a_line_names_its_level(void **state)
{
    log_write(LOG_LEVEL_ERROR, "%d %s", 7, "things");
    assert_string_equal(logged(), "error: 7 things\n");
    log_write(LOG_LEVEL_DEBUG, "%s", "");
    assert_string_equal(logged(), "debug: \n");
}

/* Callers log on their way out of a failing call; writing the line may fail, too. */
static void errno_is_kept(void **state)
{
    close(STDERR_FILENO);
    errno = EXDEV;
    log_write(LOG_LEVEL_ERROR, "to nobody");
    assert_int_equal(errno, EXDEV);
}

/* The newline is the 1023rd byte at most. */
static void a_long_line_is_cut_and_ends(void **state)
{
    char text[2000];

    for (unsigned length = 900; length < sizeof(text); length++) {
        memset(text, 'x', length);
        text[length] = '\0';
        log_write(LOG_LEVEL_INFO, "%s", text);
        const char *line = logged();
        assert_string_equal(line + strlen(line) - 2, "x\n");
        size_t whole = snprintf(NULL, 0, "verbena[%d] info: ", (int)getpid()) + length + 1;
        size_t got = strlen(line) + snprintf(NULL, 0, "verbena[%d] ", (int)getpid());
        assert_int_equal(got, whole < 1023 ? whole : 1023);
    }
}

static void the_environment_chooses_the_level(void **state)
{
    setenv("VERBENA_LOG", "debug", 1);
    log_init();
    assert_int_equal(log_level, LOG_LEVEL_DEBUG);
    setenv("VERBENA_LOG", "error", 1);
    log_init();
    assert_int_equal(log_level, LOG_LEVEL_ERROR);
    log_warn("not said");
    assert_string_equal(logged(), "");
    log_error("said");
    assert_string_equal(logged(), "error: said\n");
    setenv("VERBENA_LOG", "loud", 1);
    log_init();
    assert_int_equal(log_level, LOG_LEVEL_ERROR);
    unsetenv("VERBENA_LOG");
    log_init();
    assert_int_equal(log_level, LOG_LEVEL_ERROR);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, catch_standard_error, release_standard_error)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_line_names_its_level),
        CASE(errno_is_kept),
        CASE(a_long_line_is_cut_and_ends),
        CASE(the_environment_chooses_the_level),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
