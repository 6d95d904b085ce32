/* SPDX-License-Identifier: BSD-2-Clause */
/* The ranks of an experiment other than rank 0, and the listening host. */
#include "bench/endpoint.h"
#include "bench/interrupt.h"
#include "bench/pin.h"
#include "bench/session/ranks.h"
#include "util/hash.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define POLL_MS 200

void rank_exec(int fd, char *const *words, int count)
{
    char *arguments[SETTINGS_WORDS_MAX + 4] = { "verbena", "bench-rank" }, number[16];

    snprintf(number, sizeof(number), "%d", fd);
    arguments[2] = number;
    for (int i = 0; i < count && i < SETTINGS_WORDS_MAX; i++)
        arguments[3 + i] = words[i];
    execv("/proc/self/exe", arguments);
    _exit(127);
}

static int node_of(enum layout layout, int rank)
{
    switch (layout) {
    case LAYOUT_TWO_HOSTS:
        return rank % 2;
    case LAYOUT_ALL_APART:
        return rank;
    case LAYOUT_ONE_HOST:
        break;
    }
    return 0;
}

/* The software adapter reads these variables when it is opened; real devices ignore them. On a
 * network interface, this host is the only node. */
static void move_to_node(const struct assignment *assignment)
{
    char node[16];

    snprintf(node, sizeof(node), "%d", node_of(assignment->experiment->layout, assignment->rank));
    if (!getenv("VERBENA_WIRE"))
        setenv("VERBENA_NODE", node, 1);
    snprintf(node, sizeof(node), "%d", assignment->rank);
    setenv("VERBENA_RANK", node, 1);
}

/* Identifies the machine until it reboots, also across containers. */
static uint64_t machine_id(void)
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    char text[64] = "";

    if (!file || !fgets(text, sizeof(text), file))
        gethostname(text, sizeof(text) - 1);
    if (file)
        fclose(file);
    return hash_text(text);
}

struct placement {
    uint64_t machine;
    uint32_t mtu; /* enum ibv_mtu */
    int core;
};

/* All ranks use the smallest MTU of their ports. */
static int agree_on_mtu(struct bench *bench, const struct placement *all)
{
    struct ibv_port_attr *port = &bench->adapter->port_attributes;

    for (int i = 0; i < bench->ranks; i++) {
        if (all[i].mtu < port->active_mtu)
            port->active_mtu = all[i].mtu;
    }
    if (bench->settings->mtu > endpoint_mtu_bytes(port->active_mtu))
        return bench_fail(bench, "--mtu %u exceeds the ports' MTU of %u",
                          (unsigned int)bench->settings->mtu, endpoint_mtu_bytes(port->active_mtu));
    return BENCH_OK;
}

/* Collective. The processes on one machine divide its cores. In virtual time only one of them runs
 * at a time, so all use the core of the first. */
static int place_process(struct bench *bench)
{
    struct placement mine = { .machine = machine_id(),
                              .mtu = bench->adapter->port_attributes.active_mtu,
                              .core = sched_getcpu() };
    struct placement all[CONTROL_RANKS_MAX];
    int index = 0, processes = 0;
    char where[64];

    if (bench_exchange(bench, &mine, sizeof(mine), all) || agree_on_mtu(bench, all))
        return BENCH_FAILED;
    for (int i = 0; i < bench->ranks; i++) {
        processes += all[i].machine == mine.machine;
        index += all[i].machine == mine.machine && i < bench->rank;
    }
    if (vtime.on)
        pin_to_shared_core(bench, all[0].core, where, sizeof(where));
    else
        pin_process(bench, index, processes, where, sizeof(where));
    bench_note(bench, "placement", "%s", where);
    return BENCH_OK;
}

/* Work requests, also the peer's, fail if a port went down or the device is gone. */
static void explain_failure(struct bench *bench)
{
    const struct adapter *adapter = bench->adapter;
    struct ibv_port_attr port;
    char text[CONTROL_TEXT_MAX];

    if (ibv_query_port(adapter->context, adapter->port, &port))
        snprintf(text, sizeof(text), "the device of process %d no longer responds", bench->rank);
    else if (port.state != IBV_PORT_ACTIVE)
        snprintf(text, sizeof(text), "port %u of process %d is %s now", adapter->port, bench->rank,
                 ibv_port_state_str(port.state));
    else
        return;
    control_add_reason(bench->control, text);
}

void rank_run(struct bench *bench)
{
    struct adapter adapter;

    bench->adapter = &adapter;
    /* In virtual time no rank uses the device before this barrier, so that the order of events does
     * not depend on when the ranks were started. */
    if (vtime.on && bench_barrier(bench))
        return;
    if (adapter_open(bench, &adapter))
        return;
    if (!place_process(bench) && bench->experiment->run(bench) &&
        bench->control->status == CONTROL_OK)
        bench_fail(bench, "the experiment failed without a reason");
    if (bench->control->status == CONTROL_FAILED)
        explain_failure(bench);
    pin_restore();
    adapter_close(&adapter);
    bench->adapter = NULL;
}

/* Only prints on the listening host: rank 0 reports failures of the ranks it started itself. */
static void log_peer(int fd, const char *format, ...)
{
    struct sockaddr_in6 address;
    socklen_t size = sizeof(address);
    char name[INET6_ADDRSTRLEN] = "";
    va_list arguments;

    if (getpeername(fd, (struct sockaddr *)&address, &size) || address.sin6_family != AF_INET6)
        return;
    inet_ntop(AF_INET6, &address.sin6_addr, name, sizeof(name));
    fprintf(stderr, "verbena bench: %s: ", name);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}

/* Whether rank 0 is on this machine, where the socket is certain to show its death. */
static bool is_local(int fd)
{
    int domain = 0;
    socklen_t size = sizeof(domain);

    return !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) && domain == AF_UNIX;
}

static int take_assignment(int fd, const char *version, char *const *words, int count,
                           struct assignment *out)
{
    static char handshake[HANDSHAKE_MAX];
    struct settings host;
    char refusal[CONTROL_TEXT_MAX], error[CONTROL_TEXT_MAX / 2];

    settings_init(&host);
    if (settings_read(&host, words, count, error, sizeof(error)))
        return -1;
    if (control_receive_handshake(fd, is_local(fd) ? 0 : host.timeout, handshake,
                                  sizeof(handshake))) {
        log_peer(fd, "%s",
                 errno == EPROTO      ? "invalid handshake: not 'verbena bench'"
                 : errno == ETIMEDOUT ? "connected but sent no handshake"
                                      : "disconnected before the handshake");
        return -1;
    }
    if (handshake_read(handshake, version, out, refusal, sizeof(refusal))) {
        log_peer(fd, "refused: %s", refusal);
        control_reply_handshake(fd, refusal);
        return -1;
    }
    settings_read(&out->settings, words, count, error, sizeof(error));
    control_reply_handshake(fd, NULL);
    return 0;
}

int rank_main(int fd, const char *version, char *const *words, int count)
{
    static struct control control;
    struct assignment assignment;
    struct bench bench;

    interrupt_catch();
    if (take_assignment(fd, version, words, count, &assignment))
        return 1;
    move_to_node(&assignment);
    clock_start();
    control.rank = assignment.rank;
    control.ranks = assignment.ranks;
    control.fd[0] = fd;
    control.timeout_s = ranks_idle_timeout(&assignment.settings);
    control.stopped = interrupt_seen;
    patience_watch(getppid()); /* rank 0, if it is on this host */
    bench = (struct bench){
        .experiment = assignment.experiment,
        .settings = &assignment.settings,
        .control = &control,
        .rank = assignment.rank,
        .ranks = assignment.ranks,
    };
    rank_run(&bench);
    if (vtime.on)
        vtime.leave();
    control_end(&control);
    return control.status == CONTROL_OK ? 0 : 1;
}

static int open_listener(const struct settings *settings)
{
    struct sockaddr_in6 address = { .sin6_family = AF_INET6,
                                    .sin6_port = htons(settings->tcp_port) };
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1, off = 0;

    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, CONTROL_RANKS_MAX)) {
        int cause = errno;

        close(fd);
        errno = cause;
        return -1;
    }
    return fd;
}

/* Starts a process for the connection. It ends when this one does. */
static void serve(int fd, const struct settings *settings, char *const *words, int count)
{
    pid_t parent = getpid(), child = fork();

    if (!child) {
        signal(SIGTERM, SIG_DFL);
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent)
            _exit(1);
        signal(SIGCHLD, SIG_DFL);
        ranks_prepare_connection(fd, settings->timeout);
        rank_exec(dup(fd), words, count);
    }
    if (child < 0)
        fprintf(stderr, "verbena bench: fork: %s\n", strerror(errno));
    close(fd);
}

int ranks_listen(const struct settings *settings, char *const *words, int count)
{
    int listener = open_listener(settings);

    if (listener < 0) {
        fprintf(stderr, "verbena bench: TCP port %llu: %s%s\n",
                (unsigned long long)settings->tcp_port, strerror(errno),
                errno == EADDRINUSE ? "; choose another with --tcp-port" : "");
        return 1;
    }
    fprintf(stderr, "waiting for 'verbena bench --connect' on TCP port %llu; Ctrl-C to end\n",
            (unsigned long long)settings->tcp_port);
    signal(SIGCHLD, SIG_IGN);
    interrupt_catch();
    while (!interrupt_seen()) {
        struct pollfd ready = { .fd = listener, .events = POLLIN };
        int fd = poll(&ready, 1, POLL_MS) > 0 ? accept4(listener, NULL, NULL, SOCK_CLOEXEC) : -1;

        if (fd >= 0)
            serve(fd, settings, words, count);
    }
    close(listener);
    return 0;
}
