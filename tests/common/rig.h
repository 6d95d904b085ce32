/* SPDX-License-Identifier: BSD-2-Clause */
/* Steps of every verbs test: open a device, connect queue pairs, wait for completions. */
#ifndef TESTS_COMMON_RIG_H
#define TESTS_COMMON_RIG_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rig {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_port_attr port;
    union ibv_gid gid;
    uint8_t gid_index; /* on Ethernet: the last entry, an IPv4 address if there is one */
};

/* The address of a queue pair, exchanged to connect two of them. */
struct rig_addr {
    uint32_t qpn;
    uint32_t psn;
    uint32_t lid;
    union ibv_gid gid;
    uint8_t gid_index;
    bool global;
    uint8_t mtu; /* enum ibv_mtu */
};

struct rig_timing {
    uint8_t timeout;
    uint8_t retry_cnt;
    uint8_t rnr_retry;
    uint8_t min_rnr_timer;
};

extern const struct rig_timing rig_patient;

#define RIG_QKEY 0x11111111u
#define RIG_ACCESS_ALL                                                           \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
     IBV_ACCESS_REMOTE_ATOMIC)

/* All return 0 or an errno value. */
int rig_open(struct rig *rig);
int rig_close(struct rig *rig);

void rig_addr_of(const struct rig *rig, const struct ibv_qp *qp, uint32_t psn,
                 struct rig_addr *addr);
void rig_fill_ah(const struct rig_addr *remote, struct ibv_ah_attr *ah);

int rig_qp_init(struct ibv_qp *qp, int access);
int rig_qp_rtr(struct ibv_qp *qp, const struct rig_addr *remote, const struct rig_timing *timing);
int rig_qp_rts(struct ibv_qp *qp, uint32_t psn, const struct rig_timing *timing);
int rig_qp_connect(struct ibv_qp *qp, uint32_t psn, const struct rig_addr *remote, int access,
                   const struct rig_timing *timing);
int rig_qp_error(struct ibv_qp *qp);
enum ibv_qp_state rig_qp_state(struct ibv_qp *qp);

/* Returns 1 with a completion, 0 after the timeout, -1 on a CQ error. */
int rig_poll(struct ibv_cq *cq, struct ibv_wc *wc, unsigned timeout_ms);

uint64_t rig_now_us(void);
uint64_t rig_mix(uint64_t x);

/* The file that holds the fabric's segment, from the environment the library reads. */
void rig_segment_path(const char *fabric, char *path, size_t size);

#endif
