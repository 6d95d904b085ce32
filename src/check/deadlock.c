/* SPDX-License-Identifier: BSD-2-Clause */
#include "check/deadlock.h"

#include "check/finding.h"
#include "check/guard.h"
#include "hca/epoch.h"
#include "hca/proc.h"
#include "hca/qp.h"
#include "hca/table.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define QPS_SHOWN 8

/* The port of an IPv4 or IPv6 address, -1: neither. */
static int port_of(const struct sockaddr_storage *address)
{
    if (address->ss_family == AF_INET)
        return ntohs(((const struct sockaddr_in *)address)->sin_port);
    if (address->ss_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *)address)->sin6_port);
    return -1;
}

static void describe_socket(int fd, char *text, size_t size)
{
    struct sockaddr_storage here, there;
    socklen_t length = sizeof(int), here_length = sizeof(here), there_length = sizeof(there);
    int listens = 0;

    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length);
    if (getsockname(fd, (struct sockaddr *)&here, &here_length) || port_of(&here) < 0)
        snprintf(text, size, ": descriptor %d, a socket", fd);
    else if (listens)
        snprintf(text, size, ": descriptor %d, which listens on port %d", fd, port_of(&here));
    else if (getpeername(fd, (struct sockaddr *)&there, &there_length))
        snprintf(text, size, ": descriptor %d, a socket on port %d", fd, port_of(&here));
    else
        snprintf(text, size, ": descriptor %d, connected from port %d to port %d", fd,
                 port_of(&here), port_of(&there));
}

static void describe_descriptor(int fd, char *text, size_t size)
{
    struct stat status;

    *text = '\0';
    if (fd < 0)
        return;
    if (fstat(fd, &status))
        snprintf(text, size, ": descriptor %d, which is closed", fd);
    else if (S_ISSOCK(status.st_mode))
        describe_socket(fd, text, size);
    else
        snprintf(text, size, ": descriptor %d%s", fd,
                 S_ISFIFO(status.st_mode)  ? ", a pipe"
                 : S_ISCHR(status.st_mode) ? ", a terminal or device"
                                           : "");
}

static uint32_t receives_posted(const struct hca_qp *qp)
{
    const struct shared_rq *rq = qp->rq.shared;

    return rq ? load_relaxed(&rq->posted) - load_relaxed(&rq->head) : 0;
}

/* The state of the QP that this one is connected to. */
static void describe_peer(const struct hca_qp *qp, char *text, size_t size)
{
    const struct shared_qp *peer = shared_qp_find(qp->attr.dest_qp_num);

    if (peer && load_relaxed(&peer->dest_qpn) == qp->ibv.qp_num && proc_alive(peer->proc))
        snprintf(text, size, "its peer is QP 0x%x of process %d, in %s", load_relaxed(&peer->qpn),
                 (int)proc_slot(peer->proc)->pid,
                 qp_state_name(load_relaxed(&peer->state)));
    else if (peer)
        qp_explain_silence(qp, text, size);
    else
        snprintf(text, size, "its peer, QP 0x%x at LID 0x%x, has been destroyed, or its process "
                 "has ended", qp->attr.dest_qp_num, qp->dest_lid);
}

static void note_qps(struct finding *finding)
{
    unsigned count = 0;

    pthread_mutex_lock(&qp_list_mutex);
    for (const struct hca_qp *qp = qp_list; qp; qp = qp->next) {
        enum ibv_qp_state state = qp_state(qp);
        char peer[160] = "";

        if (count++ >= QPS_SHOWN)
            continue;
        if (qp->ibv.qp_type != IBV_QPT_UD && state >= IBV_QPS_RTR) {
            epoch_enter();
            describe_peer(qp, peer, sizeof(peer));
            epoch_exit();
        }
        finding_note(finding, "QP 0x%x is in %s, %u sends and %u receives outstanding%s%s",
                     qp->ibv.qp_num, qp_state_name(state),
                     qp->sq_posted - load_relaxed(&qp->sq_freed), receives_posted(qp),
                     *peer ? "; " : "", peer);
    }
    pthread_mutex_unlock(&qp_list_mutex);
    if (count > QPS_SHOWN)
        finding_note(finding, "and %u more QPs", count - QPS_SHOWN);
}

void deadlock_report(uint64_t now, const char *what, int fd, bool outside)
{
    char descriptor[128];
    struct finding *finding;
    struct stacktrace here;

    guard_report();
    describe_descriptor(fd, descriptor, sizeof(descriptor));
    stacktrace_take(&here);
    finding = finding_begin("deadlock",
                            "at %.6f s of virtual time no thread can run and nothing is due; "
                            "thread %d of %s %s%s",
                            now / 1e9, (int)syscall(SYS_gettid), program_invocation_short_name,
                            what, descriptor);
    if (outside)
        finding_note(finding, DEADLOCK_OUTSIDE_NOTE);
    note_qps(finding);
    finding_stack(finding, "it waits here", &here);
    finding_end(finding);
}
