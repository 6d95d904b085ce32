/* SPDX-License-Identifier: BSD-2-Clause */
/* The settings of a measurement. Every row of settings_rows is an option on the command line, in a
 * sweep file and in an experiment's defaults. */
#ifndef BENCH_SETTINGS_H
#define BENCH_SETTINGS_H

#include "util/option.h"

enum operation {
    OPERATION_SEND,
    OPERATION_WRITE,
    OPERATION_WRITE_IMM,
    OPERATION_READ,
    OPERATION_FETCH_ADD,
    OPERATION_COMPARE_SWAP,
    OPERATION_COUNT,
};

enum wait_mode {
    WAIT_POLL,       /* the completion queue */
    WAIT_MEMORY,     /* the last byte of the buffer */
    WAIT_BLOCK,      /* on the completion channel */
    WAIT_SPIN_BLOCK, /* poll for a while, then block */
    WAIT_COUNT,
};

enum window_style {
    WINDOW_REFILL, /* half of the window is posted when half of it has completed */
    WINDOW_REPLY,  /* the whole window, then a reply */
};

enum transport {
    TRANSPORT_RC,
    TRANSPORT_UC,
    TRANSPORT_UD,
    TRANSPORT_XRC,
    TRANSPORT_COUNT,
};

enum connecting {
    CONNECT_BY_ADDRESS,
    CONNECT_BY_CM,
};

enum pinning {
    PIN_AUTO,
    PIN_NONE,
};

struct settings {
    /* the run */
    const char *device;
    const char *adapter;
    const char *set;
    const char *faults;
    const char *compute;
    const char *mca;
    const char *trace;
    uint64_t trace_limit;
    const char *pcap;
    uint64_t pcap_limit;
    const char *stats_file;
    bool stats;
    bool explain;
    const char *fabric;
    const char *wire;
    const char *shm_dir;
    const char *output;
    const char *fail_if;
    const char *connect;
    bool listen;
    bool quick;
    bool verify;
    uint64_t tcp_port;
    uint64_t timeout; /* s */
    uint64_t pin;
    uint64_t connect_by;
    uint64_t port;
    uint64_t gid_index; /* GID_INDEX_AUTO: chosen by the link layer */
    uint64_t seed;

    /* how often */
    uint64_t iterations;
    uint64_t warmup;
    uint64_t repetitions;
    uint64_t rounds;
    double tolerance; /* % half width of the confidence interval, 0: do not ask */
    double cap;       /* s per point, when a tolerance is asked for */
    double trim;      /* % of the slowest samples */
    double refine;    /* % between neighbours at a step; 0: no further points */

    /* what */
    struct number_list sizes;
    uint64_t operations; /* bits of enum operation */
    uint64_t waits;      /* bits of enum wait_mode */
    uint64_t styles;     /* bits of enum window_style */
    uint64_t transport;
    uint64_t window;
    uint64_t inline_limit;
    uint64_t depth;
    uint64_t signal;
    uint64_t spin; /* us before blocking */
    uint64_t mtu;  /* 0: the port's */
    uint64_t sl;
    uint64_t stripe;

    /* axes of experiments */
    struct number_list qps;
    struct number_list depths;
    struct number_list windows;
    struct number_list batches;
    struct number_list segments;
    struct number_list reuse;
    struct number_list regions;
    struct number_list nodes;
    struct number_list threads;
    struct number_list strides;
    struct number_list blocks;
    struct number_list offsets;
    struct number_list intervals;
    struct number_list levels;
    struct number_list work;

    /* MPI experiments */
    uint64_t policies; /* bits, in the order of RAILS_POLICY_NAMES */
    uint64_t ranks;
    uint64_t ranks_per_node;
    uint64_t ports;
    uint64_t devices;
};

/* Tags of settings_rows. */
enum {
    SETTING_HOST = 1, /* describes a host: the listening side may set it */
    SETTING_OWN = 2,  /* local to each host: not sent to the other one */
    SETTING_RUN = 4,  /* applies to the whole run, not to a single experiment */
};

/* TCP port of --listen: unassigned by IANA, and not the one of perftest (18515). */
#define BENCH_TCP_PORT "18590"

#define GID_INDEX_AUTO 0xffff
#define BATCH_MAX 1024
#define SETTINGS_WORDS_MAX 128

extern const struct option_row settings_rows[];

extern const char *const operation_names[OPERATION_COUNT];
extern const char *const wait_names[WAIT_COUNT];
extern const char *const transport_names[TRANSPORT_COUNT];

/* Returns the row of an option such as "--name" or "--name=value", or NULL. */
const struct option_row *settings_row_of(const char *word);

/* Sets every row to its default. */
void settings_init(struct settings *settings);

/* Parses "--name value", "--name=value" and "--flag". Returns 0, or -1 with the reason. */
int settings_read(struct settings *settings, char *const *words, int count, char *error,
                  size_t size);

#endif
