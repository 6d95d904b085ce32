/* SPDX-License-Identifier: BSD-2-Clause */
/* The parameters of the model, as adapter files set them. */
#ifndef SIM_PARAMETERS_H
#define SIM_PARAMETERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ENGINES_MAX    16
#define ICM_MISSES_MAX 256
#define VLS_MAX        8

enum icm_location {
    ICM_ON_ADAPTER, /* adapter memory, behind the cache */
    ICM_IN_HOST,    /* host memory, across the I/O bus */
};

enum fabric_routing {
    ROUTING_DETERMINISTIC, /* by destination */
    ROUTING_ECMP,          /* by a hash of the flow */
    ROUTING_ADAPTIVE,      /* the shortest queue, for a flow that has paused */
};

enum link_layer {
    LAYER_INFINIBAND, /* credits: nothing is lost */
    LAYER_ETHERNET,   /* RoCEv2: pause frames, or loss */
};

/* Times are nanoseconds, rates bytes per nanosecond (GB/s), sizes bytes. */
struct parameters {
    char name[64];
    char title[128];

    struct {
        double post_send, post_recv, poll_hit, poll_empty;
        double post_next_send; /* a further WQE of the same call; 0: as post_send */
        double post_return;    /* the share of post_send after the doorbell */
        double sge_time; /* per SGE after the first of a posted WQE */
        double copy_rate;
        double copy_call;
        double wake_recv; /* from the interrupt to the running thread */
        double wake_send;    /* the same after a send; 0: as wake_recv */
        double create_qp, create_qp_entry, destroy_qp, destroy_connected_qp;
        double modify_qp;
        double create_cq, create_cq_entry, destroy_cq, destroy_cq_entry;
        double create_srq, destroy_srq;
        double reg_mr, reg_mr_page, reg_mr_page_beyond, dereg_mr, dereg_mr_page;
        uint64_t reg_mr_knee; /* pages; beyond it a page costs reg_mr_page_beyond */
        double alloc_pd, create_ah, bind_mw, event_call;
        uint64_t page_size;
    } host;

    struct {
        bool half_duplex;
        double rate;
        uint64_t write_burst, read_burst, read_request; /* largest payload of each */
        double write_overhead, completion_overhead, request_overhead;
        double link_layer; /* charged to the other direction for every transaction */
        double partial_line; /* of which a write fills a part */
        double doorbell_latency, write_latency, read_latency;
        double read_rate; /* of returned data; 0: not limited */
    } bus;

    struct {
        uint64_t engines;                /* for sending, per port */
        uint64_t engine_depth;           /* packets in flight per engine */
        uint64_t engine_window;          /* bytes asked of memory at a time; 0: not limited */
        uint64_t buffer;                 /* bytes of packets that have not left; 0: not limited */
        double wqe_time, sge_time, packet_time; /* per message, further SGE, packet */
        double qpc_lock_time; /* each packet, in or out, locks the QP context */
        uint64_t arbitration_quantum; /* bytes of a message before other QPs are served; 0: all */
        bool drain;        /* an engine starts its next message when its packets have left */
        bool wait_for_ack; /* after a SEND, a QP waits for the acknowledgement */
        double ack_turnaround;
        bool recv_prefetch; /* receive WQEs are fetched when they are posted */
        double recv_time, recv_sge_time, recv_wqe_time;
        double scatter_rate; /* 0: not limited */
        double write_time, ack_time; /* of the receive engine */
        double read_response;
        uint64_t wqe_prefetch; /* WQEs fetched ahead */
        uint64_t wqe_fetch;    /* WQEs in a read */
        uint64_t wqe_fetches;  /* reads of a QP at a time */
        uint64_t wqe_cache;    /* WQEs of a QP that stay on the adapter; 0: all */
        double wqe_miss;       /* receive engine time to fetch one of them again */
        uint64_t blueflame;    /* largest WQE that a doorbell carries */
        uint64_t doorbell_bytes; /* if it carries no WQE */
        uint64_t wqe_bytes, sge_bytes, cqe_bytes;
        uint64_t memory; /* device memory (ibv_alloc_dm) */
        double memory_rate, memory_latency;
    } hca;

    struct {
        enum icm_location location;
        uint64_t qpc_entries; /* in the cache; 0: all */
        uint64_t mtt_entries; /* pages in the cache; 0: all */
        uint64_t mtt_read;    /* bytes that an MTT miss brings, 8 a page */
        uint64_t ways;        /* of a set of either cache */
        double access_time;   /* to memory of the adapter; in the host, an access crosses the bus */
        uint64_t qpc_accesses, mtt_accesses, write_back_accesses;
        uint64_t misses; /* served at a time */
        bool in_order;   /* a hit waits for the misses before it */
        uint64_t chunk;  /* bytes by which a table in the host grows */
    } icm;

    struct {
        enum link_layer layer;
        uint64_t ports;
        double rate;
        uint64_t mtu;
        uint64_t header;
        double gap;
        double latency;          /* propagation delay */
        uint64_t receive_buffer; /* bytes per VL; 0: not limited */
        uint64_t vls;            /* for data; service level s uses VL s mod vls */
        char vl_weights[64];     /* see parameters_weights() */
    } link;

    struct {
        double latency;
        char shape[256]; /* shape.h */
        enum fabric_routing routing;
        char failures[256]; /* link_failures.h */
        uint64_t output_buffer; /* Ethernet without PFC: bytes per VL; 0: not limited */
    } fabric;

    /* Priority flow control: IEEE 802.1Qbb. A priority is a VL. */
    struct {
        uint64_t xoff;     /* bytes of a receive buffer that pause the sender; 0: no PFC */
        uint64_t xon;      /* bytes at which it may go on */
        uint64_t headroom; /* bytes above xoff */
        double response;   /* from the arrival of a pause frame until it takes effect */
    } pfc;

    /* ECN marks by switch outputs, as RED sets them. */
    struct {
        uint64_t kmin, kmax; /* bytes of a VL's queue; kmax 0: no marks */
        double pmax;         /* probability of a mark at kmax */
    } ecn;

    /* Congestion control by the adapters: Zhu and others, SIGCOMM 2015. */
    struct {
        bool enabled;
        double cnp_interval;   /* N: at most one CNP of a QP in this time */
        uint64_t cnp_level;    /* service level of CNPs */
        double alpha_interval; /* K: alpha decays after this time without a CNP */
        double g;
        double timer;          /* T */
        uint64_t byte_counter; /* B */
        uint64_t f;            /* F: steps of fast recovery */
        double rai, rhai;      /* additive and hyper increase of the target rate */
        double min_rate;
    } dcqcn;

    /* Overhead of an MPI library, which charges it itself. */
    struct {
        double send, receive, control;
        double shared_latency; /* between processes of one node */
        double shared_rate;
    } mpi;

    /* Speed of one process; the NAS kernels charge it. */
    struct {
        double is, ft, cg, mg, lu;
    } nas;
};

enum parameter_unit {
    UNIT_TIME,
    UNIT_RATE,
    UNIT_BYTES,
    UNIT_COUNT,
    UNIT_REAL,
    UNIT_YES_NO,
    UNIT_CHOICE,
    UNIT_TEXT,
};

struct parameter_row {
    const char *key; /* "bus.rate" */
    enum parameter_unit unit;
    size_t offset;
    size_t size; /* of a text */
    const char *default_value; /* in the syntax of a file; NULL: required */
    double minimum, maximum;
    bool power_of_two;
    const char *choices; /* separated by blanks, in the order of the enum */
    const char *help;
};

#define PARAMETER_ROWS_MAX 192

/* Ends with a row without a key. */
extern const struct parameter_row parameter_rows[];

/* The syntax of a value: "a time (ns, us, ms or s)". */
const char *parameter_unit_text(enum parameter_unit unit);

/* The row of a key, or NULL. */
const struct parameter_row *parameter_find(const char *key);

/* The value of a numeric key: times in ns, rates in GB/s, sizes in bytes. Returns 0, or -1 if the
 * key is unknown or its value is not a number. */
int parameter_number(const struct parameters *parameters, const char *key, double *value);

/* Reads an adapter file, the files it is based on, and then "key=value" settings separated by ';'
 * (may be NULL). Returns 0, or -1 with "file:line: reason" or "--set: reason" in 'error'. */
int parameters_read(const char *path, const char *settings, struct parameters *out, char *error,
                    size_t size);

/* Parses a time, such as "20 us". Returns false if it is none. */
bool parameters_time(const char *text, double *ns);

/* The time of registering a region, and of deregistering regions that have these bytes together, in
 * nanoseconds. */
double parameters_reg_mr(const struct parameters *parameters, uint64_t bytes);
double parameters_dereg_mr(const struct parameters *parameters, uint32_t regions, uint64_t bytes);

/* Parses link.vl_weights; its last number applies to further VLs, too. Returns false if the text is
 * not a list of weights, or has more of them than there are VLs. */
bool parameters_weights(const struct parameters *parameters, uint32_t weights[VLS_MAX]);

/* The path of an adapter file: 'name' itself if it has a '/' or ends in ".adapter", otherwise that
 * of NAME.adapter in adapter_directory(). Returns 0, or -1 with the reason in 'error'. */
int parameters_find(const char *name, char *path, size_t path_size, char *error, size_t size);

/* The path of what "based-on" in the file 'from' names: a file beside it, or else one that
 * parameters_find() finds. Returns 0, or -1 with the reason in 'error'. */
int parameters_find_base(const char *from, const char *name, char *path, size_t path_size,
                         char *error, size_t size);

#endif
