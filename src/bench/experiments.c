/* Every experiment, once. The order is that of 'verbena list experiments' and of the quick tour. */
#include "bench.h"

#define EACH(row) \
    row(qp_create) \
    row(qp_connect) \
    row(qp_destroy) \
    row(cq_create) \
    row(cq_destroy) \
    row(mr_reg) \
    row(mr_dereg) \
    row(post_send) \
    row(post_recv) \
    row(poll_hit) \
    row(poll_empty) \
    row(pd) \
    row(srq_create) \
    row(ah) \
    row(mw_bind) \
    row(latency) \
    row(bw) \
    row(bibw) \
    row(msg_rate) \
    row(cpu_util) \
    row(inline) \
    row(reuse_1) \
    row(reuse_2) \
    row(multi_qp) \
    row(multi_vi) \
    row(icm_qp) \
    row(icm_scatter) \
    row(icm_mtt) \
    row(host_memory) \
    row(hca_load) \
    row(incast) \
    row(all_to_all) \
    row(multi_thread) \
    row(multi_sge) \
    row(max_sge) \
    row(strided) \
    row(scatter) \
    row(align) \
    row(mtu) \
    row(service) \
    row(event) \
    row(signal) \
    row(srq) \
    row(sl) \
    row(registration_cache) \
    row(two_port) \
    row(hca_memory) \
    row(tcp) \
    row(mpi_latency) \
    row(mpi_bw) \
    row(mpi_bibw) \
    row(mpi_msg_rate) \
    row(mpi_overlap) \
    row(mpi_alltoall) \
    row(mpi_bcast) \
    row(mpi_allgather) \
    row(mpi_allreduce) \
    row(mpi_reduce_scatter) \
    row(mpi_barrier)

#define DECLARE(name) extern const struct experiment experiment_##name;
EACH(DECLARE)

#define LIST(name) &experiment_##name,
const struct experiment *const experiments[] = { EACH(LIST) NULL };
