/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters as MPI_T performance variables, and as text on request. */
#include "mtl/device.h"
#include "mtl/mtl.h"

#include <ompi/proc/proc.h>
#include <opal/mca/base/mca_base_pvar.h>

#include <stdio.h>

static const struct counter {
    const char *name;
    size_t offset;
    int count; /* one for each rail, or 1 */
    const char *help;
} counters[] = {
#define COUNTER(name, count, help)                              \
    {                                                           \
#name, offsetof(struct mtl_counters, name), count, help \
    }
#define CLASS_COUNTERS(suffix, class, what)                                         \
    { "messages_" #suffix, offsetof(struct mtl_counters, class_messages[class]), 1, \
      "Messages sent: " what },                                                     \
    {                                                                               \
        "bytes_" #suffix, offsetof(struct mtl_counters, class_bytes[class]), 1,     \
            "Bytes of messages sent: " what                                         \
    }
#define RAIL_MESSAGES "Messages, control messages included, and RDMA"
#define RAIL_BYTES    "Bytes sent, read or written"
    CLASS_COUNTERS(blocking, RAILS_BLOCKING, "MPI_Send, MPI_Ssend"),
    CLASS_COUNTERS(nonblocking, RAILS_NONBLOCKING, "MPI_Isend and the like, buffered sends"),
    CLASS_COUNTERS(persistent, RAILS_PERSISTENT, "started persistent requests"),
    CLASS_COUNTERS(collective, RAILS_COLLECTIVE, "by collective operations"),
    COUNTER(puts, 1, "MPI_Put and MPI_Rput"),
    COUNTER(gets, 1, "MPI_Get and MPI_Rget"),
    COUNTER(accumulates, 1,
            "MPI_Accumulate, MPI_Get_accumulate, MPI_Fetch_and_op, MPI_Compare_and_swap"),
    COUNTER(rail_messages, RAILS_MAX, RAIL_MESSAGES),
    COUNTER(rail_bytes, RAILS_MAX, RAIL_BYTES),
    COUNTER(shared_messages, 1, "Messages sent through shared memory"),
    COUNTER(shared_bytes, 1,
            "Bytes of those messages, without data copied directly from process to process"),
    COUNTER(coop_copy_bytes, 1,
            "Bytes that this process, as the sender, copied into its receivers' memory"),
    COUNTER(thread_messages, 1, "Messages that the progress thread has handled"),
    COUNTER(unexpected, 1, "Messages that arrived before their receive was posted"),
    COUNTER(connections, 1, "Processes connected by rails"),
    COUNTER(registrations, 1, "Registrations of user memory"),
    COUNTER(rail_failures, 1, "Failures of rails"),
    COUNTER(rail_recoveries, 1, "Failed rails that were reconnected"),
    COUNTER(resent, 1, "Messages and stripes sent again after a failure"),
};

static int read_counter(const mca_base_pvar_t *variable, void *value, void *object)
{
    const struct counter *counter = variable->ctx;

    memcpy(value, (char *)&mtl.counters + counter->offset,
           counter->count * sizeof(unsigned long long));
    return OMPI_SUCCESS;
}

static void register_counter(const char *name, const char *help, const struct counter *counter)
{
    mca_base_component_pvar_register(
        &mca_mtl_verbena_component.mtl_version, name, help, OPAL_INFO_LVL_4,
        MCA_BASE_PVAR_CLASS_COUNTER, MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL,
        MCA_BASE_VAR_BIND_NO_OBJECT, MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS,
        read_counter, NULL, NULL, (void *)counter);
}

void counters_register(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(counters); i++) {
        if (counters[i].count == 1)
            register_counter(counters[i].name, counters[i].help, &counters[i]);
    }
}

static void register_rail(const char *what, const char *help, uint32_t rail, size_t offset)
{
    static struct counter of_rails[2 * RAILS_MAX];
    static uint32_t count;
    const struct path *path = &devices.path[rail % devices.path_count];
    char name[64 + IBV_SYSFS_NAME_MAX];

    if (count == ARRAY_SIZE(of_rails))
        return;
    snprintf(name, sizeof(name), "%s_rail%u_%s_port%u_qp%u", what, rail,
             ibv_get_device_name(path->device->context->device), path->port,
             rail / devices.path_count);
    of_rails[count] = (struct counter){ .offset = offset, .count = 1 };
    register_counter(name, help, &of_rails[count++]);
}

void counters_register_rails(void)
{
    uint32_t rails = mtl.parameters.qps * devices.path_count;

    for (uint32_t i = 0; i < rails && i < RAILS_MAX; i++) {
        register_rail("messages", RAIL_MESSAGES, i, offsetof(struct mtl_counters, rail_messages[i]));
        register_rail("bytes", RAIL_BYTES, i, offsetof(struct mtl_counters, rail_bytes[i]));
    }
}

/* One line for each counter that is not zero, all in one write. */
void counters_report(void)
{
    char text[4096];
    int length = 0, size = sizeof(text);

    for (size_t i = 0; i < ARRAY_SIZE(counters); i++) {
        const unsigned long long *value =
            (unsigned long long *)((char *)&mtl.counters + counters[i].offset);
        int used = counters[i].count;

        while (used && !value[used - 1])
            used--;
        if (!used)
            continue;
        length += snprintf(text + length, size - length, "[verbena %u] %s", OMPI_PROC_MY_NAME->vpid,
                           counters[i].name);
        for (int k = 0; k < used && length < size; k++)
            length += snprintf(text + length, size - length, " %llu", value[k]);
        if (length < size)
            length += snprintf(text + length, size - length, "\n");
        if (length >= size)
            break;
    }
    fwrite(text, 1, length < size ? length : size - 1, stderr);
}
