/* SPDX-License-Identifier: BSD-2-Clause */
#include "check/check.h"

#include "check/explain.h"
#include "check/objects.h"
#include "check/receives.h"
#include "check/sanitize.h"

#include <pthread.h>

#include <stdlib.h>
#include <string.h>

bool check_on;
bool check_explains;
bool check_injects;
bool check_sanitizes;
__thread const void *check_caller;

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
    observer.tail_first = check_sanitizes;
    observer.keep_object = check_sanitizes ? object_keep : NULL;
    observer.memory_unmaps = check_sanitizes ? sanitize_unmaps : NULL;
    observer.cq_overrun = sanitize_overrun;
    pthread_atfork(NULL, NULL, object_inherit_all);
    observer.strict_events = is_set("VERBENA_STRICT");
    sanitize_strict = check_sanitizes && observer.strict_events;
    if (sanitize_strict) {
        observer.memory_touched = receives_touched;
        pthread_atfork(NULL, NULL, receives_inherit_none);
    }
    hca_observer = &observer;
}
