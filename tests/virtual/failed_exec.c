/* SPDX-License-Identifier: BSD-2-Clause */
/* exec that fails leaves a process and its threads as they were: in forked children, in those of vfork,
 * in a thread, and in a process with a queue pair, which still carries a message. In the end a thread
 * becomes another program, which says so. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHILDREN 8

extern char **environ;

static char *words[] = { "nothing", NULL };

static void fail(const char *what)
{
    printf("%s\n", what);
    exit(1);
}

static void check(int condition, const char *what)
{
    if (!condition)
        fail(what);
}

static void fail_to_exec(void)
{
    errno = 0;
    if (execve("/nonexistent/program", words, environ) != -1 || errno != ENOENT)
        _exit(4);
    errno = 0;
    if (execvp("verbena-nonexistent-program", words) != -1 || errno != ENOENT)
        _exit(5);
}

static void work_a_little(void)
{
    struct timespec now;

    for (volatile int i = 0; i < 2000000; i++)
        ;
    clock_gettime(CLOCK_MONOTONIC, &now);
    usleep(10);
}

static void await_child(pid_t pid, int wanted)
{
    int status;

    check(pid > 0, "no child");
    check(waitpid(pid, &status, 0) == pid, "waitpid");
    if (!WIFEXITED(status) || WEXITSTATUS(status) != wanted) {
        printf("a child ended with status %x\n", status);
        exit(1);
    }
}

static void run_children(void)
{
    for (int i = 0; i < CHILDREN; i++) {
        pid_t pid = i % 2 ? vfork() : fork(); /* which are the same in virtual time */

        if (!pid) {
            fail_to_exec();
            if (i < CHILDREN / 2)
                _exit(3);
            execlp("sh", "sh", "-c", "exit 3", NULL);
            _exit(6);
        }
        await_child(pid, 3);
    }
}

static void spawn_children(void)
{
    char *shell[] = { "sh", "-c", "exit 3", NULL };
    pid_t pid;

    check(posix_spawn(&pid, "/nonexistent/program", NULL, NULL, words, environ) == ENOENT,
          "posix_spawn of nothing");
    check(!posix_spawnp(&pid, "sh", NULL, NULL, shell, environ), "posix_spawnp");
    await_child(pid, 3);
}

static struct ibv_qp *connect_to_itself(struct ibv_pd *pd, struct ibv_cq *cq)
{
    struct ibv_qp_init_attr init = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
                                     .cap = { 4, 4, 1, 1, 0 } };
    struct ibv_qp *qp = ibv_create_qp(pd, &init);
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
    struct ibv_port_attr port;

    check(qp && !ibv_query_port(pd->context, 1, &port), "no queue pair");
    check(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                                        IBV_QP_ACCESS_FLAGS), "INIT");
    attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024,
                                 .dest_qp_num = qp->qp_num, .max_dest_rd_atomic = 1,
                                 .ah_attr = { .dlid = port.lid, .port_num = 1 } };
    check(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                        IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                                        IBV_QP_MIN_RNR_TIMER), "RTR");
    attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7,
                                 .max_rd_atomic = 1 };
    check(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                        IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                        IBV_QP_MAX_QP_RD_ATOMIC), "RTS");
    return qp;
}

static void send_after_failed_exec(struct ibv_context *context)
{
    static char buffer[16] = "hello";
    struct ibv_pd *pd = ibv_alloc_pd(context);
    struct ibv_cq *cq = ibv_create_cq(context, 8, NULL, NULL, 0);
    struct ibv_mr *mr = ibv_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE);
    struct ibv_qp *qp = connect_to_itself(pd, cq);
    struct ibv_sge to = { (uintptr_t)buffer + 8, 8, mr->lkey }, from = { (uintptr_t)buffer, 8, mr->lkey };
    struct ibv_recv_wr recv = { .sg_list = &to, .num_sge = 1 }, *bad_recv;
    struct ibv_send_wr send = { .sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND,
                                .send_flags = IBV_SEND_SIGNALED }, *bad_send;
    struct ibv_wc wc;

    check(!ibv_post_recv(qp, &recv, &bad_recv), "post_recv");
    fail_to_exec();
    check(!ibv_post_send(qp, &send, &bad_send), "post_send");
    for (int found = 0; found < 2;) {
        int n = ibv_poll_cq(cq, 1, &wc);

        check(n >= 0 && (!n || wc.status == IBV_WC_SUCCESS), "completion");
        found += n;
    }
    check(!strcmp(buffer + 8, "hello"), "another message");
}

static void *fail_in_thread(void *unused)
{
    for (int i = 0; i < 4; i++) {
        fail_to_exec();
        work_a_little();
    }
    return unused;
}

static void *become_another(void *unused)
{
    work_a_little();
    execlp("echo", "echo", "became another program", NULL);
    return unused;
}

int main(void)
{
    struct ibv_device **devices = ibv_get_device_list(NULL);
    pthread_t threads[2], last;

    check(devices && devices[0], "no device");
    run_children();
    spawn_children();
    for (int i = 0; i < 2; i++)
        check(!pthread_create(&threads[i], NULL, fail_in_thread, NULL), "no thread");
    work_a_little();
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    send_after_failed_exec(ibv_open_device(devices[0]));
    check(!pthread_create(&last, NULL, become_another, NULL), "no thread");
    pthread_join(last, NULL);
    return 2;
}
