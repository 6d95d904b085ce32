/* SPDX-License-Identifier: BSD-2-Clause */
/* UCX numbers its workers by process, time and address, and of two that connect to each other at
 * the same time the numbers decide who gives way. Here they are the same in every run. */
#include "sim/guest/guest.h"

#include <stdatomic.h>
#include <unistd.h>

uint64_t ucs_generate_uuid(uint64_t seed);

EXPORT uint64_t ucs_generate_uuid(uint64_t seed)
{
    static const uint64_t spread = 0x9e3779b97f4a7c15; /* odd: different numbers stay different */
    static atomic_uint workers;
    uint64_t ref = guest_on ? turns->number() : (uint32_t)getpid();

    return (ref << 32 | atomic_fetch_add(&workers, 1)) * spread;
}
