/* SPDX-License-Identifier: BSD-2-Clause */
/* Two queue pairs of one process on one device, and the outcome of each case. Nothing here depends
 * on the device. */
#ifndef TESTS_CONFORMANCE_BED_H
#define TESTS_CONFORMANCE_BED_H

#include "rig.h"

#define BED_BYTES    16384
#define BED_DEPTH    16
#define BED_SEGMENTS 4
#define BED_INLINE   64
#define HALF         (BED_BYTES / 2)

enum side { REQUESTER, RESPONDER };

struct bed {
    struct rig rig;
    struct ibv_device_attr limits;
    enum ibv_qp_type type;
    struct ibv_cq *cq[2];
    struct ibv_qp *qp[2];
    struct ibv_srq *srq; /* of the responder, or NULL */
    uint8_t *memory;     /* the requester's half, then the responder's */
    struct ibv_mr *mr;   /* all of it, with all access flags */
    struct ibv_ah *ah;   /* UD: to the responder */
    struct rig_timing timing;
    char text[512]; /* the outcome so far */
};

/* Called for each case with its group, name and outcome. */
typedef void (*case_sink)(const char *group, const char *name, const char *text);

struct bed_case {
    const char *name;
    enum ibv_qp_type type;
    void (*run)(struct bed *bed); /* the queue pairs are connected */
};

void run_cases(const char *group, const struct bed_case *cases, size_t count, case_sink sink);

void run_states(case_sink sink);
void run_posting(case_sink sink);
void run_remote(case_sink sink);
void run_datagrams(case_sink sink);
void run_completions(case_sink sink);
void run_limits(case_sink sink);

/* Creates requester and responder in RESET. False: the reason was printed to standard error. */
bool bed_open(struct bed *bed, enum ibv_qp_type type, bool with_srq);
void bed_close(struct bed *bed);

struct ibv_qp_init_attr bed_qp_init(struct bed *bed, enum side side);

/* Attributes and mask of a regular transition. */
int bed_step(struct bed *bed, enum side side, enum ibv_qp_state to, struct ibv_qp_attr *attr);
bool bed_walk(struct bed *bed, enum side side, enum ibv_qp_state to);
bool bed_connect(struct bed *bed);

/* A work request of eight bytes, from the requester's half to the responder's. */
struct request {
    struct ibv_send_wr wr;
    struct ibv_sge sge;
};

void bed_request(struct bed *bed, enum ibv_wr_opcode opcode, struct request *out);
int bed_post(struct bed *bed, struct request *request);
int bed_receive(struct bed *bed, uint64_t wr_id, uint32_t length, uint32_t lkey);

/* Each appends to the outcome. */
void outcome(struct bed *bed, const char *format, ...) __attribute__((format(printf, 2, 3)));
void outcome_call(struct bed *bed, const char *what, int error);
void outcome_state(struct bed *bed, enum side side);
void outcome_completion(struct bed *bed, enum side side); /* waits for the next one */
void outcome_nothing(struct bed *bed, enum side side);    /* or the completion that came */
void outcome_event(struct bed *bed, bool expected);

const char *state_name(enum ibv_qp_state state);
const char *status_name(enum ibv_wc_status status);

#endif
