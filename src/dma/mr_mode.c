/* SPDX-License-Identifier: BSD-2-Clause */
#include "dma/mr_mode.h"

#include "util/log.h"
#include "util/util.h"

#include <stdlib.h>
#include <string.h>

static enum mr_mode asked_mode(void)
{
    static const char *const words[] = {
        [MR_AUTO] = "auto", [MR_COPY] = "copy", [MR_SHARE] = "share"
    };
    const char *asked = getenv("VERBENA_MR");

    if (!asked || !*asked)
        return MR_AUTO;
    for (unsigned i = 0; i < ARRAY_SIZE(words); i++)
        if (!strcmp(asked, words[i]))
            return (enum mr_mode)i;
    log_warn("VERBENA_MR=%s: expected auto, copy or share; using auto", asked);
    return MR_AUTO;
}

enum mr_mode mr_mode(void)
{
    static _Atomic int known = -1;
    int mode = known;

    if (unlikely(mode < 0))
        known = mode = (int)asked_mode();
    return (enum mr_mode)mode;
}
