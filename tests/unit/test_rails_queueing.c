/* SPDX-License-Identifier: BSD-2-Clause */
/* Policies on a small queueing model of an adapter: queue pairs that carry a stripe at a time,
 * chunk by chunk, engines that take stripes from them, ports that engines share. On equal rails
 * 'epc' has to be as good as each fixed policy; 'adaptive' as good as all of them, everywhere. */
#include "rails/rails.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#define CHUNK       2048
#define WINDOW      64
#define PEERS_MAX   7
#define PORTS_MAX   2
#define SERVERS_MAX (PEERS_MAX * RAILS_MAX)
#define WITHIN      1.02

struct platform {
    const char *name;
    uint32_t ports, qps, engines;
    double qp_rate[PORTS_MAX]; /* bytes per nanosecond */
    double port_rate[PORTS_MAX];
    double post_ns, stripe_ns, latency_ns;
    bool equal;
};

static const struct platform platforms[] = {
    { "four queue pairs on one port", 1, 4, 4, { 1.66 }, { 2.8 }, 500, 4500, 3000, true },
    { "two ports", 2, 1, 1, { 0.97, 0.97 }, { 0.97, 0.97 }, 500, 700, 3000, true },
    { "two ports, one slow", 2, 1, 1, { 1, 0.4 }, { 1, 0.4 }, 500, 700, 3000, false },
    { "two fast adapters", 2, 2, 2, { 30, 30 }, { 50, 50 }, 60, 100, 800, true },
};

struct message {
    struct rails_plan plan;
    struct rails_set *set;
    uint32_t left;
    double end;
};

/* A queue pair: stripes wait in order; one of them holds an engine of the port. */
struct server {
    struct {
        struct message *message;
        uint32_t stripe;
        double ready;
    } queue[WINDOW];
    uint32_t head, tail;
    uint64_t left; /* bytes of the stripe at the head, once it has an engine */
    bool active;
    double free;
    uint32_t port;
};

struct world {
    const struct platform *platform;
    struct rails_traffic traffic;
    struct rails_set set[PEERS_MAX];
    struct server server[SERVERS_MAX];
    uint32_t peers, rails;
    uint32_t engines_free[PORTS_MAX];
    double engine_free[PORTS_MAX]; /* when one was given back last */
    double port_free[PORTS_MAX];
    double now;
};

static struct rails_limits limits;

static void world_init(struct world *world, const struct platform *platform, const char *policy,
                       uint32_t peers)
{
    memset(world, 0, sizeof(*world));
    world->platform = platform;
    world->peers = peers;
    world->rails = platform->ports * platform->qps;
    rails_traffic_init(&world->traffic, rails_policy_find(policy), &limits);
    for (uint32_t port = 0; port < platform->ports; port++)
        world->engines_free[port] = platform->engines;
    for (uint32_t peer = 0; peer < peers; peer++) {
        rails_set_init(&world->set[peer], &world->traffic);
        for (uint32_t i = 0; i < world->rails; i++) {
            rails_add(&world->set[peer], 0, i / platform->qps, i % platform->qps);
            world->server[peer * world->rails + i].port = i / platform->qps;
        }
    }
}

/* When this queue pair has its next chunk ready for the port; infinite if it cannot. */
static double next_chunk(const struct world *world, const struct server *server)
{
    const struct platform *platform = world->platform;
    double start;

    if (server->head == server->tail || (!server->active && !world->engines_free[server->port]))
        return INFINITY;
    if (server->active)
        return server->free;
    start = fmax(server->free, server->queue[server->head % WINDOW].ready);
    if (world->engines_free[server->port] == 1 && platform->engines > 1)
        start = fmax(start, world->engine_free[server->port]);
    return start + platform->stripe_ns;
}

static void stripe_done(struct world *world, struct server *server, double end)
{
    struct message *message = server->queue[server->head % WINDOW].message;
    uint32_t stripe = server->queue[server->head++ % WINDOW].stripe;
    double seen = end + world->platform->latency_ns;

    server->active = false;
    server->free = end;
    world->engines_free[server->port]++;
    world->engine_free[server->port] = end;
    rails_completed(message->set, &message->plan.stripe[stripe], true, (uint64_t)seen);
    message->end = fmax(message->end, seen);
    if (!--message->left)
        rails_ended(message->set, &message->plan);
}

/* Carries out what happens first, if that is before the limit. */
static bool step(struct world *world, double limit)
{
    const struct platform *platform = world->platform;
    struct server *first = NULL;
    double when = INFINITY, bytes, begin;

    for (uint32_t i = 0; i < world->peers * world->rails; i++) {
        double candidate = next_chunk(world, &world->server[i]);

        if (candidate < when) {
            when = candidate;
            first = &world->server[i];
        }
    }
    if (!first || when > limit)
        return false;
    if (!first->active) {
        first->active = true;
        first->left = first->queue[first->head % WINDOW]
                          .message->plan.stripe[first->queue[first->head % WINDOW].stripe]
                          .length;
        world->engines_free[first->port]--;
    }
    bytes = fmin((double)first->left, CHUNK);
    begin = fmax(when + bytes / platform->qp_rate[first->port] -
                     bytes / platform->port_rate[first->port],
                 world->port_free[first->port]);
    world->port_free[first->port] = begin + bytes / platform->port_rate[first->port];
    first->free = world->port_free[first->port];
    first->left -= (uint64_t)bytes;
    if (!first->left)
        stripe_done(world, first, first->free);
    return true;
}

static void send(struct world *world, struct message *message, uint32_t peer,
                 enum rails_class class, uint64_t size)
{
    struct rails_message wanted = { .class = class, .size = size };

    while (step(world, world->now))
        ;
    message->set = &world->set[peer];
    message->end = 0;
    assert_true(rails_plan(message->set, &wanted, &message->plan));
    message->left = message->plan.count;
    for (uint32_t i = 0; i < message->plan.count; i++) {
        struct rails_stripe *stripe = &message->plan.stripe[i];
        struct server *server = &world->server[peer * world->rails + stripe->rail];

        world->now += world->platform->post_ns;
        assert_true(server->tail - server->head < WINDOW);
        server->queue[server->tail % WINDOW].message = message;
        server->queue[server->tail % WINDOW].stripe = i;
        server->queue[server->tail++ % WINDOW].ready = world->now;
        rails_given(message->set, stripe, (uint64_t)world->now);
    }
}

static void wait_for(struct world *world, const struct message *message)
{
    while (message->left)
        assert_true(step(world, INFINITY));
    world->now = fmax(world->now, message->end);
}

static struct message messages[WINDOW];

static void ping(struct world *world, uint64_t size)
{
    send(world, &messages[0], 0, RAILS_BLOCKING, size);
    wait_for(world, &messages[0]);
}

static void window(struct world *world, uint64_t size)
{
    for (int i = 0; i < WINDOW; i++)
        send(world, &messages[i], 0, RAILS_NONBLOCKING, size);
    for (int i = 0; i < WINDOW; i++)
        wait_for(world, &messages[i]);
}

/* A step of a pairwise exchange with each peer in turn. */
static void exchange(struct world *world, uint64_t size)
{
    for (uint32_t peer = 0; peer < world->peers; peer++) {
        send(world, &messages[0], peer, RAILS_COLLECTIVE, size);
        wait_for(world, &messages[0]);
    }
}

static const struct pattern {
    const char *name;
    void (*round)(struct world *world, uint64_t size);
    uint32_t peers;
    int rounds;
} patterns[] = {
    { "blocking", ping, 1, 200 },
    { "windowed", window, 1, 6 },
    { "collective", exchange, PEERS_MAX, 30 },
};

static double time_of(const struct platform *platform, const struct pattern *pattern,
                      const char *policy, uint64_t size)
{
    static struct world world;

    world_init(&world, platform, policy, pattern->peers);
    for (int round = 0; round < pattern->rounds; round++)
        pattern->round(&world, size);
    return world.now;
}

static const char *const fixed[] = { "binding", "round-robin", "striping", "weighted" };

static void check(const struct platform *platform, const struct pattern *pattern, uint64_t size)
{
    double best = INFINITY, epc = time_of(platform, pattern, "epc", size);
    double adaptive = time_of(platform, pattern, "adaptive", size);

    for (size_t i = 0; i < sizeof(fixed) / sizeof(*fixed); i++) {
        double time = time_of(platform, pattern, fixed[i], size);

        best = fmin(best, time);
        if (platform->equal && epc > WITHIN * time)
            fail_msg("%s, %s, %llu bytes: epc %.0f ns, %s %.0f", platform->name, pattern->name,
                     (unsigned long long)size, epc, fixed[i], time);
    }
    best = fmin(best, epc);
    if (adaptive > WITHIN * best)
        fail_msg("%s, %s, %llu bytes: adaptive %.0f ns, the best %.0f", platform->name,
                 pattern->name, (unsigned long long)size, adaptive, best);
}

static void check_pattern(const struct pattern *pattern)
{
    for (size_t i = 0; i < sizeof(platforms) / sizeof(*platforms); i++) {
        /* Unequal rails are told apart by long messages only. */
        uint64_t least = platforms[i].equal ? 1 << 10 : rails_default_limits.stripe_threshold;

        for (uint64_t size = least; size <= 4 << 20; size *= 2)
            check(&platforms[i], pattern, size);
    }
}

static void test_blocking(void **state)
{
    check_pattern(&patterns[0]);
}

static void test_windowed(void **state)
{
    check_pattern(&patterns[1]);
}

static void test_collective(void **state)
{
    check_pattern(&patterns[2]);
}

/* The model itself has to tell policies apart, or the tests above would say nothing. */
static void test_model_tells_policies_apart(void **state)
{
    const struct platform *platform = &platforms[0];
    double alone = time_of(platform, &patterns[0], "binding", 1 << 20);
    double striped = time_of(platform, &patterns[0], "striping", 1 << 20);

    assert_true(striped < 0.7 * alone);
    limits.minimum_stripe = 4 << 10;
    assert_true(time_of(platform, &patterns[1], "round-robin", 16 << 10) <
                0.9 * time_of(platform, &patterns[1], "striping", 16 << 10));
    limits = rails_default_limits;
    assert_true(time_of(&platforms[2], &patterns[0], "weighted", 1 << 20) <
                0.8 * time_of(&platforms[2], &patterns[0], "striping", 1 << 20));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model_tells_policies_apart),
        cmocka_unit_test(test_blocking),
        cmocka_unit_test(test_windowed),
        cmocka_unit_test(test_collective),
    };

    limits = rails_default_limits;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
