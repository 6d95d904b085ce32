/* SPDX-License-Identifier: BSD-2-Clause */
#include "check/check.h"

#include "check/explain.h"

#include <stdlib.h>
#include <string.h>

bool check_on;
bool check_explains;
bool check_injects;
bool check_sanitizes;

static struct hca_observer observer;

static bool is_set(const char *variable)
{
    const char *value = getenv(variable);

    return value && *value && strcmp(value, "0");
}

/* Before the first verb, and before the program's own constructors. */
__attribute__((constructor(102))) static void start(void)
{
    check_explains = is_set("VERBENA_EXPLAIN_ERRORS");
    check_injects = inject_start();
    check_sanitizes = is_set("VERBENA_SANITIZE");
    check_on = check_explains || check_injects || check_sanitizes;
    if (!check_on)
        return;
    observer = explain_observer;
    observer.keeps_objects = check_sanitizes;
    observer.strict_events = is_set("VERBENA_STRICT_EVENTS");
    hca_observer = &observer;
}
