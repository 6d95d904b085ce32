/* SPDX-License-Identifier: BSD-2-Clause */
#include "pair.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define GRH_BYTES 40

static void send_datagram(struct rdma_cm_id *id, struct rdma_ud_param *ud, const char *text)
{
    char buffer[64] = "";
    struct ibv_wc wc;
    struct ibv_mr *mr = rdma_reg_msgs(id, buffer, sizeof(buffer));
    struct ibv_ah *ah = ibv_create_ah(id->pd, &ud->ah_attr);

    CHECK(mr && ah);
    strcpy(buffer, text);
    struct ibv_sge sge = { (uintptr_t)buffer, sizeof(buffer), mr->lkey };
    struct ibv_send_wr *bad, wr = {
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = IBV_WR_SEND,
        .wr.ud = { .ah = ah, .remote_qpn = ud->qp_num, .remote_qkey = ud->qkey },
    };
    CHECK(!ibv_post_send(id->qp, &wr, &bad));
    CHECK(rdma_get_send_comp(id, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
    CHECK(!ibv_destroy_ah(ah));
    CHECK(!rdma_dereg_mr(mr));
}

/* ---- SIDR, then datagrams ---- */

static void ud_passive(void)
{
    struct rdma_event_channel *channel = open_channel();
    struct rdma_cm_id *listener = open_listener(channel, RDMA_PS_UDP, 1);
    struct rdma_conn_param param = { .private_data = "here", .private_data_len = 5 };
    struct rdma_cm_event *event = EXPECT(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
    struct rdma_cm_id *id = event->id;

    CHECK(event->param.ud.private_data_len == 180);
    CHECK(!strcmp(event->param.ud.private_data, "who is there"));
    rdma_ack_cm_event(event);
    make_qp(id);
    param.qp_num = id->qp->qp_num;
    CHECK(!rdma_accept(id, &param));
    tell(id->qp->qp_num);
    receive_text(id, "a datagram", GRH_BYTES);
    CHECK_ERRNO(rdma_disconnect(id), EINVAL);
    close_id(id);

    event = EXPECT(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
    id = event->id;
    rdma_ack_cm_event(event);
    CHECK(!rdma_reject(id, "no", 3));
    close_id(id);
    close_id(listener);
    tell(1);
}

static void ud_active(void)
{
    struct rdma_event_channel *channel = open_channel();
    struct rdma_conn_param param = { .private_data = "who is there", .private_data_len = 13 };
    uint16_t port = hear();
    struct rdma_cm_id *id = resolve(channel, RDMA_PS_UDP, "127.0.0.1", port);

    CHECK(id->qp_type == IBV_QPT_UD);
    make_qp(id);
    CHECK(!rdma_connect(id, &param));
    struct rdma_cm_event *event = EXPECT(channel, RDMA_CM_EVENT_ESTABLISHED);
    CHECK(event->param.ud.qp_num == hear());
    CHECK(event->param.ud.private_data_len == 136);
    CHECK(!strcmp(event->param.ud.private_data, "here"));
    hear();
    send_datagram(id, &event->param.ud, "a datagram");
    rdma_ack_cm_event(event);
    close_id(id);

    for (int status = 2; status >= 1; status--) { /* rejected, then no listener */
        if (status == 1)
            hear();
        id = resolve(channel, RDMA_PS_UDP, "127.0.0.1", port);
        CHECK(!rdma_connect(id, &param));
        event = EXPECT(channel, RDMA_CM_EVENT_UNREACHABLE);
        CHECK(event->status == status);
        rdma_ack_cm_event(event);
        close_id(id);
    }
}

/* ---- multicast ---- */

#define GROUP "239.1.2.3"

static struct rdma_cm_id *open_member(struct rdma_event_channel *channel, enum rdma_port_space ps,
                                      bool send_only, uint32_t create_flags,
                                      struct rdma_cm_event **joined)
{
    struct ibv_qp_init_attr_ex qp_attr = {
        .cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
        .qp_type = IBV_QPT_UD,
        .sq_sig_all = 1,
        .comp_mask = IBV_QP_INIT_ATTR_CREATE_FLAGS,
        .create_flags = create_flags,
    };
    struct rdma_cm_id *id;
    struct rdma_cm_join_mc_attr_ex attr = {
        .comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
        .join_flags =
            send_only ? RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER : RDMA_MC_JOIN_FLAG_FULLMEMBER,
    };

    CHECK(!rdma_create_id(channel, &id, NULL, ps));
    CHECK(!rdma_bind_addr(id, ip_address("127.0.0.1", 0)));
    CHECK(!rdma_resolve_addr(id, NULL, ip_address(GROUP, 0), 100));
    EXPECT_ACK(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
    CHECK(!rdma_create_qp_ex(id, &qp_attr));
    attr.addr = ip_address(GROUP, 0);
    CHECK(!rdma_join_multicast_ex(id, &attr, channel));
    *joined = EXPECT(channel, RDMA_CM_EVENT_MULTICAST_JOIN);
    CHECK((*joined)->param.ud.private_data == channel);
    CHECK((*joined)->param.ud.qkey == (ps == RDMA_PS_UDP ? RDMA_UDP_QKEY : 0x0b1b));
    CHECK((*joined)->param.ud.qp_num == 0xffffff && (*joined)->param.ud.ah_attr.dlid >= 0xc000);
    return id;
}

static void multicast_passive(void)
{
    struct rdma_event_channel *channel = open_channel();
    struct rdma_cm_event *joined;
    struct rdma_cm_id *id = open_member(channel, RDMA_PS_UDP, false, 0, &joined);
    char buffer[128];
    struct ibv_wc wc;

    rdma_ack_cm_event(joined);
    receive_text(id, "to all", GRH_BYTES);
    CHECK(!rdma_leave_multicast(id, ip_address(GROUP, 0)));
    CHECK_ERRNO(rdma_leave_multicast(id, ip_address(GROUP, 0)), EADDRNOTAVAIL);
    struct ibv_mr *mr = rdma_reg_msgs(id, buffer, sizeof(buffer));
    CHECK(mr && !rdma_post_recv(id, NULL, buffer, sizeof(buffer), mr));
    tell(1);
    hear();
    CHECK(ibv_poll_cq(id->recv_cq, 1, &wc) == 0);
    rdma_destroy_qp(id);
    CHECK(!rdma_dereg_mr(mr));
    close_id(id);
}

static void multicast_active(void)
{
    struct rdma_event_channel *channel = open_channel();
    struct rdma_cm_event *joined;
    struct rdma_cm_id *id = open_member(channel, RDMA_PS_UDP, true, 0, &joined);

    hear();
    send_datagram(id, &joined->param.ud, "to all");
    hear();
    send_datagram(id, &joined->param.ud, "to nobody");
    tell(1);
    rdma_ack_cm_event(joined);
    close_id(id);
}

static void ipoib_passive(void)
{
    struct rdma_event_channel *channel = open_channel();
    struct rdma_cm_event *joined;
    struct rdma_cm_id *id = open_member(channel, RDMA_PS_IPOIB, false, 0, &joined);

    rdma_ack_cm_event(joined);
    receive_text(id, "over IPoIB", GRH_BYTES);
    close_id(id);
}

static void ipoib_active(void)
{
    struct rdma_event_channel *channel = open_channel();
    struct rdma_cm_event *joined;
    struct rdma_cm_id *id = open_member(channel, RDMA_PS_IPOIB, true, 0, &joined);

    hear();
    send_datagram(id, &joined->param.ud, "over IPoIB");
    rdma_ack_cm_event(joined);
    close_id(id);
}

/* A member receives its own messages to the group, unless its QP blocks loopback. */
static void itself(void)
{
    struct rdma_event_channel *channel = open_channel();

    for (unsigned blocked = 0; blocked <= 1; blocked++) {
        struct rdma_cm_event *joined;
        struct rdma_cm_id *id =
            open_member(channel, RDMA_PS_UDP, false,
                        blocked ? IBV_QP_CREATE_BLOCK_SELF_MCAST_LB : 0, &joined);
        char buffer[128];
        struct ibv_mr *mr = rdma_reg_msgs(id, buffer, sizeof(buffer));
        struct ibv_wc wc;

        CHECK(mr && !rdma_post_recv(id, NULL, buffer, sizeof(buffer), mr));
        send_datagram(id, &joined->param.ud, "to myself");
        CHECK(ibv_poll_cq(id->recv_cq, 1, &wc) == !blocked);
        rdma_ack_cm_event(joined);
        CHECK(!rdma_leave_multicast(id, ip_address(GROUP, 0)));
        rdma_destroy_qp(id);
        CHECK(!rdma_dereg_mr(mr));
        close_id(id);
    }
}

const struct cm_case datagram_cases[] = {
    { "datagram", ud_passive, ud_active, 0 },
    { "multicast", multicast_passive, multicast_active, 0 },
    { "multicast-ipoib", ipoib_passive, ipoib_active, 0 },
    { "multicast-to-itself", itself, NULL, 0 },
    { 0 },
};
