/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One end of a connection with its own queues and memory. The far end of a case is in the
 * same process or in another one that executes commands, so that each case runs in both setups.
 */
#ifndef TESTS_FAULTS_SIDE_H
#define TESTS_FAULTS_SIDE_H

#include "case.h"
#include "rig.h"

#include <sys/types.h>

struct side_config {
    enum ibv_qp_type type;
    uint32_t send_depth;
    uint32_t recv_depth;
    int cq_depth;
    bool use_srq;
    bool with_channel;
    int qp_access;
    int mr_access;
    size_t bytes;
};

extern const struct side_config side_usual;

struct side {
    struct side_config config;
    struct rig rig;
    struct ibv_comp_channel *channel;
    struct ibv_cq *send_cq;
    struct ibv_cq *recv_cq;
    struct ibv_srq *srq;
    struct ibv_qp *qp;
    struct ibv_qp_cap cap;
    struct ibv_mr *mr;
    struct ibv_pd *other_pd;
    struct ibv_mr *other_mr; /* the same bytes in another protection domain */
    uint8_t *buf;
};

struct side_info {
    struct rig_addr addr;
    uint64_t buf;
    uint32_t lkey;
    uint32_t rkey;
    uint32_t other_rkey;
    int cqe;
};

void side_open(struct side *side, const struct side_config *config);
void side_close(struct side *side);
int side_unmap(struct side *side);
void side_info(const struct side *side, struct side_info *info);
int side_post_recv(struct side *side, uint64_t wr_id, uint64_t offset, uint32_t len, uint32_t lkey);
int side_async(struct side *side, int timeout_ms); /* the event type, or -1 */

/* The far end. */
struct far {
    bool remote;
    struct side local;
    int fd;
    pid_t pid;
};

void far_open(struct far *far, bool remote, const struct side_config *config);
void far_info(struct far *far, struct side_info *info);
int far_init(struct far *far);
int far_connect(struct far *far, const struct rig_addr *to, const struct rig_timing *timing);
int far_post_recv(struct far *far, uint64_t wr_id, uint64_t offset, uint32_t len);
int far_post_recv_key(struct far *far, uint64_t wr_id, uint64_t offset, uint32_t len,
                      uint32_t lkey);
int far_poll_recv(struct far *far, struct ibv_wc *wc, unsigned timeout_ms);
int far_async(struct far *far, int timeout_ms);
int far_arm(struct far *far);
int far_event(struct far *far, int timeout_ms); /* of its completion channel; 0, or -1 */
int far_error(struct far *far);
int far_destroy_qp(struct far *far);
int far_set_srq_limit(struct far *far, uint32_t limit);
int far_unmap(struct far *far);
int far_dereg(struct far *far);
enum ibv_qp_state far_state(struct far *far);
void far_fill(struct far *far, uint8_t value);
/* The first `len` bytes of its buffer, at most 256. */
void far_read(struct far *far, uint64_t offset, uint8_t *out, uint32_t len);
void far_kill(struct far *far);
void far_close(struct far *far);

/* A connected pair. */
struct pair {
    struct side a;
    struct far b;
    struct side_info at;
};

void pair_open(struct pair *pair, bool remote, const struct side_config *config,
               const struct rig_timing *timing);
void pair_close(struct pair *pair);

/* A signalled request from the start of a's buffer. */
struct request {
    enum ibv_wr_opcode opcode;
    uint64_t wr_id;
    uint32_t len;
    uint32_t lkey; /* 0: a's own */
    uint64_t local_offset;
    uint64_t remote_addr;
    uint32_t rkey;
    uint64_t compare_add;
    uint64_t swap;
    unsigned flags;
};

int pair_post(struct pair *pair, const struct request *request);
/* Posts, and waits for the completion. */
enum ibv_wc_status pair_do(struct pair *pair, const struct request *request);

#define CHECK_STATUS(actual, expected)                                           \
    do {                                                                         \
        enum ibv_wc_status actual_ = (actual), expected_ = (expected);           \
        if (actual_ != expected_)                                                \
            case_fail(__FILE__, __LINE__, "%s gave '%s', not '%s'", #actual,     \
                      ibv_wc_status_str(actual_), ibv_wc_status_str(expected_)); \
    } while (0)

/* No completion came: a status the library never uses. */
#define NO_COMPLETION ((enum ibv_wc_status)255)

/* One row of the table of cases. */
struct fault_case {
    const char *name;
    void (*run)(bool remote);
    enum { LOCAL_ONLY, REMOTE_ONLY, BOTH_WAYS } where;
};

extern const struct fault_case queue_cases[];
extern const struct fault_case access_cases[];
extern const struct fault_case exit_cases[];
extern const struct fault_case system_cases[];

#endif
