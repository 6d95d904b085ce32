/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks of the installation: library, shared memory, processors. */
#include "doctor.h"
#include "launch.h"
#include "options.h"
#include "probe.h"
#include "probe_memory.h"
#include "segment.h"
#include "util/sysv_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define MEBIBYTE (1024.0 * 1024.0)
#define KIBIBYTE 1024.0
#define FEW_QPS  1000 /* less room than that deserves a remedy */

void doctor_check_library(struct finding *finding)
{
    struct launch launch;

    if (launch_find(&launch)) {
        doctor_found(finding, VERDICT_YES, "%s/libverbena.so", launch.directory);
        return;
    }
    doctor_found(finding, VERDICT_NO, "libverbena.so not found");
    doctor_remedy(finding, "build with 'make', or reinstall with 'make install'");
}

static void count_port(const struct probe_port *port, void *context)
{
    ++*(int *)context;
}

void doctor_check_preload(struct finding *finding)
{
    struct launch launch;
    struct probe_target target = { .launch = &launch };
    char fabric[64];
    int ports = 0, status;

    if (!launch_find(&launch)) {
        doctor_found(finding, VERDICT_NO, "libverbena.so not found");
        return;
    }
    snprintf(fabric, sizeof(fabric), "doctor-%d", getpid());
    setenv("VERBENA_FABRIC", fabric, 1);
    status = probe_ports(&target, count_port, &ports);
    segment_remove_unused();
    if (ports) {
        doctor_found(finding, VERDICT_YES, "a program started with it sees %d port%s", ports,
                     ports == 1 ? "" : "s");
        return;
    }
    doctor_found(finding, VERDICT_NO, "a program started with it sees no device (exit status %d)",
                 status);
    doctor_remedy(finding, "run 'verbena run --log debug -- ibv_devices' and read the log");
}

void doctor_check_dropins(struct finding *finding)
{
    struct launch launch;

    if (!launch_find(&launch)) {
        doctor_found(finding, VERDICT_NO, "libverbena.so not found");
    } else if (*launch.dropins) {
        doctor_found(finding, VERDICT_YES,
                     "%s defines every symbol version of the system's libraries", launch.dropins);
    } else {
        doctor_found(finding, VERDICT_NO, "%s; 'verbena run' uses LD_PRELOAD only",
                     launch.why_no_dropins);
        doctor_remedy(finding, "build on this machine, so that the drop-ins match its rdma-core");
    }
}

static bool can_create_in(const char *directory)
{
    char path[PATH_MAX];
    int fd;

    snprintf(path, sizeof(path), "%s/verbena-doctor-XXXXXX", directory);
    fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return false;
    unlink(path);
    close(fd);
    return true;
}

void doctor_check_shared_memory(struct finding *finding)
{
    const char *directory = segment_directory();
    struct statvfs status;
    struct probe_memory need;
    struct launch launch;
    double total, left, fit;

    if (statvfs(directory, &status) || !can_create_in(directory)) {
        doctor_found(finding, VERDICT_NO, "%s: %s", directory, strerror(errno));
        doctor_remedy(finding,
                      "set VERBENA_SHM_DIR to a writable directory, preferably on a tmpfs");
        return;
    }
    total = (double)status.f_blocks * status.f_frsize;
    left = (double)status.f_bavail * status.f_frsize;
    if (!launch_find(&launch) || !probe_memory(&launch, &need)) {
        doctor_found(finding, left > 0 ? VERDICT_NOTE : VERDICT_NO,
                     "%s: %.0f of %.0f MiB free; what a fabric needs could not be measured",
                     directory, left / MEBIBYTE, total / MEBIBYTE);
        return;
    }
    fit = left > need.fabric ? (left - need.fabric) / need.queue_pair : 0;
    doctor_found(finding, fit >= 1 ? VERDICT_YES : VERDICT_NO,
                 "%s: %.0f of %.0f MiB free; a fabric takes %.1f MiB, %.0f KiB more for each queue "
                 "pair (%d receives and a CQ) and %.0f bytes for each region: room for up to %.0f "
                 "idle queue pairs; busy ones take up to four times as much",
                 directory, left / MEBIBYTE, total / MEBIBYTE, need.fabric / MEBIBYTE,
                 need.queue_pair / KIBIBYTE, PROBE_RECEIVES, need.region, fit);
    if (fit < FEW_QPS)
        doctor_remedy(finding,
                      "enlarge it ('docker run --shm-size=1g', or remount the tmpfs with a "
                      "larger size=), or set VERBENA_SHM_DIR");
}

struct stale {
    int count;
    double bytes;
    char first[PATH_MAX];
};

static void count_stale(const char *path, void *context)
{
    struct stale *stale = context;
    struct stat status;

    if (segment_state_of(path) != SEGMENT_STALE || stat(path, &status))
        return;
    if (!stale->count++)
        snprintf(stale->first, sizeof(stale->first), "%s", path);
    stale->bytes += status.st_blocks * 512.0;
}

static void count_stale_sysv(int id, uint64_t bytes, void *context)
{
    struct stale *stale = context;

    if (!stale->count++)
        snprintf(stale->first, sizeof(stale->first), "System V segment %d", id);
    stale->bytes += bytes;
}

void doctor_check_stale_segments(struct finding *finding)
{
    struct stale stale = { 0 };

    segment_each(count_stale, &stale);
    sysv_memory_each_stale(count_stale_sysv, &stale);
    if (!stale.count) {
        doctor_found(finding, VERDICT_YES, "none: nothing to clean up");
        return;
    }
    doctor_found(finding, VERDICT_NOTE, "%d, %.1f MiB in total, for example %.300s", stale.count,
                 stale.bytes / MEBIBYTE, stale.first);
    doctor_remedy(finding, "'verbena clean' removes them");
}

void doctor_check_processors(struct finding *finding)
{
    cpu_set_t set;
    int count;

    CPU_ZERO(&set);
    count = sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);
    if (count > 1) {
        doctor_found(finding, VERDICT_YES, "%d processors", count);
        return;
    }
    doctor_found(finding, VERDICT_NO, "one processor: polling programs have to share it");
    doctor_remedy(finding,
                  "use two or more processors; with one, latencies are scheduler time slices");
}
