/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/observe/stats.h"

#include "hca/arena.h"
#include "hca/segment.h"
#include "sim/model/hca.h"
#include "sim/observe/observe.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A direct system call: the C library's clocks are virtual in guests. */
static uint64_t wall_time(void)
{
    struct timespec now;

    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ull + now.tv_nsec;
}

void stats_init(bool on)
{
    observe->stats.on = on;
    observe->stats.created_at = wall_time();
}

static const struct {
    const char *name;
    size_t offset;
} counters[] = {
    { "requests", offsetof(struct transport_counters, requests) },
    { "resent", offsetof(struct transport_counters, resent) },
    { "responses", offsetof(struct transport_counters, responses) },
    { "timeouts", offsetof(struct transport_counters, timeouts) },
    { "rewinds", offsetof(struct transport_counters, rewinds) },
    { "rnr waits", offsetof(struct transport_counters, rnr_waits) },
    { "duplicates", offsetof(struct transport_counters, duplicates) },
    { "gaps", offsetof(struct transport_counters, gaps) },
    { "dropped", offsetof(struct transport_counters, dropped) },
};

static uint64_t *counter(struct transport_counters *all, size_t index)
{
    return (uint64_t *)((char *)all + counters[index].offset);
}

/* ---- servers and caches ---- */

static const struct component {
    const char *name;
    size_t offset;
} hca_servers[] = {
    { "bus to memory", offsetof(struct sim_hca, bus.up.server) },
    { "bus from memory", offsetof(struct sim_hca, bus.down.server) },
    { "read data returned", offsetof(struct sim_hca, bus.returns.server) },
    { "ICM", offsetof(struct sim_hca, icm.fetcher) },
    { "adapter memory", offsetof(struct sim_hca, memory) },
}, hca_caches[] = {
    { "QP contexts (QPC)", offsetof(struct sim_hca, icm.qpc) },
    { "translations (MTT)", offsetof(struct sim_hca, icm.mtt) },
};

#define COUNT_OF(list) (sizeof(list) / sizeof(*(list)))

static const void *component_of(const struct sim_hca *hca, const struct component *component)
{
    return (const char *)hca + component->offset;
}

/* A half-duplex bus is one server. */
static const char *server_name(const struct component *component)
{
    return component == hca_servers && model->parameters.bus.half_duplex ? "bus" : component->name;
}

enum { PORT_SERVERS = 3 };

static const struct server *port_server(const struct sim_port *port, int index, const char **name)
{
    static const char *const names[PORT_SERVERS] = { "link out", "switch output", "receiver" };
    const struct server *const servers[PORT_SERVERS] = { &port->out.server, &port->in->server,
                                                         &port->receiver };

    *name = names[index];
    return servers[index];
}

static double share_busy(const struct server *server)
{
    return sched->now ? (double)server->busy / sched->now : 0;
}

static bool was_used(const struct sim_hca *hca)
{
    for (uint32_t i = 0; i < hca->port_count; i++) {
        if (hca->ports[i].packets_out || hca->ports[i].packets_in || hca->ports[i].receiver.jobs)
            return true;
    }
    return false;
}

/* The next adapter with traffic, in the order of LIDs, or NULL. */
static const struct sim_hca *next_used_hca(uint32_t *index)
{
    while (++*index < model->port_count) {
        const struct sim_port *port = &model->ports[*index];

        if (port->number == 1 && was_used(port->hca))
            return port->hca;
    }
    return NULL;
}

static double wall_seconds(void)
{
    return (wall_time() - observe->stats.created_at) / 1e9;
}

static double mean_queue(const struct ethernet_counters *seen)
{
    return seen->packets ? (double)seen->queue_sum / seen->packets : 0;
}

/* As the CNPs found it. */
static double mean_alpha(void)
{
    return model->ethernet.cnps ? model->ethernet.alpha_sum / model->ethernet.cnps : 0;
}

/* ---- as text ---- */

static void put_server(FILE *out, const struct server *server, const char *name)
{
    if (!server->jobs)
        return;
    fprintf(out, "    %-24s %6.2f %% busy %12llu jobs\n", name, 100 * share_busy(server),
            (unsigned long long)server->jobs);
}

static void put_cache(FILE *out, const struct cache *cache, const char *name)
{
    uint64_t uses = cache->hits + cache->misses;

    if (!uses)
        return;
    fprintf(out, "    %-24s %6.2f %% hits %12llu hits, %llu misses\n", name,
            100.0 * cache->hits / uses, (unsigned long long)cache->hits,
            (unsigned long long)cache->misses);
}

static void put_port(FILE *out, const struct sim_port *port)
{
    for (int i = 0; i < PORT_SERVERS; i++) {
        const char *name;
        const struct server *server = port_server(port, i, &name);
        char whole[64];

        snprintf(whole, sizeof(whole), "port %u %s", port->number, name);
        put_server(out, server, whole);
    }
    if (port->packets_out || port->packets_in)
        fprintf(out, "    port %u packets            out %llu of %llu bytes, in %llu of %llu\n",
                port->number, (unsigned long long)port->packets_out,
                (unsigned long long)port->bytes_out, (unsigned long long)port->packets_in,
                (unsigned long long)port->bytes_in);
}

static void put_ethernet(FILE *out, const struct link *link, const char *name)
{
    const struct ethernet_counters *seen = &link->ethernet;

    if (!model_is_ethernet() || !(seen->packets || seen->pauses || seen->dropped))
        return;
    fprintf(out,
            "    %-24s queue %.0f bytes, most %llu, marked %llu of %llu, dropped %llu, "
            "pauses %llu of %.3f us\n",
            name, mean_queue(seen), (unsigned long long)seen->queue_max,
            (unsigned long long)seen->marked, (unsigned long long)seen->packets,
            (unsigned long long)seen->dropped, (unsigned long long)seen->pauses,
            seen->paused_ns / 1e3);
}

static void put_port_ethernet(FILE *out, const struct sim_port *port)
{
    char name[64];

    snprintf(name, sizeof(name), "port %u to the switch", port->number);
    put_ethernet(out, &port->out, name);
    snprintf(name, sizeof(name), "port %u from the switch", port->number);
    put_ethernet(out, port->in, name);
}

static void put_adapter(FILE *out, const struct sim_hca *hca)
{
    fprintf(out, "  node %u, verbena%u\n", hca->node, hca->device);
    for (size_t i = 0; i < COUNT_OF(hca_servers); i++)
        put_server(out, component_of(hca, &hca_servers[i]), server_name(&hca_servers[i]));
    for (size_t i = 0; i < COUNT_OF(hca_caches); i++)
        put_cache(out, component_of(hca, &hca_caches[i]), hca_caches[i].name);
    for (uint32_t i = 0; i < hca->port_count; i++) {
        put_port(out, &hca->ports[i]);
        put_port_ethernet(out, &hca->ports[i]);
    }
}

static void put_trunk(void *out, const struct link *link, const char *from, const char *to)
{
    char name[2 * SHAPE_NAME_BYTES + 4];

    snprintf(name, sizeof(name), "%s to %s", from, to);
    put_server(out, &link->server, name);
    put_ethernet(out, link, name);
}

static void put_switches(FILE *out)
{
    if (model->fabric.switch_count == 1)
        return;
    fputs("  between switches\n", out);
    switch_each_trunk(put_trunk, out);
    if (model->fabric.lost)
        fprintf(out, "  lost to failed links: %llu packets\n",
                (unsigned long long)model->fabric.lost);
}

static void put_transport(FILE *out)
{
    fputs("  transport:", out);
    for (size_t i = 0; i < COUNT_OF(counters); i++)
        fprintf(out, "%s %s %llu", i ? "," : "", counters[i].name,
                (unsigned long long)*counter(&model->counters, i));
    fputc('\n', out);
}

static void put_dcqcn(FILE *out)
{
    if (model->parameters.dcqcn.enabled)
        fprintf(out, "  DCQCN: CNPs %llu, alpha %.6f\n", (unsigned long long)model->ethernet.cnps,
                mean_alpha());
}

static void put_faults(FILE *out)
{
    if (!model->faults.any)
        return;
    fputs("  faults:", out);
    for (int fault = 0; fault < FAULT_COUNT; fault++)
        fprintf(out, "%s %s %llu", fault ? "," : "", fault_names[fault],
                (unsigned long long)model->faults.counts[fault]);
    fprintf(out, ", undetected %llu\n", (unsigned long long)model->faults.undetected);
}

void stats_print(FILE *out)
{
    double seconds = wall_seconds();
    const struct sim_hca *hca;
    uint32_t index = 0;

    fprintf(out, "\nModel of %s: %.9f s of virtual time, %llu events\n", model->parameters.name,
            sched->now / 1e9, (unsigned long long)sched->events_run);
    while ((hca = next_used_hca(&index)))
        put_adapter(out, hca);
    put_switches(out);
    put_transport(out);
    put_dcqcn(out);
    put_faults(out);
    fprintf(out, "  wall time %.3f s, %.0f events per second\n", seconds,
            sched->events_run / seconds);
}

/* ---- as JSON, printed by hand: the library does not link jansson ---- */

/* A JSON list or object; item() writes the separator. */
struct list {
    FILE *out;
    bool begun;
};

static FILE *item(struct list *list)
{
    fputs(list->begun ? ",\n" : "\n", list->out);
    list->begun = true;
    return list->out;
}

static void write_server(struct list *list, const struct server *server, const char *name)
{
    if (server->jobs)
        fprintf(item(list), "    {\"name\":\"%s\",\"busy\":%.6f,\"jobs\":%llu}", name,
                share_busy(server), (unsigned long long)server->jobs);
}

static void write_cache(struct list *list, const struct cache *cache, const char *name)
{
    if (cache->hits + cache->misses)
        fprintf(item(list), "    {\"name\":\"%s\",\"hits\":%llu,\"misses\":%llu}", name,
                (unsigned long long)cache->hits, (unsigned long long)cache->misses);
}

static void write_ethernet(FILE *out, const struct link *link)
{
    const struct ethernet_counters *seen = &link->ethernet;

    fprintf(out,
            "{\"packets\":%llu,\"queue_mean\":%.0f,\"queue_max\":%llu,\"buffer_max\":%llu,"
            "\"marked\":%llu,\"dropped\":%llu,\"pauses\":%llu,\"paused_seconds\":%.9f}",
            (unsigned long long)seen->packets, mean_queue(seen),
            (unsigned long long)seen->queue_max, (unsigned long long)seen->buffer_max,
            (unsigned long long)seen->marked, (unsigned long long)seen->dropped,
            (unsigned long long)seen->pauses, seen->paused_ns / 1e9);
}

static void write_port_ethernet(FILE *out, const struct sim_port *port)
{
    if (!model_is_ethernet())
        return;
    fputs(",\n    \"to_switch\":", out);
    write_ethernet(out, &port->out);
    fputs(",\n    \"from_switch\":", out);
    write_ethernet(out, port->in);
}

static void write_port(struct list *list, const struct sim_port *port)
{
    struct list servers = { item(list), false };

    fprintf(list->out,
            "   {\"number\":%u,\"packets_out\":%llu,\"bytes_out\":%llu,\"packets_in\":%llu,"
            "\"bytes_in\":%llu,\"servers\":[",
            port->number, (unsigned long long)port->packets_out,
            (unsigned long long)port->bytes_out, (unsigned long long)port->packets_in,
            (unsigned long long)port->bytes_in);
    for (int i = 0; i < PORT_SERVERS; i++) {
        const char *name;
        const struct server *server = port_server(port, i, &name);

        write_server(&servers, server, name);
    }
    fputs("]", list->out);
    write_port_ethernet(list->out, port);
    fputs("}", list->out);
}

static void write_adapter(struct list *list, const struct sim_hca *hca)
{
    FILE *out = item(list);
    struct list servers = { out, false }, caches = { out, false }, ports = { out, false };

    fprintf(out, "  {\"node\":%u,\"device\":\"verbena%u\",\"servers\":[", hca->node, hca->device);
    for (size_t i = 0; i < COUNT_OF(hca_servers); i++)
        write_server(&servers, component_of(hca, &hca_servers[i]), server_name(&hca_servers[i]));
    fputs("],\n   \"caches\":[", out);
    for (size_t i = 0; i < COUNT_OF(hca_caches); i++)
        write_cache(&caches, component_of(hca, &hca_caches[i]), hca_caches[i].name);
    fputs("],\n   \"ports\":[", out);
    for (uint32_t i = 0; i < hca->port_count; i++)
        write_port(&ports, &hca->ports[i]);
    fputs("]}", out);
}

static void write_trunk(void *list, const struct link *link, const char *from, const char *to)
{
    FILE *out = item(list);

    fprintf(out,
            "  {\"from\":\"%s\",\"to\":\"%s\",\"busy\":%.6f,\"jobs\":%llu,\"bytes\":%llu,"
            "\"queue_max\":%llu",
            from, to, share_busy(&link->server), (unsigned long long)link->server.jobs,
            (unsigned long long)link->bytes, (unsigned long long)link->queue_max);
    if (model_is_ethernet()) {
        fputs(",\"ethernet\":", out);
        write_ethernet(out, link);
    }
    fputs("}", out);
}

void stats_write_json(FILE *out)
{
    struct list adapters = { out, false }, links = { out, false }, numbers = { out, false };
    struct list faults = { out, false };
    const struct sim_hca *hca;
    uint32_t index = 0;

    fprintf(out,
            "{\"schema\":\"%s\",\"adapter\":\"%s\",\"nodes\":%u,\"seconds\":%.9f,\"events\":%llu,"
            "\"hand_overs\":%llu,\n \"wall_seconds\":%.3f,\"segment_bytes\":%llu,\n \"adapters\":[",
            STATS_SCHEMA, model->parameters.name, seg->nodes, sched->now / 1e9,
            (unsigned long long)sched->events_run, (unsigned long long)sched->switches, wall_seconds(),
            (unsigned long long)arena_bytes_most());
    while ((hca = next_used_hca(&index)))
        write_adapter(&adapters, hca);
    fputs("],\n \"links\":[", out);
    switch_each_trunk(write_trunk, &links);
    fputs("],\n \"transport\":{", out);
    for (size_t i = 0; i < COUNT_OF(counters); i++)
        fprintf(item(&numbers), "  \"%s\":%llu", counters[i].name,
                (unsigned long long)*counter(&model->counters, i));
    fputs("},\n", out);
    if (model->parameters.dcqcn.enabled)
        fprintf(out, " \"dcqcn\":{\"cnps\":%llu,\"alpha\":%.6f},\n",
                (unsigned long long)model->ethernet.cnps, mean_alpha());
    fputs(" \"faults\":{", out);
    for (int fault = 0; fault < FAULT_COUNT; fault++)
        fprintf(item(&faults), "  \"%s\":%llu", fault_names[fault],
                (unsigned long long)model->faults.counts[fault]);
    fprintf(item(&faults), "  \"undetected\":%llu}}\n",
            (unsigned long long)model->faults.undetected);
}
