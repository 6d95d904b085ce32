/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/observe/explain.h"

#include "sim/memory/pool.h"
#include "sim/model/sim_qp.h"
#include "sim/observe/observe.h"

#include <errno.h>
#include <stdlib.h>

#define ROWS_MAX 1024

const struct explain_interval explain_stages[EXPLAIN_COUNT] = {
    [EXPLAIN_POST] = { "post", MARK_CALLED, MARK_POSTED },
    [EXPLAIN_DOORBELL] = { "doorbell", MARK_POSTED, MARK_DOORBELL },
    [EXPLAIN_FETCH] = { "fetch", MARK_DOORBELL, MARK_FETCHED },
    [EXPLAIN_ENGINE] = { "engine", MARK_FETCHED, MARK_STARTED },
    [EXPLAIN_BUS_READ] = { "bus read", MARK_STARTED, MARK_READY },
    [EXPLAIN_LINK] = { "link", MARK_READY, MARK_SENT },
    [EXPLAIN_WIRE] = { "wire", MARK_SENT, MARK_SWITCHED },
    [EXPLAIN_SWITCH] = { "switch", MARK_SWITCHED, MARK_ARRIVED },
    [EXPLAIN_RECEIVE] = { "receive", MARK_ARRIVED, MARK_PROCESSED },
    [EXPLAIN_BUS_WRITE] = { "bus write", MARK_PROCESSED, MARK_DELIVERED },
    [EXPLAIN_ACK] = { "ack", MARK_PROCESSED, MARK_ACKED },
    [EXPLAIN_COMPLETION] = { "complete", MARK_ACKED, MARK_COMPLETED },
};

static const char *const operation_names[] = {
    [TRANSPORT_SEND] = "send",
    [TRANSPORT_SEND_IMMEDIATE] = "send-imm",
    [TRANSPORT_SEND_INVALIDATE] = "send-inv",
    [TRANSPORT_WRITE] = "write",
    [TRANSPORT_WRITE_IMMEDIATE] = "write-imm",
    [TRANSPORT_READ] = "read",
    [TRANSPORT_COMPARE_SWAP] = "compare-swap",
    [TRANSPORT_FETCH_ADD] = "fetch-add",
};

const char *explain_operation(enum transport_operation operation)
{
    return operation_names[operation];
}

static const char *service_name(enum transport_service service)
{
    switch (service) {
    case SERVICE_UC:
        return "uc";
    case SERVICE_UD:
        return "ud";
    case SERVICE_XRC:
        return "xrc";
    default:
        return "rc";
    }
}

int explain_init(void)
{
    observe->explain.rows = pool_alloc_permanent(ROWS_MAX * sizeof(struct explain_row));
    return observe->explain.rows ? 0 : ENOMEM;
}

/* ---- summing up ---- */

/* Searches backwards: messages of one kind usually follow each other. */
static struct explain_row *row_of(const struct sim_wqe *wqe)
{
    struct explain *explain = &observe->explain;
    struct explain_row key = { .length = wqe->length,
                               .service = wqe->qp->transport.attributes.service,
                               .operation = wqe->transport.operation };

    for (uint32_t i = explain->count; i-- > 0;) {
        struct explain_row *row = &explain->rows[i];

        if (row->length == key.length && row->service == key.service &&
            row->operation == key.operation)
            return row;
    }
    if (explain->count == ROWS_MAX)
        return NULL;
    explain->rows[explain->count] = key;
    return &explain->rows[explain->count++];
}

void explain_wqe(const struct sim_wqe *wqe)
{
    struct explain_row *row;

    if (wqe->status != TRANSPORT_SUCCESS || !wqe->marks[MARK_PROCESSED] ||
        !wqe->marks[MARK_COMPLETED])
        return;
    row = row_of(wqe);
    if (!row) {
        observe->explain.left_out++;
        return;
    }
    row->messages++;
    for (int i = 0; i < EXPLAIN_COUNT; i++)
        row->sums[i] += wqe->marks[explain_stages[i].to] - wqe->marks[explain_stages[i].from];
}

/* ---- printing ---- */

static int compare_rows(const void *left, const void *right)
{
    const struct explain_row *a = left, *b = right;

    if (a->service != b->service)
        return a->service < b->service ? -1 : 1;
    if (a->operation != b->operation)
        return a->operation < b->operation ? -1 : 1;
    return a->length < b->length ? -1 : a->length > b->length;
}

static uint64_t average(const struct explain_row *row, uint64_t sum)
{
    return (sum + row->messages / 2) / row->messages;
}

static void put_time(FILE *out, uint64_t ns)
{
    fprintf(out, " %9.3f", ns / 1e3);
}

/* Rounds the running sums, not the stages, so that the printed values add up. */
static uint64_t put_stages(FILE *out, const struct explain_row *row, uint64_t sum,
                           enum explain_stage first, enum explain_stage last)
{
    for (int i = first; i <= (int)last; i++) {
        uint64_t before = average(row, sum);

        sum += row->sums[i];
        put_time(out, average(row, sum) - before);
    }
    return sum;
}

static void put_nothing(FILE *out, int columns)
{
    for (int i = 0; i < columns; i++)
        fprintf(out, " %9s", "-");
}

static void put_row(FILE *out, const struct explain_row *row)
{
    bool reliable = row->service == SERVICE_RC || row->service == SERVICE_XRC;
    bool delivers = row->operation < TRANSPORT_READ;
    uint64_t processed, delivered = 0, completed = 0;

    fprintf(out, "  %-3s %-12s %9llu %9llu", service_name(row->service),
            explain_operation(row->operation), (unsigned long long)row->length,
            (unsigned long long)row->messages);
    processed = put_stages(out, row, 0, EXPLAIN_POST, EXPLAIN_RECEIVE);
    if (delivers)
        delivered = put_stages(out, row, processed, EXPLAIN_BUS_WRITE, EXPLAIN_BUS_WRITE);
    else
        put_nothing(out, 1);
    if (reliable)
        completed = put_stages(out, row, processed, EXPLAIN_ACK, EXPLAIN_COMPLETION);
    else
        put_nothing(out, 2);
    if (delivers)
        put_time(out, average(row, delivered));
    else
        put_nothing(out, 1);
    if (reliable)
        put_time(out, average(row, completed));
    else
        put_nothing(out, 1);
    fputc('\n', out);
}

void explain_print(FILE *out)
{
    struct explain *explain = &observe->explain;

    qsort(explain->rows, explain->count, sizeof(*explain->rows), compare_rows);
    fputs("\nWhere the time of a message goes, us on average. delivered = post to bus write; "
          "completed = post to\nreceive, ack and complete. A message of several packets is "
          "explained by its last one.\n",
          out);
    fprintf(out, "  %-16s %9s %9s", "operation", "size", "messages");
    for (int i = 0; i < EXPLAIN_COUNT; i++)
        fprintf(out, " %9s", explain_stages[i].name);
    fprintf(out, " %9s %9s\n", "delivered", "completed");
    for (uint32_t i = 0; i < explain->count; i++)
        put_row(out, &explain->rows[i]);
    if (explain->left_out)
        fprintf(out, "  %llu messages of further operations and sizes are not shown\n",
                (unsigned long long)explain->left_out);
}
