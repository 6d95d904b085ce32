/* Counters as MPI_T performance variables, and as text on request. */
#include "mtl/mtl.h"

#include <ompi/proc/proc.h>
#include <opal/mca/base/mca_base_pvar.h>

#include <stdio.h>

static const struct counter {
    const char *name;
    size_t offset;
    int count;
    const char *help;
} counters[] = {
#define COUNTER(name, count, help)                              \
    {                                                           \
#name, offsetof(struct mtl_counters, name), count, help \
    }
    COUNTER(class_messages, RAILS_CLASSES,
            "Messages sent: blocking, non-blocking, persistent, collective"),
    COUNTER(class_bytes, RAILS_CLASSES, "Their bytes"),
    COUNTER(rail_messages, RAILS_MAX, "Messages sent on each rail, control messages included"),
    COUNTER(rail_bytes, RAILS_MAX, "Bytes sent or read on each rail"),
    COUNTER(shared_messages, 1, "Messages sent through shared memory"),
    COUNTER(shared_bytes, 1, "Their bytes, without those copied straight from process to process"),
    COUNTER(helped_bytes, 1, "Bytes of its messages that this process copied for their receivers"),
    COUNTER(unexpected, 1, "Messages that came before they were asked for"),
    COUNTER(connections, 1, "Processes connected by rails"),
    COUNTER(registrations, 1, "Times that user memory was registered"),
    COUNTER(rail_failures, 1, "Rails that have failed"),
    COUNTER(rail_revivals, 1, "Rails that came up again"),
    COUNTER(repeated, 1, "Messages and pieces sent again after that"),
};

static int read_counter(const mca_base_pvar_t *variable, void *value, void *object)
{
    const struct counter *counter = variable->ctx;

    memcpy(value, (char *)&mtl.counters + counter->offset,
           counter->count * sizeof(unsigned long long));
    return OMPI_SUCCESS;
}

static int tell_count(mca_base_pvar_t *variable, mca_base_pvar_event_t event, void *object,
                      int *count)
{
    const struct counter *counter = variable->ctx;

    if (event == MCA_BASE_PVAR_HANDLE_BIND)
        *count = counter->count;
    return OMPI_SUCCESS;
}

void counters_register(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(counters); i++)
        mca_base_component_pvar_register(
            &mca_mtl_verbena_component.mtl_version, counters[i].name, counters[i].help,
            OPAL_INFO_LVL_4, MCA_BASE_PVAR_CLASS_COUNTER, MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG,
            NULL, MCA_BASE_VAR_BIND_NO_OBJECT,
            MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS, read_counter, NULL,
            tell_count, (void *)&counters[i]);
}

/* One line per counter that has counted, all of it in one write. */
void counters_report(void)
{
    char text[4096];
    int length = 0, room = sizeof(text);

    for (size_t i = 0; i < ARRAY_SIZE(counters); i++) {
        const unsigned long long *value =
            (unsigned long long *)((char *)&mtl.counters + counters[i].offset);
        int used = counters[i].count;

        while (used && !value[used - 1])
            used--;
        if (!used)
            continue;
        length += snprintf(text + length, room - length, "[verbena %u] %s", OMPI_PROC_MY_NAME->vpid,
                           counters[i].name);
        for (int k = 0; k < used && length < room; k++)
            length += snprintf(text + length, room - length, " %llu", value[k]);
        if (length < room)
            length += snprintf(text + length, room - length, "\n");
        if (length >= room)
            break;
    }
    fwrite(text, 1, length < room ? length : room - 1, stderr);
}
