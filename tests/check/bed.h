/* SPDX-License-Identifier: BSD-2-Clause */
/* Two connected RC QPs of one process, for programs that break the rules. */
#ifndef TESTS_CHECK_BED_H
#define TESTS_CHECK_BED_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BED_BYTES 4096

struct bed {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_qp *qp[2];
    struct ibv_mr *mr; /* of 'memory', with all access */
    char *memory;      /* BED_BYTES */
};

void bed_make(struct bed *bed);
void bed_connect(struct ibv_qp *qp, uint32_t dest_qpn, uint16_t dlid);
struct ibv_qp *bed_qp(struct bed *bed);
uint16_t bed_lid(struct ibv_context *context);
void bed_free(struct bed *bed);

int bed_send(struct bed *bed, int from, uint32_t bytes, uint64_t wr_id);
int bed_receive(struct bed *bed, int at, uint32_t bytes, uint64_t wr_id);
int bed_rdma(struct bed *bed, enum ibv_wr_opcode opcode, uint64_t remote, uint32_t rkey,
             uint32_t bytes);
/* Polls until one completion has arrived. */
struct ibv_wc bed_poll(struct bed *bed);

/* A program of several cases, of which its only argument names one; a table ends with NULL. */
struct bed_case {
    const char *name;
    void (*run)(void);
};
/* Ends the program if there is no such case. */
const struct bed_case *bed_choose(const struct bed_case *cases, int count, char **words);

/* Ends the program with the reason if 'condition' does not hold. */
#define BED_NEED(condition) bed_need(condition, #condition)
void bed_need(bool condition, const char *text);

#endif
