/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/mad.h"

#include "hca/objects.h"
#include "util/bytes.h"

#include <string.h>

#define BASE_VERSION  1
#define CM_CLASS      7
#define CLASS_VERSION 2
#define METHOD_SEND   3
#define HEADER_BYTES  24
#define IP_HEADER     36 /* of rdma_cm, at the head of a REQ's private data */
#define RATE_100_GBPS 16

/* Attributes, by type of message. 0: not sent over a network. */
static const uint16_t attributes[] = {
    [CM_MSG_REQ] = 0x10,      [CM_MSG_MRA] = 0x11,      [CM_MSG_REJ] = 0x12,
    [CM_MSG_REP] = 0x13,      [CM_MSG_RTU] = 0x14,      [CM_MSG_DREQ] = 0x15,
    [CM_MSG_DREP] = 0x16,     [CM_MSG_SIDR_REQ] = 0x17, [CM_MSG_SIDR_REP] = 0x18,
    [CM_MSG_ESTABLISHED] = 0,
};

/* ---- the addresses in front of a request's private data ---- */

static void put_ip_header(uint8_t *at, const struct cm_message *m)
{
    bool v4 = m->dst.family == AF_INET;

    at[0] = 0;
    at[1] = (v4 ? 4 : 6) << 4;
    bytes_put(at + 2, 2, m->src.port);
    if (v4) {
        memcpy(at + 16, m->src.ip + 12, 4);
        memcpy(at + 32, m->dst.ip + 12, 4);
    } else {
        memcpy(at + 4, m->src.ip, 16);
        memcpy(at + 20, m->dst.ip, 16);
    }
}

static void get_address(struct cm_address *address, bool v4, const uint8_t *at, uint16_t port)
{
    memset(address, 0, sizeof(*address));
    address->family = v4 ? AF_INET : AF_INET6;
    address->port = port;
    if (!v4) {
        memcpy(address->ip, at, 16);
        return;
    }
    address->ip[10] = address->ip[11] = 0xff;
    memcpy(address->ip + 12, at + 12, 4);
}

static const char *get_ip_header(struct mad_message *m, const uint8_t *at)
{
    uint8_t version = at[1] >> 4;

    if (m->service_id >> 32)
        return "a service that is not of rdma_cm";
    if (at[0] != 0 || (version != 4 && version != 6))
        return "a request without IP addresses";
    get_address(&m->message.src, version == 4, at + 4, bytes_get(at + 2, 2));
    get_address(&m->message.dst, version == 4, at + 20, m->service_id & 0xffff);
    return NULL;
}

/* ---- REQ ---- */

static void put_req(const struct mad_message *mad, uint8_t *at)
{
    const struct cm_message *m = &mad->message;

    bytes_put(at, 4, mad->local_id);
    bytes_put(at + 8, 8, mad->service_id);
    memcpy(at + 16, mad->local_gid + 8, 8); /* a GUID that is unique among the peer's peers */
    bytes_put(at + 32, 3, m->qpn);
    at[35] = m->responder_resources;
    at[39] = m->initiator_depth;
    at[43] = mad->response_timeout << 3 | m->service << 1 | (m->flow_control & 1);
    bytes_put(at + 44, 3, m->psn);
    at[47] = mad->response_timeout << 3 | (m->retry_count & 7);
    bytes_put(at + 48, 2, HCA_PKEY);
    at[50] = m->path_mtu << 4 | (m->rnr_retry_count & 7);
    at[51] = mad->max_retries << 4 | (m->srq & 1) << 3 | (m->service == 3); /* extended: XRC */
    bytes_put(at + 52, 2, 0xffff); /* permissive LIDs, as Ethernet has none */
    bytes_put(at + 54, 2, 0xffff);
    memcpy(at + 56, mad->local_gid, 16);
    memcpy(at + 72, mad->remote_gid, 16);
    at[91] = RATE_100_GBPS;
    at[93] = mad->hop_limit;
    at[94] = (mad->hop_limit <= 1) << 3;
    at[95] = m->ack_timeout << 3;
    put_ip_header(at + 140, m);
    memcpy(at + 140 + IP_HEADER, m->private_data, 92 - IP_HEADER);
}

static const char *get_req(struct mad_message *mad, const uint8_t *at)
{
    struct cm_message *m = &mad->message;

    mad->local_id = bytes_get(at, 4);
    mad->service_id = bytes_get(at + 8, 8);
    m->qpn = bytes_get(at + 32, 3);
    m->responder_resources = at[35];
    m->initiator_depth = at[39];
    m->service = at[43] >> 1 & 3;
    m->flow_control = at[43] & 1;
    m->psn = bytes_get(at + 44, 3);
    mad->response_timeout = at[47] >> 3;
    m->retry_count = at[47] & 7;
    m->path_mtu = at[50] >> 4;
    m->rnr_retry_count = at[50] & 7;
    mad->max_retries = at[51] >> 4;
    m->srq = at[51] >> 3 & 1;
    memcpy(mad->local_gid, at + 56, 16);
    memcpy(mad->remote_gid, at + 72, 16);
    mad->hop_limit = at[93];
    m->ack_timeout = at[95] >> 3;
    memcpy(m->private_data, at + 140 + IP_HEADER, 92 - IP_HEADER);
    return get_ip_header(mad, at + 140);
}

/* ---- the others ---- */

static void put_rep(const struct mad_message *mad, uint8_t *at)
{
    const struct cm_message *m = &mad->message;

    bytes_put(at + 12, 3, m->qpn);
    bytes_put(at + 20, 3, m->psn);
    at[24] = m->responder_resources;
    at[25] = m->initiator_depth;
    at[26] = m->flow_control & 1;
    at[27] = (m->rnr_retry_count & 7) << 5 | (m->srq & 1) << 4;
    memcpy(at + 28, mad->local_gid + 8, 8);
    memcpy(at + 36, m->private_data, 196);
}

static void get_rep(struct mad_message *mad, const uint8_t *at)
{
    struct cm_message *m = &mad->message;

    m->qpn = bytes_get(at + 12, 3);
    m->psn = bytes_get(at + 20, 3);
    m->responder_resources = at[24];
    m->initiator_depth = at[25];
    m->flow_control = at[26] & 1;
    m->rnr_retry_count = at[27] >> 5;
    m->srq = at[27] >> 4 & 1;
    memcpy(m->private_data, at + 36, 196);
}

static void put_rej(const struct mad_message *mad, uint8_t *at)
{
    at[8] = mad->about << 6;
    bytes_put(at + 10, 2, mad->message.reason);
    if (mad->message.reason ==
        REJECT_TIMEOUT) { /* the receiver may not know our id: add the GUID */
        at[9] = 8 << 1;
        memcpy(at + 12, mad->local_gid + 8, 8);
    }
    memcpy(at + 84, mad->message.private_data, 148);
}

static void get_rej(struct mad_message *mad, const uint8_t *at)
{
    mad->about = at[8] >> 6;
    mad->message.reason = bytes_get(at + 10, 2);
    memcpy(mad->message.private_data, at + 84, 148);
}

static void put_sidr_req(const struct mad_message *mad, uint8_t *at)
{
    bytes_put(at, 4, mad->local_id);
    bytes_put(at + 4, 2, HCA_PKEY);
    bytes_put(at + 8, 8, mad->service_id);
    put_ip_header(at + 16, &mad->message);
    memcpy(at + 16 + IP_HEADER, mad->message.private_data, 216 - IP_HEADER);
}

static const char *get_sidr_req(struct mad_message *mad, const uint8_t *at)
{
    mad->local_id = bytes_get(at, 4);
    mad->service_id = bytes_get(at + 8, 8);
    memcpy(mad->message.private_data, at + 16 + IP_HEADER, 216 - IP_HEADER);
    return get_ip_header(mad, at + 16);
}

/* The one id in a SIDR REP is that of the request. */
static void put_sidr_rep(const struct mad_message *mad, uint8_t *at)
{
    bytes_put(at, 4, mad->remote_id);
    at[4] = mad->message.reason;
    bytes_put(at + 8, 3, mad->message.qpn);
    bytes_put(at + 12, 8, mad->service_id);
    bytes_put(at + 20, 4, mad->message.qkey);
    memcpy(at + 96, mad->message.private_data, 136);
}

static void get_sidr_rep(struct mad_message *mad, const uint8_t *at)
{
    mad->remote_id = bytes_get(at, 4);
    mad->message.reason = at[4];
    mad->message.qpn = bytes_get(at + 8, 3);
    mad->service_id = bytes_get(at + 12, 8);
    mad->message.qkey = bytes_get(at + 20, 4);
    memcpy(mad->message.private_data, at + 96, 136);
}

/* ---- all ---- */

void mad_encode(const struct mad_message *m, uint8_t bytes[MAD_BYTES])
{
    uint8_t *at = bytes + HEADER_BYTES;

    memset(bytes, 0, MAD_BYTES);
    bytes[0] = BASE_VERSION;
    bytes[1] = CM_CLASS;
    bytes[2] = CLASS_VERSION;
    bytes[3] = METHOD_SEND;
    bytes_put(bytes + 8, 8, m->transaction);
    bytes_put(bytes + 16, 2, attributes[m->message.type]);
    bytes_put(at, 4, m->local_id);
    bytes_put(at + 4, 4, m->remote_id);
    switch (m->message.type) {
    case CM_MSG_REQ:
        bytes_put(at + 4, 4, 0);
        put_req(m, at);
        break;
    case CM_MSG_REP:
        put_rep(m, at);
        break;
    case CM_MSG_REJ:
        put_rej(m, at);
        break;
    case CM_MSG_MRA:
        at[8] = m->about << 6;
        at[9] = m->response_timeout << 3;
        break;
    case CM_MSG_DREQ:
        bytes_put(at + 8, 3, m->message.qpn);
        break;
    case CM_MSG_SIDR_REQ:
        put_sidr_req(m, at);
        break;
    case CM_MSG_SIDR_REP:
        bytes_put(at + 4, 4, 0);
        put_sidr_rep(m, at);
        break;
    }
}

static bool find_type(uint16_t attribute, uint32_t *type)
{
    for (*type = 0; *type < sizeof(attributes) / sizeof(attributes[0]); ++*type)
        if (attributes[*type] && attributes[*type] == attribute)
            return true;
    return false;
}

const char *mad_decode(struct mad_message *m, const uint8_t bytes[MAD_BYTES])
{
    const uint8_t *at = bytes + HEADER_BYTES;

    memset(m, 0, sizeof(*m));
    if (bytes[0] != BASE_VERSION || bytes[1] != CM_CLASS || bytes[2] != CLASS_VERSION ||
        bytes[3] != METHOD_SEND)
        return "not for the connection manager";
    if (!find_type(bytes_get(bytes + 16, 2), &m->message.type))
        return "of an unknown type";
    m->transaction = bytes_get(bytes + 8, 8);
    if (m->message.type == CM_MSG_REQ)
        return get_req(m, at);
    if (m->message.type == CM_MSG_SIDR_REQ)
        return get_sidr_req(m, at);
    if (m->message.type == CM_MSG_SIDR_REP) {
        get_sidr_rep(m, at);
        return NULL;
    }
    m->local_id = bytes_get(at, 4);
    m->remote_id = bytes_get(at + 4, 4);
    switch (m->message.type) {
    case CM_MSG_REP:
        get_rep(m, at);
        break;
    case CM_MSG_REJ:
        get_rej(m, at);
        break;
    case CM_MSG_MRA:
        m->about = at[8] >> 6;
        m->response_timeout = at[9] >> 3;
        break;
    case CM_MSG_DREQ:
        m->message.qpn = bytes_get(at + 8, 3);
        break;
    }
    return NULL;
}
