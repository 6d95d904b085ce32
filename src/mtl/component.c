/* SPDX-License-Identifier: BSD-2-Clause */
/* The component as Open MPI sees it: registration, initialization, and the lock. */
#include "mtl/connection.h"
#include "mtl/log.h"
#include "mtl/openmpi.h"
#include "mtl/progress.h"
#include "mtl/protocol.h"
#include "mtl/rendezvous.h"
#include "mtl/shared.h"

#include <ompi/errhandler/errcode.h>
#include <ompi/runtime/mpiruntime.h>
#include <opal/runtime/opal_progress.h>

#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct mtl mtl;

#define LOCK_RETRY_NS 50 /* of virtual time */

static struct address self;

static int component_register(void)
{
    counters_register();
    return parameters_register();
}

static int component_open(void)
{
    return OMPI_SUCCESS;
}

static int component_close(void)
{
    return OMPI_SUCCESS;
}

static int component_query(mca_base_module_t **module, int *priority)
{
    *priority = mtl.parameters.priority;
    *module = (mca_base_module_t *)&mtl.module;
    return OMPI_SUCCESS;
}

static void read_word(const char *path, char *text, size_t size)
{
    FILE *file = fopen(path, "r");

    text[0] = '\0';
    if (!file)
        return;
    if (!fgets(text, size, file))
        text[0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    fclose(file);
}

static void read_namespace(const char *path, char *text, size_t size)
{
    ssize_t length = readlink(path, text, size - 1);

    text[length > 0 ? length : 0] = '\0';
}

/* Processes with the same name are on the same node: one kernel, one PID namespace, and one node of
 * the software or modelled fabric. On the wire, a network namespace is a node. */
static void name_node(char *name, size_t size)
{
    bool software = dlsym(RTLD_DEFAULT, "verbena_is_virtual");
    const char *node = software ? getenv("VERBENA_NODE") : NULL;
    char boot[48], space[32], network[32] = "";

    read_namespace("/proc/self/ns/pid", space, sizeof(space));
    if (software && getenv("VERBENA_WIRE"))
        read_namespace("/proc/self/ns/net", network, sizeof(network));
    read_word("/proc/sys/kernel/random/boot_id", boot, sizeof(boot));
    snprintf(name, size, "%s %s %s%s", boot, space, node ? node : "", network);
}

static void fill_own_address(uint32_t ud_qpn)
{
    self = (struct address){
        .pid = getpid(),
        .inbox = mtl.parameters.shared_memory ? shared_open() : -1,
        .wake = progress_open(),
        .window = mtl.parameters.window,
        .slot_size = protocol_slot_size(),
        .qps = mtl.parameters.qps,
        .ud_qpn = ud_qpn,
        .path_count = devices.path_count,
    };
    name_node(self.node, sizeof(self.node));
    for (uint32_t i = 0; i < devices.path_count; i++)
        self.path[i] = (struct path_address){ .gid = devices.path[i].gid,
                                              .lid = devices.path[i].lid,
                                              .mtu = devices.path[i].mtu };
}

static void read_costs(void)
{
    int (*parameter)(const char *, double *) =
        (int (*)(const char *, double *))dlsym(RTLD_DEFAULT, "verbena_parameter");
    static const struct {
        const char *key;
        double *value;
    } costs[] = {
        { "mpi.send", &mtl.costs.send },
        { "mpi.receive", &mtl.costs.receive },
        { "mpi.control", &mtl.costs.control },
        { "mpi.shared_latency", &mtl.costs.shared_latency },
        { "mpi.shared_rate", &mtl.costs.shared_rate },
        { "host.wake_recv", &mtl.costs.wake },
        { "host.event_call", &mtl.costs.event_call },
    };
    double found;

    for (size_t i = 0; i < ARRAY_SIZE(costs) && parameter; i++) {
        if (!parameter(costs[i].key, &found))
            *costs[i].value = found;
    }
}

/* The machine may hold several hosts of the fabric. */
static uint32_t rank_on_host(void)
{
    const char *placed = getenv("VERBENA_LOCAL_RANK");

    return placed ? strtoul(placed, NULL, 10) : ompi_process_info.my_local_rank;
}

static void set_policy(void)
{
    struct rails_limits limits = rails_default_limits;
    int bind = mtl.parameters.bind;

    limits.stripe_threshold = mtl.parameters.stripe_threshold;
    limits.minimum_stripe = mtl.parameters.minimum_stripe;
    limits.stripe_cost_ns = mtl.parameters.stripe_cost;
    limits.bound = bind >= 0 ? (uint32_t)bind : rank_on_host() % devices.path_count;
    rails_traffic_init(&mtl.traffic, parameters_policy(), &limits);
}

/* Queue pairs whose contexts do not fit into the adapter cost more than additional rails gain. */
static void limit_queue_pairs(void)
{
    uint32_t limit = mtl.parameters.active_qps, procs = ompi_process_info.num_procs;

    if (!limit)
        return;
    while (mtl.parameters.qps > 1 && mtl.parameters.qps * procs > limit)
        mtl.parameters.qps--;
}

/* Until MPI_Init is over, processes run in real time; see sim/guest/mpi.c. */
static void join_after_init(void)
{
    void (**meet)(void) = dlsym(RTLD_DEFAULT, "verbena_mpi_meet");

    if (meet)
        *meet = mtl_join;
    vtime.leave();
}

static bool is_live(void)
{
    return !vtime.on && dlsym(RTLD_DEFAULT, "verbena_is_virtual") && !getenv("VERBENA_WIRE");
}

static mca_mtl_base_module_t *component_init(bool progress_threads, bool mpi_threads)
{
    uint32_t ud_qpn;
    int status;

    mtl.multiple = mpi_threads;
    mtl.threads = mpi_threads || mtl.parameters.progress_thread;
    vtime_find();
    mtl.live = is_live();
    if (vtime.on)
        read_costs();
    record_open();
    record_start();
    if (mtl.parameters.signal_interval > mtl.parameters.window / 2)
        mtl.parameters.signal_interval = mtl.parameters.window / 2;
    limit_queue_pairs();
    if (devices_open())
        goto leave;
    counters_register_rails();
    if (wireup_open(&ud_qpn))
        goto close_devices;
    if (protocol_init() || registrations_init(mtl.parameters.registrations))
        goto close_wireup;
    set_policy();
    fill_own_address(ud_qpn);
    OPAL_MODEX_SEND(status, OPENMPI_MODEX_GLOBAL, &mca_mtl_verbena_component.mtl_version, &self,
                    sizeof(self));
    if (status != OMPI_SUCCESS) {
        mtl_log("cannot publish the address of this process (modex)");
        goto close_wireup;
    }
    endpoints_init(&self);
    mtl.module = module_functions;
    mtl.module.mtl_request_size = sizeof(struct mtl_request) - sizeof(mca_mtl_request_t);
    opal_progress_register(module_progress);
    if (vtime.on)
        join_after_init();
    else
        progress_start();
    return &mtl.module;
close_wireup:
    wireup_close();
close_devices:
    devices_close();
leave:
    if (vtime.on)
        vtime.leave();
    return NULL;
}

#if OMPI_MAJOR_VERSION >= 5
static mca_mtl_base_module_t *component_init_5(bool progress_threads, bool mpi_threads,
                                               bool *accelerator_support)
{
    *accelerator_support = false;
    return component_init(progress_threads, mpi_threads);
}
#define COMPONENT_INIT component_init_5
#else
#define COMPONENT_INIT component_init
#endif

__attribute__((visibility("default"))) mca_mtl_base_component_2_0_0_t mca_mtl_verbena_component = {
    .mtl_version = {
        MCA_MTL_BASE_VERSION_2_0_0,
        .mca_component_name = "verbena",
        MCA_BASE_MAKE_VERSION(component, VERBENA_MAJOR, VERBENA_MINOR, VERBENA_PATCH),
        .mca_open_component = component_open,
        .mca_close_component = component_close,
        .mca_query_component = component_query,
        .mca_register_component_params = component_register,
    },
    .mtl_data = { MCA_BASE_METADATA_PARAM_NONE },
    .mtl_init = COMPONENT_INIT,
};

/* ---- entering and leaving ---- */

/* Called on the first use of MPI. All processes of the job start at the same virtual time. */
void mtl_join(void)
{
    void (*started)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "verbena_mpi_started");

    if (mtl.joined)
        return;
    mtl.joined = true;
    vtime.barrier_begin(ompi_process_info.num_procs);
    vtime.barrier_end(1);
    if (started)
        started();
    record_start();
    progress_start();
}

/* In virtual time the thread that holds the lock runs only if time passes. */
void mtl_wait_for_lock(void)
{
    if (vtime.on) {
        while (!spin_trylock(&mtl.lock))
            vtime.compute(LOCK_RETRY_NS);
    } else if (!spin_trylock(&mtl.lock)) {
        atomic_fetch_add_explicit(&mtl.waiting, 1, memory_order_relaxed);
        spin_lock(&mtl.lock);
        atomic_fetch_sub_explicit(&mtl.waiting, 1, memory_order_relaxed);
    }
}

void mtl_report_done(void)
{
    struct mtl_request *request = mtl.done, *next;

    mtl.done = NULL;
    if (mtl.threads)
        spin_unlock(&mtl.lock);
    for (; request; request = next) {
        next = request->next;
        request->super.completion_callback(&request->super);
    }
    /* Another thread may be sleeping until its request completes. */
    if (vtime.on && mtl.threads)
        vtime.memory_written(getpid());
}

/* ---- errors ---- */

/* MPI 3.1 has no error class for this, and the text of MPI_ERR_OTHER tells nothing. */
int mtl_unreachable(void)
{
    static const char text[] =
        "MPI_ERR_PROC_FAILED: a process has failed or cannot be reached any more";
    static int code;

    if (!code) {
        code = ompi_mpi_errcode_add(MPI_ERR_OTHER);
        if (code < 0 || ompi_mpi_errnum_add_string(code, text, sizeof(text)) != OMPI_SUCCESS)
            code = MPI_ERR_OTHER;
    }
    return code;
}
