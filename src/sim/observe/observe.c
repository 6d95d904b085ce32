/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/observe/observe.h"

#include "hca/proc.h"
#include "hca/segment.h"
#include "hca/shm_lock.h"
#include "sim/observe/pcap.h"
#include "sim/observe/output.h"
#include "sim/observe/trace.h"
#include "sim/model/observer.h"
#include "util/file.h"
#include "util/log.h"
#include "util/option.h"
#include "util/output_limit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct observe *observe;

static int read_path(const char *variable, char *path)
{
    const char *text = getenv(variable);

    if (!text || snprintf(path, PATH_MAX, "%s", text) < PATH_MAX)
        return 0;
    log_error("%s: path too long", variable);
    return ENAMETOOLONG;
}

static int read_limit(const char *variable, uint64_t *limit)
{
    const char *text = getenv(variable), *end;

    if (!text || !*text)
        text = OUTPUT_LIMIT;
    if (option_read_number(text, &end, limit) && !*end && *limit >= OUTPUT_LIMIT_MIN &&
        *limit <= OUTPUT_LIMIT_MAX)
        return 0;
    log_error("%s=%s: expected a number of bytes from %llu on", variable, text, OUTPUT_LIMIT_MIN);
    return EINVAL;
}

int observe_init(void)
{
    int error = read_path("VERBENA_TRACE", observe->trace);

    if (!error)
        error = read_limit("VERBENA_TRACE_LIMIT", &observe->trace_size.limit);
    if (!error)
        error = read_limit("VERBENA_PCAP_LIMIT", &observe->pcap_size.limit);
    if (!error)
        error = read_path("VERBENA_PCAP", observe->pcap);
    if (!error)
        error = read_path("VERBENA_STATS_FILE", observe->stats_file);
    if (!error)
        error = read_path("VERBENA_FAILURES", observe->failures);
    if (error)
        return error;
    stats_init(getenv("VERBENA_STATS"));
    observe->explain.on = getenv("VERBENA_EXPLAIN");
    return observe->explain.on ? explain_init() : 0;
}

static void wqe_done(const struct sim_wqe *wqe)
{
    if (observe->explain.on)
        explain_wqe(wqe);
    if (trace_on)
        trace_wqe(wqe);
}

int observe_join(bool first)
{
    int error = 0;

    observe->members[proc_self] = proc_word(proc_self);
    if (*observe->trace)
        error = trace_open(observe->trace, first);
    if (!error && *observe->pcap)
        error = pcap_open(observe->pcap, first);
    if (error)
        return error;
    model_observer = (struct model_observer){
        .server_busy = trace_on ? trace_busy : NULL,
        .packet_sent = pcap_on ? pcap_packet : NULL,
        .packet_done = trace_on ? trace_packet : NULL,
        .wqe_done = trace_on || observe->explain.on ? wqe_done : NULL,
    };
    return 0;
}

void observe_flush(void)
{
    if (unlikely(trace_on))
        trace_flush();
    if (unlikely(pcap_on))
        pcap_flush();
}

static bool others_stay(void)
{
    for (unsigned int i = 0; i < MAX_PROCS; i++) {
        uint32_t member = observe->members[i];

        if (member && proc_word_alive(member))
            return true;
    }
    return false;
}

static void write_stats(const char *path)
{
    struct file_text file;
    FILE *out = file_begin(&file);

    if (out)
        stats_write_json(out);
    if (!out || file_end(&file, path))
        output_failed(path, errno);
}

void observe_leave(void)
{
    if (!observe)
        return;
    shm_lock(&seg->sim_lock);
    observe->members[proc_self] = 0;
    if (!others_stay()) {
        observe_flush();
        if (trace_on)
            trace_close();
        if (observe->stats.on)
            stats_print(stderr);
        if (*observe->stats_file)
            write_stats(observe->stats_file);
        if (observe->explain.on)
            explain_print(stderr);
    }
    shm_unlock(&seg->sim_lock);
}
