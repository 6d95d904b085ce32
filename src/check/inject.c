/* SPDX-License-Identifier: BSD-2-Clause */
#include "check/inject.h"

#include "check/finding.h"
#include "hca/segment.h"
#include "util/hash.h"
#include "util/log.h"
#include "util/random.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define REPORTS_PER_ROW 8

static struct plan plan;
static struct {
    uint64_t seen, struck;
    /* State of the generator. Each row has its own, so that taking a row out of a plan leaves the
     * others as they were. */
    uint64_t random;
} state[PLAN_ROWS_MAX];
static int64_t registered[LIMIT_COUNT];
static atomic_bool device_gone;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool concerns_us(const struct plan_row *row)
{
    return (!*row->program || !strcmp(row->program, program_invocation_short_name)) &&
           (row->node < 0 || row->node == (int)segment_config()->node);
}

bool inject_start(void)
{
    char error[256];

    if (plan_read(getenv("VERBENA_INJECT"), getenv("VERBENA_INJECT_FILE"), &plan, error,
                  sizeof(error))) {
        log_error("%s", error);
        plan.count = 0;
    }
    for (unsigned i = 0; i < plan.count; i++)
        state[i].random = plan.seed ^ hash_text(plan.rows[i].text);
    return plan.count;
}

static bool strikes(unsigned index)
{
    const struct plan_row *row = &plan.rows[index];
    uint64_t seen = ++state[index].seen;

    if (row->nth)
        return seen == row->nth;
    if (seen <= row->after || (row->every && seen % row->every))
        return false;
    return row->rate < 0 || random_fraction(&state[index].random) < row->rate;
}

/* Whether this row, which concerns the call or work request, strikes it now. */
static bool try_row(unsigned index)
{
    const struct plan_row *row = &plan.rows[index];
    bool struck;
    uint64_t number, times;

    if (!concerns_us(row))
        return false;
    pthread_mutex_lock(&lock);
    struck = strikes(index);
    number = state[index].seen;
    times = state[index].struck += struck;
    pthread_mutex_unlock(&lock);
    if (struck && times <= REPORTS_PER_ROW) {
        struct finding *finding = finding_begin("injected", "%s (occurrence %llu)", row->text,
                                                (unsigned long long)number);
        finding_end(finding);
    }
    return struck;
}

/* The row that does not allow this change; -1: none. The lock is held. */
static int limit_reached(const int64_t *change)
{
    for (unsigned i = 0; i < plan.count; i++) {
        const struct plan_row *row = &plan.rows[i];

        if (row->fault == PLAN_LIMIT && concerns_us(row) && change[row->value] > 0 &&
            (uint64_t)(registered[row->value] + change[row->value]) > row->limit)
            return i;
    }
    return -1;
}

int inject_register(int regions, int64_t bytes)
{
    const int64_t change[LIMIT_COUNT] = { [LIMIT_REGIONS] = regions, [LIMIT_BYTES] = bytes };
    uint64_t times = 0;
    int row;

    pthread_mutex_lock(&lock);
    row = limit_reached(change);
    for (int i = 0; i < LIMIT_COUNT && row < 0; i++)
        registered[i] += change[i];
    if (row >= 0)
        times = ++state[row].struck;
    pthread_mutex_unlock(&lock);
    if (times && times <= REPORTS_PER_ROW)
        finding_end(finding_begin("injected", "%s (%lld bytes more)", plan.rows[row].text,
                                  (long long)bytes));
    return row < 0 ? 0 : ENOMEM;
}

void inject_device_gone(void)
{
    atomic_store(&device_gone, true);
}

int inject_errno(enum plan_verb verb)
{
    int err = atomic_load(&device_gone) ? EIO : 0;

    for (unsigned i = 0; i < plan.count; i++) {
        if (plan.rows[i].fault == PLAN_CALL && plan.rows[i].verb == verb && try_row(i))
            err = plan.rows[i].value;
    }
    return err;
}

bool inject_cm(enum plan_fault fault)
{
    bool struck = false;

    for (unsigned i = 0; i < plan.count; i++)
        struck |= plan.rows[i].fault == fault && try_row(i);
    return struck;
}

static bool concerns_posts(const struct plan_row *row, int opcode)
{
    return row->fault >= PLAN_STATUS && row->fault <= PLAN_PAUSE &&
           (row->opcode < 0 || row->opcode == opcode);
}

static void apply(const struct plan_row *row, struct injection *injection)
{
    switch (row->fault) {
    case PLAN_STATUS:
        injection->status = row->value;
        break;
    case PLAN_QP_ERROR:
        injection->qp_error = true;
        break;
    case PLAN_DISCONNECT:
        injection->disconnect = true;
        break;
    case PLAN_PORT_DOWN:
        injection->port_down = true;
        break;
    case PLAN_PORT_UP:
        injection->port_up = true;
        break;
    case PLAN_FATAL:
        injection->fatal = true;
        break;
    case PLAN_PAUSE:
        injection->pause_ns += row->pause_ns;
        break;
    default:
        break;
    }
}

void inject_post(int opcode, struct injection *injection)
{
    *injection = (struct injection){ 0 };
    for (unsigned i = 0; i < plan.count; i++) {
        const struct plan_row *row = &plan.rows[i];

        if (concerns_posts(row, opcode) && try_row(i))
            apply(row, injection);
    }
}

uint64_t inject_receive_pause(void)
{
    uint64_t ns = 0;

    for (unsigned i = 0; i < plan.count; i++) {
        if (plan.rows[i].fault == PLAN_PAUSE && try_row(i))
            ns += plan.rows[i].pause_ns;
    }
    return ns;
}
