/* SPDX-License-Identifier: BSD-2-Clause */
/* MCA parameters, one row each: "mtl_verbena_NAME" on Open MPI's command line and in its files. */
#include "mtl/mtl.h"
#include "mtl/parameter_rows.h"

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

#define ROW(name, default_value, minimum, maximum, help) \
    { #name, offsetof(struct mtl_parameters, name), default_value, minimum, maximum, help },

static const struct parameter numbers[] = { MTL_NUMBER_ROWS(ROW) };

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
    { "progress_thread", offsetof(struct mtl_parameters, progress_thread), false,
      "A thread that sleeps until a long message needs an answer while the program computes" },
    { "report", offsetof(struct mtl_parameters, report), false, "Print counters in MPI_Finalize" },
};

static const mca_base_var_enum_value_t eager_modes[] = {
    { EAGER_AUTO, "auto" }, { EAGER_SEND, "send" }, { EAGER_WRITE, "write" }, { 0, NULL }
};
static const mca_base_var_enum_value_t rendezvous_modes[] = { { RENDEZVOUS_AUTO, "auto" },
                                                              { RENDEZVOUS_WRITE, "write" },
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
    register_enum("rendezvous",
                  "Rendezvous over rails: the sender writes, or the receiver reads; auto: by adapter",
                  rendezvous_modes, RENDEZVOUS_AUTO, &mtl.parameters.rendezvous);
    register_policy();
    return OMPI_SUCCESS;
}

const struct rails_policy *parameters_policy(void)
{
    return rails_policies[mtl.parameters.policy];
}
