/* SPDX-License-Identifier: BSD-2-Clause */
/* The component as Open MPI sees it. It works only together with the MTL. */
#include "osc/osc.h"

#include <opal/mca/base/mca_base_var.h>

static int priority = 120; /* above those of osc/rdma, osc/sm and osc/pt2pt */
static int node_priority = 50;

static int component_register(void)
{
    const mca_base_component_t *self = &mca_osc_verbena_component.osc_version;

    mca_base_component_var_register(self, "priority", "Priority of this component",
                                    MCA_BASE_VAR_TYPE_INT, NULL, 0, 0, OPAL_INFO_LVL_3,
                                    MCA_BASE_VAR_SCOPE_READONLY, &priority);
    mca_base_component_var_register(
        self, "node_priority",
        "Priority for windows within a node, where Open MPI has components that use shared memory",
        MCA_BASE_VAR_TYPE_INT, NULL, 0, 0, OPAL_INFO_LVL_3, MCA_BASE_VAR_SCOPE_READONLY,
        &node_priority);
    return OMPI_SUCCESS;
}

static int component_init(bool progress_threads, bool mpi_threads)
{
    return OMPI_SUCCESS;
}

static int component_finalize(void)
{
    osc_copies_free();
    return OMPI_SUCCESS;
}

static bool within_node(ompi_communicator_t *comm)
{
    for (int i = 0; i < ompi_comm_size(comm); i++) {
        if (!OPAL_PROC_ON_LOCAL_NODE(ompi_comm_peer_lookup(comm, i)->super.proc_flags))
            return false;
    }
    return true;
}

/* In virtual time, copies through shared memory would take no time. */
static int component_query(struct ompi_win_t *win, void **base, size_t size, int disp_unit,
                           struct ompi_communicator_t *comm, struct opal_info_t *info, int flavor)
{
    if (flavor == MPI_WIN_FLAVOR_SHARED || !mtl.module.mtl_send || !rma_supported())
        return -1;
    return !vtime.on && within_node(comm) ? node_priority : priority;
}

static int component_select(struct ompi_win_t *win, void **base, size_t size, int disp_unit,
                            struct ompi_communicator_t *comm, struct opal_info_t *info, int flavor,
                            int *model)
{
    *model = MPI_WIN_UNIFIED;
    return osc_window_create(win, base, size, disp_unit, comm, flavor);
}

__attribute__((visibility("default"))) ompi_osc_base_component_2_0_0_t mca_osc_verbena_component = {
    .osc_version = {
        OMPI_OSC_BASE_VERSION_3_0_0,
        .mca_component_name = "verbena",
        MCA_BASE_MAKE_VERSION(component, VERBENA_MAJOR, VERBENA_MINOR, VERBENA_PATCH),
        .mca_register_component_params = component_register,
    },
    .osc_data = { MCA_BASE_METADATA_PARAM_NONE },
    .osc_init = component_init,
    .osc_query = component_query,
    .osc_select = component_select,
    .osc_finalize = component_finalize,
};
