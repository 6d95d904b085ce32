#include "sim/stats.h"

#include "sim/models/hca.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The library's function may tell the time of the model. */
static uint64_t wall_time(void)
{
    struct timespec now;

    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ull + now.tv_nsec;
}

void stats_init(bool on)
{
    world->stats.on = on;
    world->stats.made_at = wall_time();
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

void stats_gather(struct queue *queue)
{
    for (size_t i = 0; i < sizeof(counters) / sizeof(*counters); i++) {
        *counter(&world->stats.transport, i) += *counter(&queue->transport.counters, i);
        *counter(&queue->transport.counters, i) = 0;
    }
}

/* ---- printing ---- */

static void put_server(FILE *out, const struct server *server, const char *name)
{
    if (!server->jobs)
        return;
    fprintf(out, "    %-24s %6.2f %% busy %12llu jobs\n", name,
            world->now ? 100.0 * server->busy / world->now : 0, (unsigned long long)server->jobs);
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

static void put_port(FILE *out, const struct port *port)
{
    char name[64];

    snprintf(name, sizeof(name), "port %u link out", port->number);
    put_server(out, &port->out.server, name);
    snprintf(name, sizeof(name), "port %u switch output", port->number);
    put_server(out, &port->in->server, name);
    snprintf(name, sizeof(name), "port %u receiver", port->number);
    put_server(out, &port->receiver, name);
    if (port->packets_out || port->packets_in)
        fprintf(out, "    port %u packets            out %llu of %llu bytes, in %llu of %llu\n",
                port->number, (unsigned long long)port->packets_out,
                (unsigned long long)port->bytes_out, (unsigned long long)port->packets_in,
                (unsigned long long)port->bytes_in);
}

static bool was_used(const struct hca *hca)
{
    for (uint32_t i = 0; i < hca->port_count; i++) {
        if (hca->ports[i].packets_out || hca->ports[i].packets_in || hca->ports[i].receiver.jobs)
            return true;
    }
    return false;
}

static void put_adapter(FILE *out, const struct hca *hca)
{
    bool half_duplex = world->parameters.bus.half_duplex;

    if (!was_used(hca))
        return;
    fprintf(out, "  node %u, verbena%u\n", hca->node, hca->device);
    put_server(out, &hca->bus.up, half_duplex ? "bus" : "bus to memory");
    put_server(out, &hca->bus.down, "bus from memory");
    put_server(out, &hca->bus.returns, "read data returned");
    put_server(out, &hca->context.unit, "context unit");
    put_cache(out, &hca->context.queues, "queue contexts");
    put_cache(out, &hca->context.pages, "translations");
    for (uint32_t i = 0; i < hca->port_count; i++)
        put_port(out, &hca->ports[i]);
}

static void put_between(void *out, struct cable *cable, uint32_t leaf, uint32_t spine, bool up)
{
    char name[64];

    snprintf(name, sizeof(name), "leaf %u %s spine %u", leaf, up ? "to" : "from", spine);
    put_server(out, &cable->server, name);
}

static void put_switches(FILE *out)
{
    if (!world->fabric.spines)
        return;
    fputs("  between switches\n", out);
    switches_each_between(put_between, out);
}

static void put_transport(FILE *out)
{
    for (uint32_t i = 0; i < 1u << QP_INDEX_BITS; i++) {
        if (world->queue_table[i])
            stats_gather(world->queue_table[i]);
    }
    fputs("  transport:", out);
    for (size_t i = 0; i < sizeof(counters) / sizeof(*counters); i++)
        fprintf(out, "%s %s %llu", i ? "," : "", counters[i].name,
                (unsigned long long)*counter(&world->stats.transport, i));
    fputc('\n', out);
}

static void put_faults(FILE *out)
{
    if (!world->faults.any)
        return;
    fputs("  faults:", out);
    for (int fault = 0; fault < FAULT_COUNT; fault++)
        fprintf(out, "%s %s %llu", fault ? "," : "", fault_names[fault],
                (unsigned long long)world->faults.counts[fault]);
    fputc('\n', out);
}

void stats_print(FILE *out)
{
    double seconds = (wall_time() - world->stats.made_at) / 1e9;

    fprintf(out, "\nThe model of %s, %.9f s of its time, %llu events\n", world->parameters.name,
            world->now / 1e9, (unsigned long long)world->events_run);
    for (uint32_t i = 1; i < world->port_count; i++) {
        if (world->ports[i].number == 1)
            put_adapter(out, world->ports[i].hca);
    }
    put_switches(out);
    put_transport(out);
    put_faults(out);
    fprintf(out, "  wall time %.3f s, %.0f events a second\n", seconds,
            world->events_run / seconds);
}
