/* SPDX-License-Identifier: BSD-2-Clause */
/* Preloaded into MPI programs: makes calls fail. MPI_REFUSED is "rmid": a process that removes a System V
 * segment is killed before; "read": every other copy from
 * another process fails with EFAULT; "write": every copy to another process fails with EPERM;
 * "send": no connected QP takes a send; or "atomics": no device has any. */
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/shm.h>
#include <sys/uio.h>

typedef ssize_t (*copy_call)(pid_t, const struct iovec *, unsigned long, const struct iovec *,
                             unsigned long, unsigned long);

static int is_refused(const char *what)
{
    const char *refused = getenv("MPI_REFUSED");

    return refused && !strcmp(refused, what);
}

ssize_t process_vm_readv(pid_t pid, const struct iovec *here, unsigned long here_count,
                         const struct iovec *there, unsigned long there_count, unsigned long flags)
{
    copy_call copy = (copy_call)dlsym(RTLD_NEXT, "process_vm_readv");
    static unsigned int calls;

    if (is_refused("read") && ++calls % 2 == 0) {
        errno = EFAULT;
        return -1;
    }
    return copy(pid, here, here_count, there, there_count, flags);
}

ssize_t process_vm_writev(pid_t pid, const struct iovec *here, unsigned long here_count,
                          const struct iovec *there, unsigned long there_count, unsigned long flags)
{
    copy_call copy = (copy_call)dlsym(RTLD_NEXT, "process_vm_writev");

    if (is_refused("write")) {
        errno = EPERM;
        return -1;
    }
    return copy(pid, here, here_count, there, there_count, flags);
}

static int (*post_send)(struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **);

static int post_unless_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    if (qp->qp_type != IBV_QPT_RC || wr->opcode != IBV_WR_SEND)
        return post_send(qp, wr, bad);
    *bad = wr;
    return ENOMEM;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
    struct ibv_qp *(*create)(struct ibv_pd *, struct ibv_qp_init_attr *) =
        (struct ibv_qp * (*)(struct ibv_pd *, struct ibv_qp_init_attr *))
            dlsym(RTLD_NEXT, "ibv_create_qp");

    if (is_refused("send") && pd->context->ops.post_send != post_unless_send) {
        post_send = pd->context->ops.post_send;
        pd->context->ops.post_send = post_unless_send;
    }
    return create(pd, init);
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    int (*query)(struct ibv_context *, struct ibv_device_attr *) =
        (int (*)(struct ibv_context *, struct ibv_device_attr *))dlsym(RTLD_NEXT,
                                                                       "ibv_query_device");
    int err = query(context, attr);

    if (!err && is_refused("atomics"))
        attr->atomic_cap = IBV_ATOMIC_NONE;
    return err;
}

int shmctl(int id, int command, struct shmid_ds *buffer)
{
    int (*call)(int, int, struct shmid_ds *) =
        (int (*)(int, int, struct shmid_ds *))dlsym(RTLD_NEXT, "shmctl");

    if (command == IPC_RMID && is_refused("rmid"))
        raise(SIGKILL);
    return call(id, command, buffer);
}
