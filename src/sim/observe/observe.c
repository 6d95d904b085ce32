#include "sim/observe/observe.h"

#include "hca/proc.h"
#include "hca/segment.h"
#include "sim/observe/pcap.h"
#include "sim/observe/trace.h"
#include "sim/model/world.h"
#include "util/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool observe_records;

static int read_faults(void)
{
    const char *text = getenv("VERBENA_FAULTS");
    char error[512];

    if (!text || !faults_read(text, &world->faults, error, sizeof(error)))
        return 0;
    log_error("%s", error);
    return EINVAL;
}

static int read_path(const char *variable, char *path)
{
    const char *text = getenv(variable);

    if (!text || snprintf(path, PATH_MAX, "%s", text) < PATH_MAX)
        return 0;
    log_error("%s: the name is too long", variable);
    return ENAMETOOLONG;
}

int observe_init(void)
{
    struct observe *inside = &world->inside;
    int error = read_faults();

    if (!error)
        error = read_path("VERBENA_TRACE", inside->trace);
    if (!error)
        error = read_path("VERBENA_PCAP", inside->pcap);
    if (!error)
        error = read_path("VERBENA_STATS_FILE", inside->stats);
    if (error)
        return error;
    stats_init(getenv("VERBENA_STATS"));
    world->explain.on = getenv("VERBENA_EXPLAIN");
    return world->explain.on ? explain_init() : 0;
}

int observe_join(bool first)
{
    struct observe *inside = &world->inside;
    int error = 0;

    inside->members[proc_self] = proc_word(proc_self);
    if (*inside->trace)
        error = trace_open(inside->trace, first);
    if (!error && *inside->pcap)
        error = pcap_open(inside->pcap, first);
    observe_records = trace_on || pcap_on;
    return error;
}

void observe_flush_files(void)
{
    if (trace_on)
        trace_flush();
    if (pcap_on)
        pcap_flush();
}

static bool others_stay(void)
{
    for (unsigned int i = 0; i < MAX_PROCS; i++) {
        uint32_t member = world->inside.members[i];

        if (member && proc_word_alive(member))
            return true;
    }
    return false;
}

static void write_stats(const char *path)
{
    FILE *file = fopen(path, "w");

    if (file)
        stats_write_json(file);
    if (!file || fclose(file))
        log_error("%s: %s", path, strerror(errno));
}

void observe_leave(void)
{
    if (!world)
        return;
    shm_lock(&seg->sim_lock);
    world->inside.members[proc_self] = 0;
    if (!others_stay()) {
        observe_flush();
        if (trace_on)
            trace_close();
        if (world->stats.on)
            stats_print(stderr);
        if (*world->inside.stats)
            write_stats(world->inside.stats);
        if (world->explain.on)
            explain_print(stderr);
    }
    shm_unlock(&seg->sim_lock);
}
