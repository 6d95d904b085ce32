/* SPDX-License-Identifier: BSD-2-Clause */
#include "policies.h"

#include <stddef.h>

/* In the order of RAILS_POLICY_NAMES. */
const struct rails_policy *const rails_policies[] = {
    &rails_binding,
    &rails_round_robin,
    &rails_striping,
    &rails_weighted,
    &rails_epc,
    &rails_adaptive,
    NULL,
};
