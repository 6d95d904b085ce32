/* SPDX-License-Identifier: BSD-2-Clause */
/* An MTL component for Open MPI 4.1 on the verbs API: matching, eager and rendezvous messages over
 * several queue pairs, ports and adapters. docs/mpi.md explains it. */
#ifndef MTL_MTL_H
#define MTL_MTL_H

#include "mtl/match.h"
#include "mtl/record.h"
#include "rails/rails.h"
#include "util/spinlock.h"
#include "util/vtime.h"

#include <ompi_config.h>

#include <ompi/mca/mtl/mtl.h>

#define PAGE 4096

struct mtl_request;

enum eager_mode { EAGER_AUTO, EAGER_SEND, EAGER_WRITE };
enum rendezvous_mode { RENDEZVOUS_AUTO, RENDEZVOUS_WRITE, RENDEZVOUS_READ };

/* MCA parameters, see parameters.c. */
struct mtl_parameters {
    int priority;
    char *devices;
    int ports;
    int qps;
    int gid_index;
    int mtu;
    int policy;
    int bind;
    int eager;
    int rendezvous;
    int eager_limit;
    int shared_memory_limit;
    int coop_copy_min;
    int stripe_threshold;
    int minimum_stripe;
    int stripe_cost;
    int inline_limit;
    int window;
    int polled_peers;
    int signal_interval;
    int active_qps;
    int registrations;
    int retry_count;
    int timeout;
    bool shared_memory;
    bool single_copy;
    bool progress_thread;
    bool report;
};

struct mtl_counters {
    unsigned long long class_messages[RAILS_CLASSES];
    unsigned long long class_bytes[RAILS_CLASSES];
    unsigned long long puts, gets, accumulates;
    unsigned long long rail_messages[RAILS_MAX];
    unsigned long long rail_bytes[RAILS_MAX];
    unsigned long long shared_messages;
    unsigned long long shared_bytes;
    unsigned long long coop_copy_bytes;
    unsigned long long thread_messages;
    unsigned long long unexpected;
    unsigned long long connections;
    unsigned long long registrations;
    unsigned long long rail_failures;
    unsigned long long rail_recoveries;
    unsigned long long resent;
};

/* The modelled cost of the MPI library itself, in nanoseconds. */
struct mtl_costs {
    double send;
    double receive;
    double control;
    double shared_latency;
    double shared_rate; /* bytes per nanosecond; 0: as other copies */
    double wake;        /* of a sleeping thread */
    double event_call;  /* to get an event, and to arm a CQ */
};

struct mtl {
    mca_mtl_base_module_t module;
    struct mtl_parameters parameters;
    struct mtl_counters counters;
    struct mtl_costs costs;
    struct matching matching;
    struct rails_traffic traffic;
    struct spinlock lock;
    atomic_uint waiting; /* threads that wait for the lock */
    bool multiple;       /* MPI_THREAD_MULTIPLE */
    bool threads;        /* several threads may be inside: that, or a progress thread */
    bool joined;         /* this process takes part in virtual time */
    bool live;           /* the live software adapter: whoever posts a work request copies the data */
    bool waits;          /* the thread inside has nothing else to do: it is in MPI_Wait or the like */
    struct mtl_request *done, *last_done;
};

extern struct mtl mtl;

/* mtl_enter() takes the lock of the component. mtl_leave() releases it, and only then reports the
 * requests that have completed, because their callbacks may enter again. */
void mtl_join(void);
void mtl_wait_for_lock(void);
void mtl_report_done(void);

static inline void mtl_enter(void)
{
    if (unlikely(vtime.on && !mtl.joined))
        mtl_join();
    if (mtl.threads)
        mtl_wait_for_lock();
    if (unlikely(recording))
        record_entered();
}

static inline void mtl_leave(void)
{
    struct mtl_request *done = mtl.done;

    if (unlikely(recording))
        record_left();
    if (done) {
        mtl_report_done();
        return;
    }
    if (mtl.threads)
        spin_unlock(&mtl.lock);
}

/* The MPI error code of operations with a process that cannot be reached any more. */
int mtl_unreachable(void);

/* Virtual or real time. */
static inline uint64_t mtl_now(void)
{
    return vtime.on ? vtime.now() : now_ns();
}

static inline void mtl_charge(uint64_t ns)
{
    if (vtime.on && ns)
        vtime.compute(ns);
}

static inline void mtl_charge_copy(uint64_t bytes)
{
    if (vtime.on && bytes)
        vtime.copy(bytes);
}

/* parameters.c */
extern mca_mtl_base_component_2_0_0_t mca_mtl_verbena_component;
int parameters_register(void);
const struct rails_policy *parameters_policy(void);

/* counters.c */
void counters_register(void);
/* Their names contain the device, the port and the queue pair: called once the devices are open. */
void counters_register_rails(void);
void counters_report(void);

/* module.c */
int module_progress(void);
int module_poll(void);
/* Starts a receive whose buffer and size are set. */
void module_receive(struct mtl_request *request, struct ompi_communicator_t *comm, int source,
                    int tag);
/* Only a receive that has not matched can be cancelled. */
int module_cancel(mca_mtl_base_module_t *module, mca_mtl_request_t *request, int flag);
extern const mca_mtl_base_module_t module_functions;

#endif
