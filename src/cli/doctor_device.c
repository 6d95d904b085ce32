/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks of real adapters, and of the machine for measuring them. */
#include "doctor.h"
#include "probe.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define DEVICES  "/sys/class/infiniband"
#define GOVERNOR "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"

/* Enough for the suite's default sizes, and for queues. */
#define ENOUGH_BYTES (64ul << 20)

static int count_devices(void)
{
    DIR *directory = opendir(DEVICES);
    struct dirent *entry;
    int count = 0;

    while (directory && (entry = readdir(directory)))
        count += entry->d_name[0] != '.';
    if (directory)
        closedir(directory);
    return count;
}

struct ports {
    char text[400];
    int count;
    int active;
};

static void describe_port(const struct probe_port *port, void *context)
{
    struct ports *ports = context;
    size_t used = strlen(ports->text);

    snprintf(ports->text + used, sizeof(ports->text) - used, "%s%s port %u: %s, %s, %g Gb/s",
             ports->count++ ? "; " : "", port->device, port->port, port->state, port->link_layer,
             port->rate);
    ports->active += !strcmp(port->state, "active");
}

void doctor_check_real_devices(struct finding *finding)
{
    struct probe_target target = { .quiet = true };
    struct ports ports = { 0 };

    if (!count_devices()) {
        doctor_found(finding, VERDICT_NOTE, "none (" DEVICES " is absent or empty)");
        return;
    }
    probe_ports(&target, describe_port, &ports);
    if (!ports.count) {
        doctor_found(finding, VERDICT_NO, "none of them can be opened");
        doctor_remedy(
            finding,
            "load ib_uverbs, and give this user read and write access to /dev/infiniband/uverbs*");
        return;
    }
    doctor_found(finding, ports.active ? VERDICT_YES : VERDICT_NO, "%s", ports.text);
    if (!ports.active)
        doctor_remedy(
            finding,
            "no port is active: check the cable; for RoCE 'ip link', for InfiniBand whether a "
            "subnet manager runs");
}

/* The kernel applies the limit to pinned memory as it does to mlock(). */
static bool may_lock(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool locked;

    if (memory == MAP_FAILED)
        return false;
    locked = !mlock2(memory, bytes, MLOCK_ONFAULT);
    munmap(memory, bytes);
    return locked;
}

void doctor_check_memory_lock(struct finding *finding)
{
    bool real = count_devices() > 0;
    struct rlimit limit;

    getrlimit(RLIMIT_MEMLOCK, &limit);
    if (may_lock(ENOUGH_BYTES)) {
        doctor_found(finding, VERDICT_YES, "%lu MiB can be locked", ENOUGH_BYTES >> 20);
        return;
    }
    doctor_found(finding, real ? VERDICT_NO : VERDICT_NOTE,
                 "the limit is %llu KiB, too little for real devices%s",
                 (unsigned long long)limit.rlim_cur / 1024,
                 real ? "" : "; the software adapter locks no memory");
    if (real)
        doctor_remedy(
            finding,
            "'ulimit -l unlimited'; permanently: memlock in /etc/security/limits.conf; containers: "
            "'docker run --ulimit memlock=-1'");
}

void doctor_check_governor(struct finding *finding)
{
    FILE *file = fopen(GOVERNOR, "r");
    char name[64] = "";

    if (!file || fscanf(file, "%63s", name) != 1)
        doctor_found(finding, VERDICT_NOTE, "unknown: " GOVERNOR " is not readable");
    else if (!strcmp(name, "performance"))
        doctor_found(finding, VERDICT_YES, "performance");
    else
        doctor_found(finding, VERDICT_NOTE, "%s: latencies will include wake-up and clock changes",
                     name);
    if (finding->verdict == VERDICT_NOTE && *name)
        doctor_remedy(finding, "'cpupower frequency-set -g performance' while measuring");
    if (file)
        fclose(file);
}
