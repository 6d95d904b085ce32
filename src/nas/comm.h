/* Every MPI call that a kernel makes in its timed section goes through here and is accounted for:
 * the time it took, and by pattern the messages and their bytes. The kernels send as NPB does, by
 * blocking calls, and receive by blocking and non-blocking ones.
 *
 * A collective call counts as one message. Its bytes are what this rank contributes: the whole
 * vector of a reduction, or the parts of an exchange that go to other ranks.
 *
 * MPI's own error handler ends the job with the reason when a call fails. */
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
void comm_receive(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm);
void comm_receive_begin(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                        MPI_Request *request);
void comm_wait(MPI_Request *requests, int count);

void comm_sum_all(void *data, int count, MPI_Datatype type, MPI_Comm comm);
void comm_sum_to(int root, void *data, int count, MPI_Datatype type, MPI_Comm comm);
void comm_gather_all(const void *mine, int count, MPI_Datatype type, void *all, MPI_Comm comm);
void comm_exchange_all(const void *out, int count, MPI_Datatype type, void *in, MPI_Comm comm);
void comm_exchange_all_uneven(const void *out, const int *out_counts, const int *out_starts,
                              void *in, const int *in_counts, const int *in_starts,
                              MPI_Datatype type, MPI_Comm comm);

#endif
