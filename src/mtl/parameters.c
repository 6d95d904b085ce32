/* MCA parameters, one row each: "mtl_verbena_NAME" on Open MPI's command line and in its files. */
#include "mtl/mtl.h"
#include "mtl/wire.h"

#include <opal/mca/base/mca_base_var.h>
#include <opal/mca/base/mca_base_var_enum.h>

#include <stddef.h>

struct parameter {
    const char *name;
    size_t offset;
    int fallback;
    int minimum, maximum;
    const char *help;
};

#define ROW(name, fallback, minimum, maximum, help)                                    \
    {                                                                                  \
#name, offsetof(struct mtl_parameters, name), fallback, minimum, maximum, help \
    }

static const struct parameter numbers[] = {
    ROW(priority, 5, 0, 100, "Priority of this component among the MTLs"),
    ROW(ports, 0, 0, PORTS_MAX, "Ports of each device that are used; 0: all that are active"),
    ROW(qps, 1, 1, RAILS_MAX, "Queue pairs to each process on each port"),
    ROW(bind, -1, -1, RAILS_MAX - 1,
        "Rail of the policy 'binding', and of short messages of others; -1: that of a port, of "
        "which the processes of a host take one each in turn"),
    ROW(gid_index, -1, -1, 255, "Index of the GID that is used; -1: chosen by kind of network"),
    ROW(mtu, 0, 0, 4096, "Path MTU in bytes; 0: the port's"),
    ROW(eager_limit, 8192, 64, 1 << 20,
        "Longest message that is sent at once over rails, in bytes; longer ones are matched first"),
    ROW(shared_limit, 8192, 64, 32768,
        "Longest message that is copied through shared memory, in bytes"),
    ROW(together_from, 65536, 0, INT32_MAX,
        "Shortest message within a node that sender and receiver copy at the same time, in bytes; "
        "0: none"),
    ROW(stripe_threshold, RAILS_STRIPE_THRESHOLD, 1, INT32_MAX,
        "Shortest message that is divided among rails, in bytes"),
    ROW(minimum_stripe, RAILS_MINIMUM_STRIPE, 1, INT32_MAX,
        "Shortest piece of a divided message, in bytes"),
    ROW(stripe_cost, RAILS_STRIPE_COST_NS, 0, INT32_MAX,
        "What one more piece costs an adapter, in nanoseconds, for the policy 'adaptive'"),
    ROW(inline_limit, 128, 0, 1024, "Longest message that is posted with its data, in bytes"),
    ROW(window, 32, 4, 1024, "Messages under way on each rail"),
    ROW(signal_interval, 16, 1, 512, "Every so many messages have their completion taken"),
    ROW(active_qps, 0, 0, INT32_MAX,
        "Queue pairs of a port that the adapter can hold in its cache: with many processes fewer "
        "are used for each; 0: no limit"),
    ROW(registrations, 1024, 1, 1 << 20, "Registrations of user memory that are kept"),
    ROW(retry_count, 7, 0, 7, "Retries of the transport before a rail has failed"),
    ROW(timeout, 14, 0, 31, "Time between them, 4.096 us times 2 to this power"),
};

static const struct {
    const char *name;
    size_t offset;
    bool fallback;
    const char *help;
} switches[] = {
    { "shared", offsetof(struct mtl_parameters, shared), true,
      "Processes of the same node talk through shared memory" },
    { "single_copy", offsetof(struct mtl_parameters, single_copy), true,
      "Long messages within a node are copied straight from one process to the other" },
    { "report", offsetof(struct mtl_parameters, report), false, "Print counters when MPI ends" },
};

static const mca_base_var_enum_value_t eager_ways[] = {
    { EAGER_AUTO, "auto" }, { EAGER_SEND, "send" }, { EAGER_WRITE, "write" }, { 0, NULL }
};
static const mca_base_var_enum_value_t rendezvous_ways[] = { { RENDEZVOUS_WRITE, "write" },
                                                             { RENDEZVOUS_READ, "read" },
                                                             { 0, NULL } };

static int register_int(const char *name, const char *help, mca_base_var_enum_t *words, int *place)
{
    return mca_base_component_var_register(&mca_mtl_verbena_component.mtl_version, name, help,
                                           MCA_BASE_VAR_TYPE_INT, words, 0, 0, OPAL_INFO_LVL_3,
                                           MCA_BASE_VAR_SCOPE_READONLY, place);
}

static int register_words(const char *name, const char *help,
                          const mca_base_var_enum_value_t *values, int fallback, int *place)
{
    mca_base_var_enum_t *words;
    int index;

    *place = fallback;
    if (mca_base_var_enum_create(name, values, &words) != OPAL_SUCCESS)
        return OPAL_ERR_OUT_OF_RESOURCE;
    index = register_int(name, help, words, place);
    OBJ_RELEASE(words);
    return index;
}

static int register_policy(void)
{
    mca_base_var_enum_value_t values[16];
    int count = 0, fallback = 0;

    for (; rails_policies[count] && count < 15; count++) {
        values[count] = (mca_base_var_enum_value_t){ count, rails_policies[count]->name };
        if (!strcmp(rails_policies[count]->name, RAILS_DEFAULT_POLICY))
            fallback = count;
    }
    values[count] = (mca_base_var_enum_value_t){ 0, NULL };
    return register_words("policy", "How messages are scheduled over rails", values, fallback,
                          &mtl.parameters.policy);
}

static void keep_within(const struct parameter *row, int *value)
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
        int *place = (int *)(base + numbers[i].offset);

        *place = numbers[i].fallback;
        register_int(numbers[i].name, numbers[i].help, NULL, place);
        keep_within(&numbers[i], place);
    }
    for (size_t i = 0; i < ARRAY_SIZE(switches); i++) {
        bool *place = (bool *)(base + switches[i].offset);

        *place = switches[i].fallback;
        mca_base_component_var_register(&mca_mtl_verbena_component.mtl_version, switches[i].name,
                                        switches[i].help, MCA_BASE_VAR_TYPE_BOOL, NULL, 0, 0,
                                        OPAL_INFO_LVL_3, MCA_BASE_VAR_SCOPE_READONLY, place);
    }
    mtl.parameters.devices = "";
    mca_base_component_var_register(
        &mca_mtl_verbena_component.mtl_version, "devices",
        "Devices that are used: names with commas between, or how many; empty: all",
        MCA_BASE_VAR_TYPE_STRING, NULL, 0, 0, OPAL_INFO_LVL_3, MCA_BASE_VAR_SCOPE_READONLY,
        &mtl.parameters.devices);
    register_words("eager", "How short messages go over rails", eager_ways, EAGER_AUTO,
                   &mtl.parameters.eager);
    register_words("rendezvous", "How long messages go over rails", rendezvous_ways,
                   RENDEZVOUS_WRITE, &mtl.parameters.rendezvous);
    register_policy();
    return OMPI_SUCCESS;
}

const struct rails_policy *parameters_policy(void)
{
    return rails_policies[mtl.parameters.policy];
}
