/* SPDX-License-Identifier: BSD-2-Clause */
/* UCX derives worker ids from process id, time and address; when two workers connect to each other
 * at once, the ids decide which side yields. Here the ids are the same in every run. */
#include "sim/guest/guest.h"

#include <stdatomic.h>
#include <unistd.h>

uint64_t ucs_generate_uuid(uint64_t seed);

EXPORT uint64_t ucs_generate_uuid(uint64_t seed)
{
    static const uint64_t spread = 0x9e3779b97f4a7c15; /* odd: the product stays unique */
    static atomic_uint workers;
    uint64_t id = guest_on ? vsched->guest_number() : (uint32_t)getpid();

    return (id << 32 | atomic_fetch_add(&workers, 1)) * spread;
}
