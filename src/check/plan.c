/* SPDX-License-Identifier: BSD-2-Clause */
#include "check/plan.h"

#include "util/file.h"
#include "util/nearest.h"
#include "util/option.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAUSE_NS_MAX 1e15 /* some days */

static const char *const plan_verb_names[VERB_COUNT] = {
    [VERB_OPEN_DEVICE] = "open_device",
    [VERB_ALLOC_PD] = "alloc_pd",
    [VERB_REG_MR] = "reg_mr",
    [VERB_CREATE_CHANNEL] = "create_comp_channel",
    [VERB_CREATE_CQ] = "create_cq",
    [VERB_CREATE_SRQ] = "create_srq",
    [VERB_CREATE_QP] = "create_qp",
    [VERB_MODIFY_QP] = "modify_qp",
    [VERB_CREATE_AH] = "create_ah",
    [VERB_POST_SEND] = "post_send",
    [VERB_POST_RECV] = "post_recv",
    [VERB_RESOLVE_ADDR] = "rdma_resolve_addr",
    [VERB_RESOLVE_ROUTE] = "rdma_resolve_route",
    [VERB_CONNECT] = "rdma_connect",
    [VERB_ACCEPT] = "rdma_accept",
};

struct word {
    const char *name;
    int value;
};

static const struct word errnos[] = {
    { "ENOMEM", ENOMEM }, { "EINVAL", EINVAL },         { "EAGAIN", EAGAIN },
    { "EIO", EIO },       { "EBUSY", EBUSY },           { "EPERM", EPERM },
    { "ENODEV", ENODEV }, { "ETIMEDOUT", ETIMEDOUT },   { "ECONNREFUSED", ECONNREFUSED },
    { "EINTR", EINTR },   { "EHOSTUNREACH", EHOSTUNREACH }, { NULL, 0 },
};

static const struct word statuses[] = {
    { "LOC_LEN_ERR", IBV_WC_LOC_LEN_ERR },
    { "LOC_QP_OP_ERR", IBV_WC_LOC_QP_OP_ERR },
    { "LOC_PROT_ERR", IBV_WC_LOC_PROT_ERR },
    { "BAD_RESP_ERR", IBV_WC_BAD_RESP_ERR },
    { "REM_INV_REQ_ERR", IBV_WC_REM_INV_REQ_ERR },
    { "REM_ACCESS_ERR", IBV_WC_REM_ACCESS_ERR },
    { "REM_OP_ERR", IBV_WC_REM_OP_ERR },
    { "RETRY_EXC_ERR", IBV_WC_RETRY_EXC_ERR },
    { "RNR_RETRY_EXC_ERR", IBV_WC_RNR_RETRY_EXC_ERR },
    { "FATAL_ERR", IBV_WC_FATAL_ERR },
    { "GENERAL_ERR", IBV_WC_GENERAL_ERR },
    { NULL, 0 },
};

static const struct word opcodes[] = {
    { "any", -1 },
    { "send", IBV_WR_SEND },
    { "send_with_imm", IBV_WR_SEND_WITH_IMM },
    { "rdma_write", IBV_WR_RDMA_WRITE },
    { "rdma_write_with_imm", IBV_WR_RDMA_WRITE_WITH_IMM },
    { "rdma_read", IBV_WR_RDMA_READ },
    { "compare_and_swap", IBV_WR_ATOMIC_CMP_AND_SWP },
    { "fetch_and_add", IBV_WR_ATOMIC_FETCH_AND_ADD },
    { NULL, 0 },
};

static const struct word limits[] = {
    { "regions", LIMIT_REGIONS },
    { "bytes", LIMIT_BYTES },
    { NULL, 0 },
};

static const struct word faults[] = {
    { "fail", PLAN_CALL },
    { "status", PLAN_STATUS },
    { "qp_error", PLAN_QP_ERROR },
    { "port_down", PLAN_PORT_DOWN },
    { "port_up", PLAN_PORT_UP },
    { "device_fatal", PLAN_FATAL },
    { "disconnect", PLAN_DISCONNECT },
    { "pause", PLAN_PAUSE },
    { "limit", PLAN_LIMIT },
    { "addr_error", PLAN_ADDR_ERROR },
    { "route_error", PLAN_ROUTE_ERROR },
    { "cm_reject", PLAN_CM_REJECT },
    { "cm_timeout", PLAN_CM_TIMEOUT },
    { "accept_reject", PLAN_ACCEPT_REJECT },
    { "accept_timeout", PLAN_ACCEPT_TIMEOUT },
    { "cm_disconnect", PLAN_CM_DISCONNECT },
    { NULL, 0 },
};

struct reader {
    const char *source; /* of the rows, for messages */
    char *error;
    size_t size;
    char *position; /* in the row, for strtok_r() */
};

static int __attribute__((format(printf, 2, 3)))
refuse(struct reader *reader, const char *format, ...)
{
    int used = snprintf(reader->error, reader->size, "%s: ", reader->source);
    va_list args;

    va_start(args, format);
    if (used >= 0 && (size_t)used < reader->size)
        vsnprintf(reader->error + used, reader->size - used, format, args);
    va_end(args);
    return -1;
}

/* ---- words ---- */

static int unknown(struct reader *reader, const char *what, const char *text,
                   const struct word *words)
{
    struct nearest nearest;

    nearest_begin(&nearest, text, strlen(text));
    for (; words->name; words++)
        nearest_try(&nearest, words->name);
    return refuse(reader, "unknown %s '%s'%s", what, text, nearest_text(&nearest));
}

static int read_word(struct reader *reader, const char *what, const struct word *words, int *value)
{
    const char *text = strtok_r(NULL, " \t", &reader->position);

    if (!text)
        return refuse(reader, "the %s is missing", what);
    for (const struct word *word = words; word->name; word++) {
        if (!strcmp(word->name, text)) {
            *value = word->value;
            return 0;
        }
    }
    return unknown(reader, what, text, words);
}

static int read_verb(struct reader *reader, struct plan_row *row)
{
    struct word verbs[VERB_COUNT + 1] = { { NULL, 0 } };
    int verb = 0;

    for (int i = 0; i < VERB_COUNT; i++)
        verbs[i] = (struct word){ plan_verb_names[i], i };
    if (read_word(reader, "call", verbs, &verb))
        return -1;
    row->verb = verb;
    return read_word(reader, "errno", errnos, &row->value);
}

static int read_limit(struct reader *reader, struct plan_row *row)
{
    const char *text, *end;

    if (read_word(reader, "thing to limit", limits, &row->value))
        return -1;
    text = strtok_r(NULL, " \t", &reader->position);
    if (text && option_read_number(text, &end, &row->limit) && !*end)
        return 0;
    return refuse(reader, "limit takes a number such as 8 or 64M, not '%s'", text ? text : "");
}

/* A time such as 20us, 5ms or 1s. */
static int read_pause(struct reader *reader, struct plan_row *row)
{
    static const struct {
        const char *unit;
        double ns;
    } units[] = { { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 } };
    const char *text = strtok_r(NULL, " \t", &reader->position);
    char *end = NULL;
    double number = text ? strtod(text, &end) : -1;

    for (size_t i = 0; text && end != text && i < sizeof(units) / sizeof(*units); i++) {
        double ns = number * units[i].ns;

        if (!strcmp(end, units[i].unit) && ns >= 0 && ns <= PAUSE_NS_MAX) {
            row->pause_ns = ns;
            return 0;
        }
    }
    return refuse(reader, "pause takes a time such as 5ms, not '%s'", text ? text : "");
}

/* ---- when and where ---- */

static int read_count(struct reader *reader, const char *name, const char *text, uint64_t minimum,
                      uint64_t *value)
{
    char *end;

    errno = 0;
    *value = strtoull(text, &end, 10);
    if (*text >= '0' && *text <= '9' && !*end && !errno && *value >= minimum)
        return 0;
    return refuse(reader, "%s takes a whole number from %llu, not '%s'", name,
                  (unsigned long long)minimum, text);
}

static int read_rate(struct reader *reader, const char *text, double *rate)
{
    char *end;

    *rate = strtod(text, &end);
    if (end != text && !*end && *rate >= 0 && *rate <= 1)
        return 0;
    return refuse(reader, "rate takes a number from 0 to 1, not '%s'", text);
}

static int read_condition(struct reader *reader, char *word, struct plan_row *row)
{
    static const struct word names[] = { { "nth", 0 },  { "every", 0 }, { "after", 0 },
                                         { "rate", 0 }, { "node", 0 },  { "program", 0 },
                                         { NULL, 0 } };
    char *equals = strchr(word, '='), *value = equals ? equals + 1 : "";
    uint64_t node;

    if (equals)
        *equals = '\0';
    if (!strcmp(word, "nth"))
        return read_count(reader, word, value, 1, &row->nth);
    if (!strcmp(word, "every"))
        return read_count(reader, word, value, 1, &row->every);
    if (!strcmp(word, "after"))
        return read_count(reader, word, value, 0, &row->after);
    if (!strcmp(word, "rate"))
        return read_rate(reader, value, &row->rate);
    if (!strcmp(word, "program")) {
        if (!*value || strlen(value) >= sizeof(row->program))
            return refuse(reader, "program takes a name of 1 to %zu characters, not '%s'",
                          sizeof(row->program) - 1, value);
        strcpy(row->program, value);
        return 0;
    }
    if (!strcmp(word, "node")) {
        if (read_count(reader, word, value, 0, &node))
            return -1;
        row->node = node < 256 ? (int)node : 256;
        return 0;
    }
    return unknown(reader, "condition", word, names);
}

/* A limit holds from the beginning to the end. */
static bool has_moments(const struct plan_row *row)
{
    return row->nth || row->every || row->after || row->rate >= 0;
}

/* ---- rows ---- */

static int read_row(struct reader *reader, const char *first, struct plan_row *row)
{
    int fault = -1;
    char *word;

    for (const struct word *each = faults; each->name; each++)
        fault = strcmp(each->name, first) ? fault : each->value;
    if (fault < 0)
        return unknown(reader, "fault", first, faults);
    row->fault = fault;
    row->opcode = row->node = -1;
    row->rate = -1;
    if (fault == PLAN_CALL && read_verb(reader, row))
        return -1;
    if (fault == PLAN_STATUS && (read_word(reader, "operation", opcodes, &row->opcode) ||
                                  read_word(reader, "status", statuses, &row->value)))
        return -1;
    if (fault == PLAN_PAUSE && read_pause(reader, row))
        return -1;
    if (fault == PLAN_LIMIT && read_limit(reader, row))
        return -1;
    while ((word = strtok_r(NULL, " \t", &reader->position))) {
        if (read_condition(reader, word, row))
            return -1;
    }
    if (fault == PLAN_LIMIT && has_moments(row))
        return refuse(reader, "limit takes the conditions node and program only: '%s'", row->text);
    return 0;
}

/* Without the comment and the blanks around the row. */
static char *trim(char *text)
{
    size_t length;

    text += strspn(text, " \t\r");
    length = strcspn(text, "#\r");
    while (length && strchr(" \t", text[length - 1]))
        length--;
    text[length] = '\0';
    return text;
}

static int add_row(char *text, struct plan *plan, struct reader *reader)
{
    struct plan_row *row = &plan->rows[plan->count];
    char *first;

    text = trim(text);
    if (!*text)
        return 0;
    if (!strncmp(text, "seed=", 5))
        return read_count(reader, "seed", text + 5, 0, &plan->seed);
    if (plan->count == PLAN_ROWS_MAX)
        return refuse(reader, "more than %d faults", PLAN_ROWS_MAX);
    if (strlen(text) >= sizeof(row->text))
        return refuse(reader, "more than %zu characters: '%s'", sizeof(row->text) - 1, text);
    strcpy(row->text, text);
    first = strtok_r(text, " \t", &reader->position);
    if (read_row(reader, first, row))
        return -1;
    plan->count++;
    return 0;
}

static int add_rows(char *text, struct plan *plan, struct reader *reader)
{
    int result = 0;
    char *row;

    while (!result && (row = strsep(&text, ";\n")))
        result = add_row(row, plan, reader);
    return result;
}

int plan_read(const char *text, const char *path, struct plan *plan, char *error, size_t size)
{
    struct reader reader = { "--inject", error, size, NULL };
    char *rows = strdup(text ? text : "");
    size_t length;
    int result;

    memset(plan, 0, sizeof(*plan));
    result = rows ? add_rows(rows, plan, &reader) : refuse(&reader, "out of memory");
    free(rows);
    if (result || !path || !*path)
        return result;
    rows = file_read(path, FILE_TEXT_MAX, &length, error, size);
    if (!rows)
        return -1;
    reader.source = path;
    result = add_rows(rows, plan, &reader);
    free(rows);
    return result;
}
