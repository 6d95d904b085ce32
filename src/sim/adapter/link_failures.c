/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/adapter/link_failures.h"

#include "sim/adapter/parameters.h"

#include <stdio.h>
#include <string.h>

#define TEXT_BYTES 256

static bool read_one(const char *text, struct link_failure *out)
{
    char time[32];
    double ns;

    if (sscanf(text, "%31s %31s %31[^\n]", out->ends[0], out->ends[1], time) != 3 ||
        !parameters_time(time, &ns))
        return false;
    out->time = ns;
    return true;
}

int link_failures_read(const char *text, struct link_failure out[LINK_FAILURES_MAX], char *error,
                       size_t size)
{
    char copy[TEXT_BYTES], *rest = copy, *one;
    int count = 0;

    snprintf(copy, sizeof(copy), "%s", text);
    if (!strcmp(copy, "none"))
        return 0;
    while ((one = strsep(&rest, ","))) {
        if (count == LINK_FAILURES_MAX) {
            snprintf(error, size, "takes %d cables at most", LINK_FAILURES_MAX);
            return -1;
        }
        if (!read_one(one, &out[count++])) {
            snprintf(error, size,
                     "takes two switches and a time for each cable, such as 'leaf0 spine1 20 us', "
                     "not '%s'",
                     one);
            return -1;
        }
    }
    return count;
}
