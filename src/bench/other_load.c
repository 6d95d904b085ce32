/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/other_load.h"

#include <math.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static double used_by(int who)
{
    struct rusage usage;

    if (getrusage(who, &usage))
        return NAN;
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* The first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal. Time that
 * the hypervisor gave to other machines counts as used by others. */
void other_load_read(struct other_load *out)
{
    FILE *file = fopen("/proc/stat", "r");
    double times[8], ticks = (double)sysconf(_SC_CLK_TCK);
    int count = 0;

    *out = (struct other_load){ .total = 0,
                                .busy = NAN,
                                .own = used_by(RUSAGE_SELF) + used_by(RUSAGE_CHILDREN) };
    if (file) {
        count = fscanf(file, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &times[0], &times[1], &times[2],
                       &times[3], &times[4], &times[5], &times[6], &times[7]);
        fclose(file);
    }
    if (count != 8)
        return;
    for (int i = 0; i < 8; i++)
        out->total += times[i] / ticks;
    out->busy = out->total - (times[3] + times[4]) / ticks;
}

double other_load_since(const struct other_load *since)
{
    struct other_load now;
    double share;

    other_load_read(&now);
    share = (now.busy - since->busy - (now.own - since->own)) / (now.total - since->total);
    return isfinite(share) ? fmin(fmax(share, 0), 1) : NAN;
}
