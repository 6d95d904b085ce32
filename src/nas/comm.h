/* SPDX-License-Identifier: BSD-2-Clause */
/* Wrappers of all MPI calls in the timed section. They account for time, messages and bytes, by
 * pattern. As in NPB, kernels use blocking sends, and blocking and non-blocking receives.
 *
 * A collective call counts as one message. Its bytes are what this rank contributes: the whole
 * vector of a reduction, or the parts of an exchange that go to other ranks.
 *
 * Failed calls end the job, by MPI's default error handler. */
#ifndef NAS_COMM_H
#define NAS_COMM_H

#include <mpi.h>
#include <stdint.h>

enum comm_pattern {
    COMM_BLOCKING_SEND,
    COMM_BLOCKING_RECEIVE,
    COMM_NONBLOCKING_RECEIVE,
    COMM_COLLECTIVE,
    COMM_PATTERNS,
};

struct comm_account {
    double seconds;
    uint64_t messages[COMM_PATTERNS];
    uint64_t bytes[COMM_PATTERNS];
};

const char *comm_pattern_name(enum comm_pattern pattern);

void comm_account_clear(void);
struct comm_account comm_account_now(void);

int comm_rank(MPI_Comm comm);
int comm_size(MPI_Comm comm);

void comm_send(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm);
void comm_recv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm);
void comm_irecv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                MPI_Request *request);
void comm_waitall(MPI_Request *requests, int count);

/* Both sum in place. */
void comm_allreduce(void *data, int count, MPI_Datatype type, MPI_Comm comm);
void comm_reduce(int root, void *data, int count, MPI_Datatype type, MPI_Comm comm);
void comm_allgather(const void *mine, int count, MPI_Datatype type, void *all, MPI_Comm comm);
void comm_alltoall(const void *out, int count, MPI_Datatype type, void *in, MPI_Comm comm);
void comm_alltoallv(const void *out, const int *out_counts, const int *out_starts, void *in,
                    const int *in_counts, const int *in_starts, MPI_Datatype type, MPI_Comm comm);

#endif
