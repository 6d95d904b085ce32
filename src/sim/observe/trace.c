/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/observe/trace.h"

#include "hca/segment.h"
#include "sim/model/hca.h"
#include "sim/model/observer.h"
#include "sim/observe/observe.h"
#include "sim/observe/output.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define RECORD_MAX 512

bool trace_on;

static struct output output;

static void put(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void put(const char *format, ...)
{
    char text[RECORD_MAX];
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    output_put(&output, text, length < RECORD_MAX ? length : RECORD_MAX - 1);
}

/* ---- names ---- */

static void name_server(struct server *server, const struct sim_hca *hca, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Nodes are the processes of the trace, servers their threads. */
static void name_server(struct server *server, const struct sim_hca *hca, const char *format, ...)
{
    static uint32_t tracks;
    char name[64];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(name, sizeof(name), format, arguments);
    va_end(arguments);
    server->track = ++tracks;
    server->node = hca->node;
    put(",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%u,\"tid\":%u,"
        "\"args\":{\"name\":\"verbena%u %s\"}}",
        hca->node, server->track, hca->device, name);
}

static void name_adapter(struct sim_hca *hca)
{
    name_server(&hca->bus.up.server, hca, "bus to memory");
    name_server(&hca->bus.down.server, hca, "bus from memory");
    name_server(&hca->bus.returns.server, hca, "read data");
    name_server(&hca->icm.fetcher, hca, "ICM");
    for (uint32_t i = 0; i < hca->port_count; i++) {
        struct sim_port *port = &hca->ports[i];

        name_server(&port->out.server, hca, "port %u link", port->number);
        name_server(&port->in->server, hca, "port %u switch output", port->number);
        name_server(&port->receiver, hca, "port %u receiver", port->number);
    }
}

static void put_names(void)
{
    put("[\n{\"ph\":\"M\",\"name\":\"trace_name\",\"pid\":0,\"args\":{\"name\":\"%s\"}}",
        model->parameters.name);
    for (uint32_t node = 0; node < seg->nodes; node++)
        put(",\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%u,\"args\":{\"name\":\"node "
            "%u\"}}",
            node, node);
    for (uint32_t i = 1; i < model->port_count; i++) {
        if (model->ports[i].number == 1)
            name_adapter(model->ports[i].hca);
    }
}

int trace_open(const char *path, bool first)
{
    int error = output_open(&output, path, &observe->trace_size, first);

    if (error)
        return error;
    trace_on = true;
    if (first) {
        put_names();
        output_flush(&output);
    }
    return 0;
}

void trace_flush(void)
{
    output_flush(&output);
}

void trace_close(void)
{
    static const char end[] = "\n]\n";

    output_end(&output, end, strlen(end));
    output_flush(&output);
}

/* ---- records ---- */

/* The format counts microseconds. */
#define TIME_FORMAT  "%llu.%03llu"
#define TIME_OF(ns)  (unsigned long long)((ns) / 1000), (unsigned long long)((ns) % 1000)
#define LONG(number) ((unsigned long long)(number))

static void packet_text(const struct sim_packet *pkt, char *text, size_t size)
{
    int used =
        snprintf(text, size, "\"opcode\":\"%s\",\"qpn\":%u,\"to\":%u,\"psn\":%u,\"bytes\":%u",
                 opcode_info(pkt->packet.opcode)->name, pkt->from->qpn, pkt->packet.destination_qpn,
                 pkt->packet.psn, pkt->bytes);

    if (pkt->wqe)
        snprintf(text + used, size - used, ",\"wr_id\":%llu", LONG(pkt->wqe->wr_id));
}

static const char *work_name(void)
{
    if (model_activity.work)
        return model_activity.work;
    return model_activity.pkt ? opcode_info(model_activity.pkt->packet.opcode)->name : "completion";
}

void trace_busy(const struct server *server, uint64_t start, uint64_t end)
{
    char arguments[RECORD_MAX / 2] = "";

    if (!server->track || start == end)
        return;
    if (model_activity.pkt)
        packet_text(model_activity.pkt, arguments, sizeof(arguments));
    else if (model_activity.qp)
        snprintf(arguments, sizeof(arguments), "\"qpn\":%u", model_activity.qp->qpn);
    put(",\n{\"ph\":\"X\",\"pid\":%u,\"tid\":%u,\"ts\":" TIME_FORMAT ",\"dur\":" TIME_FORMAT
        ",\"name\":\"%s\",\"args\":{%s}}",
        server->node, server->track, TIME_OF(start), TIME_OF(end - start), work_name(), arguments);
}

/* A message or packet is in the trace with all its stages, or not at all. */
#define SPANS_MAX (2 * RECORD_MAX * (EXPLAIN_COUNT + 1))

struct span {
    const char *category;
    const char *suffix; /* of the id: overlapping spans need different ids */
    unsigned long long number;
    uint32_t node;
};

static void put_span(const struct span *span, const char *name, uint64_t start, uint64_t end,
                     const char *arguments)
{
    put(",\n{\"ph\":\"b\",\"cat\":\"%s\",\"id\":\"%llu%s\",\"pid\":%u,\"tid\":0,\"ts\":" TIME_FORMAT
        ",\"name\":\"%s\",\"args\":{%s}}",
        span->category, span->number, span->suffix, span->node, TIME_OF(start), name, arguments);
    put(",\n{\"ph\":\"e\",\"cat\":\"%s\",\"id\":\"%llu%s\",\"pid\":%u,\"tid\":0,\"ts\":" TIME_FORMAT
        ",\"name\":\"%s\"}",
        span->category, span->number, span->suffix, span->node, TIME_OF(end), name);
}

void trace_wqe(const struct sim_wqe *wqe)
{
    const uint64_t *marks = wqe->marks;
    struct span span = { "message", "", observe->trace_count++, wqe->qp->port->hca->node };
    uint64_t end = marks[MARK_POSTED];
    char arguments[RECORD_MAX / 2];

    if (!output_fits(&output, SPANS_MAX))
        return;
    for (int mark = MARK_DOORBELL; mark < MARK_COUNT; mark++)
        end = marks[mark] > end ? marks[mark] : end;
    snprintf(arguments, sizeof(arguments), "\"qpn\":%u,\"wr_id\":%llu,\"bytes\":%llu", wqe->qp->qpn,
             LONG(wqe->wr_id), LONG(wqe->length));
    put_span(&span, explain_operation(wqe->transport.operation), marks[MARK_CALLED], end,
             arguments);
    for (int i = 0; i < EXPLAIN_COUNT; i++) {
        const struct explain_interval *stage = &explain_stages[i];

        /* The way back overlaps the write to memory. */
        span.suffix = i >= EXPLAIN_ACK ? " back" : "";
        if (marks[stage->to] > marks[stage->from] && (marks[stage->from] || i == EXPLAIN_POST))
            put_span(&span, stage->name, marks[stage->from], marks[stage->to], "");
    }
}

void trace_packet(const struct sim_packet *pkt)
{
    struct span span = { "packet", "", observe->trace_count++, pkt->from->port->hca->node };
    char arguments[RECORD_MAX / 2];
    uint64_t end = 0;

    if (!output_fits(&output, SPANS_MAX))
        return;
    for (int i = 0; i < PACKET_MARKS; i++)
        end = pkt->marks[i] > end ? pkt->marks[i] : end;
    packet_text(pkt, arguments, sizeof(arguments));
    put_span(&span, opcode_info(pkt->packet.opcode)->name, pkt->marks[0], end, arguments);
    for (int i = EXPLAIN_BUS_READ; i <= EXPLAIN_RECEIVE; i++) {
        uint64_t from = pkt->marks[explain_stages[i].from - MARK_STARTED];
        uint64_t to = pkt->marks[explain_stages[i].to - MARK_STARTED];

        if (to > from && from)
            put_span(&span, explain_stages[i].name, from, to, "");
    }
}
