/* SPDX-License-Identifier: BSD-2-Clause */
/* MCA parameters, one row each: "mtl_verbena_NAME" on Open MPI's command line and in its files. */
#include "mtl/mtl.h"
#include "mtl/wire.h"

#include <opal/mca/base/mca_base_var.h>
#include <opal/mca/base/mca_base_var_enum.h>

#include <stddef.h>

struct parameter {
    const char *name;
    size_t offset;
    int default_value;
    int minimum, maximum;
    const char *help;
};

#define ROW(name, default_value, minimum, maximum, help)                                    \
    {                                                                                       \
#name, offsetof(struct mtl_parameters, name), default_value, minimum, maximum, help \
    }

static const struct parameter numbers[] = {
    ROW(priority, 5, 0, 100, "Priority of this component among the MTLs"),
    ROW(ports, 0, 0, PORTS_MAX, "Ports to use of each device; 0: all active ports"),
    ROW(qps, 1, 1, RAILS_MAX, "Queue pairs on each port to each process"),
    ROW(bind, -1, -1, RAILS_MAX - 1,
        "Rail of the policy 'binding', and of short messages of other policies; -1: the processes "
        "of a host are distributed over the ports"),
    ROW(gid_index, -1, -1, 255, "GID index; -1: chosen by link layer"),
    ROW(mtu, 0, 0, 4096, "Path MTU in bytes; 0: the active MTU of the port"),
    ROW(eager_limit, 8192, 64, 1 << 20,
        "Longest message sent eagerly over rails, in bytes; longer ones use rendezvous"),
    ROW(shared_memory_limit, 8192, 64, 32768,
        "Longest message copied through shared memory, in bytes"),
    ROW(coop_copy_min, 65536, 0, INT32_MAX,
        "Shortest message within a node that sender and receiver copy together, in bytes; 0: none"),
    ROW(stripe_threshold, RAILS_STRIPE_THRESHOLD, 1, INT32_MAX,
        "Shortest message that is striped over rails, in bytes"),
    ROW(minimum_stripe, RAILS_MINIMUM_STRIPE, 1, INT32_MAX,
        "Shortest piece of a striped message, in bytes"),
    ROW(stripe_cost, RAILS_STRIPE_COST_NS, 0, INT32_MAX,
        "Cost of one more piece for an adapter, in nanoseconds, for the policy 'adaptive'"),
    ROW(inline_limit, 128, 0, 1024, "Longest inline send, in bytes"),
    ROW(window, 32, 4, 1024, "Slots of each rail: messages in flight"),
    ROW(signal_interval, 16, 1, 512, "Messages per signaled completion"),
    ROW(active_qps, 0, 0, INT32_MAX,
        "Queue pair contexts that fit into the adapter's cache: jobs with many processes use fewer "
        "queue pairs for each; 0: no limit"),
    ROW(registrations, 1024, 1, 1 << 20, "Capacity of the registration cache for user memory"),
    ROW(retry_count, 7, 0, 7, "Transport retries before a rail fails"),
    ROW(timeout, 14, 0, 31, "Transport timeout: 4.096 us times 2 to this power"),
};

static const struct {
    const char *name;
    size_t offset;
    bool default_value;
    const char *help;
} switches[] = {
    { "shared_memory", offsetof(struct mtl_parameters, shared_memory), true,
      "Use shared memory between processes of a node" },
    { "single_copy", offsetof(struct mtl_parameters, single_copy), true,
      "Copy long messages within a node directly from process to process" },
    { "report", offsetof(struct mtl_parameters, report), false, "Print counters in MPI_Finalize" },
};

static const mca_base_var_enum_value_t eager_modes[] = {
    { EAGER_AUTO, "auto" }, { EAGER_SEND, "send" }, { EAGER_WRITE, "write" }, { 0, NULL }
};
static const mca_base_var_enum_value_t rendezvous_modes[] = { { RENDEZVOUS_WRITE, "write" },
                                                              { RENDEZVOUS_READ, "read" },
                                                              { 0, NULL } };

static int register_int(const char *name, const char *help, mca_base_var_enum_t *choices,
                        int *value)
{
    return mca_base_component_var_register(&mca_mtl_verbena_component.mtl_version, name, help,
                                           MCA_BASE_VAR_TYPE_INT, choices, 0, 0, OPAL_INFO_LVL_3,
                                           MCA_BASE_VAR_SCOPE_READONLY, value);
}

static int register_enum(const char *name, const char *help,
                         const mca_base_var_enum_value_t *values, int default_value, int *value)
{
    mca_base_var_enum_t *choices;
    int index;

    *value = default_value;
    if (mca_base_var_enum_create(name, values, &choices) != OPAL_SUCCESS)
        return OPAL_ERR_OUT_OF_RESOURCE;
    index = register_int(name, help, choices, value);
    OBJ_RELEASE(choices);
    return index;
}

static int register_policy(void)
{
    mca_base_var_enum_value_t values[16];
    int count = 0, default_value = 0;

    for (; rails_policies[count] && count < 15; count++) {
        values[count] = (mca_base_var_enum_value_t){ count, rails_policies[count]->name };
        if (!strcmp(rails_policies[count]->name, RAILS_DEFAULT_POLICY))
            default_value = count;
    }
    values[count] = (mca_base_var_enum_value_t){ 0, NULL };
    return register_enum("policy", "Rail scheduling policy", values, default_value,
                         &mtl.parameters.policy);
}

static void clamp(const struct parameter *row, int *value)
{
    if (*value < row->minimum)
        *value = row->minimum;
    if (*value > row->maximum)
        *value = row->maximum;
}

int parameters_register(void)
{
    char *base = (char *)&mtl.parameters;

    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
        int *value = (int *)(base + numbers[i].offset);

        *value = numbers[i].default_value;
        register_int(numbers[i].name, numbers[i].help, NULL, value);
        clamp(&numbers[i], value);
    }
    for (size_t i = 0; i < ARRAY_SIZE(switches); i++) {
        bool *value = (bool *)(base + switches[i].offset);

        *value = switches[i].default_value;
        mca_base_component_var_register(&mca_mtl_verbena_component.mtl_version, switches[i].name,
                                        switches[i].help, MCA_BASE_VAR_TYPE_BOOL, NULL, 0, 0,
                                        OPAL_INFO_LVL_3, MCA_BASE_VAR_SCOPE_READONLY, value);
    }
    mtl.parameters.devices = "";
    mca_base_component_var_register(
        &mca_mtl_verbena_component.mtl_version, "devices",
        "Devices to use: a comma-separated list of names, or their number; empty: all",
        MCA_BASE_VAR_TYPE_STRING, NULL, 0, 0, OPAL_INFO_LVL_3, MCA_BASE_VAR_SCOPE_READONLY,
        &mtl.parameters.devices);
    register_enum("eager",
                  "Eager messages over rails: sent, or written into polled slots; auto: by adapter",
                  eager_modes, EAGER_AUTO, &mtl.parameters.eager);
    register_enum("rendezvous", "Rendezvous over rails: the sender writes, or the receiver reads",
                  rendezvous_modes, RENDEZVOUS_WRITE, &mtl.parameters.rendezvous);
    register_policy();
    return OMPI_SUCCESS;
}

const struct rails_policy *parameters_policy(void)
{
    return rails_policies[mtl.parameters.policy];
}
