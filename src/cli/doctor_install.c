/* Checks of the place: library, shared memory, processors. */
#include "doctor.h"
#include "launch.h"
#include "options.h"
#include "probe.h"
#include "segment.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define MEGABYTE           (1024.0 * 1024.0)
#define COMFORTABLE_MEMORY (64 * MEGABYTE)

void doctor_check_library(struct finding *finding)
{
    struct launch launch;

    if (launch_find(&launch)) {
        doctor_found(finding, VERDICT_YES, "%s/libverbena.so", launch.directory);
        return;
    }
    doctor_found(finding, VERDICT_NO, "libverbena.so is not beside this command");
    doctor_remedy(finding, "build with 'make', or install again with 'make install'");
}

static void count_port(const struct probe_port *port, void *context)
{
    ++*(int *)context;
}

void doctor_check_preload(struct finding *finding)
{
    struct launch launch;
    struct probe_place place = { .launch = &launch };
    char fabric[64];
    int ports = 0, status;

    if (!launch_find(&launch)) {
        doctor_found(finding, VERDICT_NO, "there is no library to load");
        return;
    }
    snprintf(fabric, sizeof(fabric), "doctor-%d", getpid());
    setenv("VERBENA_FABRIC", fabric, 1);
    status = probe_ports(&place, count_port, &ports);
    segment_remove_unused();
    if (ports) {
        doctor_found(finding, VERDICT_YES, "a program started with it sees %d port%s", ports,
              ports == 1 ? "" : "s");
        return;
    }
    doctor_found(finding, VERDICT_NO, "a program started with it sees no device (exit status %d)", status);
    doctor_remedy(finding, "run 'verbena run --log debug -- ibv_devices' and read what the library says");
}

void doctor_check_dropins(struct finding *finding)
{
    struct launch launch;

    if (!launch_find(&launch)) {
        doctor_found(finding, VERDICT_NO, "there is no library to load");
    } else if (*launch.dropins) {
        doctor_found(finding, VERDICT_YES, "%s has every version the system's libraries define",
              launch.dropins);
    } else {
        doctor_found(finding, VERDICT_NO, "%s; 'verbena run' uses the preload alone",
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
    double total, left;

    if (statvfs(directory, &status) || !can_create_in(directory)) {
        doctor_found(finding, VERDICT_NO, "%s: %s", directory, strerror(errno));
        doctor_remedy(finding, "name a writable directory, best on a tmpfs, in VERBENA_SHM_DIR");
        return;
    }
    total = (double)status.f_blocks * status.f_frsize;
    left = (double)status.f_bavail * status.f_frsize;
    doctor_found(finding, left > 0 ? VERDICT_YES : VERDICT_NO, "%s: %.0f of %.0f MiB free", directory,
          left / MEGABYTE, total / MEGABYTE);
    if (left < COMFORTABLE_MEMORY)
        doctor_remedy(finding, "give it more room ('docker run --shm-size', or remount the tmpfs with a "
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

void doctor_check_stale_segments(struct finding *finding)
{
    struct stale stale = { 0 };

    segment_each(count_stale, &stale);
    if (!stale.count) {
        doctor_found(finding, VERDICT_YES, "none: nothing to clean up");
        return;
    }
    doctor_found(finding, VERDICT_NOTE, "%d, %.1f MiB, the first %.300s", stale.count,
          stale.bytes / MEGABYTE, stale.first);
    doctor_remedy(finding, "the next program on that fabric takes it over; or remove the file");
}

void doctor_check_memfd(struct finding *finding)
{
    int fd = memfd_create("verbena-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0) {
        doctor_found(finding, VERDICT_NO, "memfd_create: %s", strerror(errno));
        doctor_remedy(finding, "allow memfd_create in the container's seccomp profile");
        return;
    }
    close(fd);
    doctor_found(finding, VERDICT_YES, "memfd_create works");
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
    doctor_found(finding, VERDICT_NO, "one processor: two programs that poll take turns on it");
    doctor_remedy(finding, "expect latencies of scheduler time slices, or give it a second processor");
}
