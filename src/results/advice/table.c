/* SPDX-License-Identifier: BSD-2-Clause */
#include "advisers.h"

const struct adviser *const advisers[] = {
    &block_adviser,
    &inline_adviser,
    &registration_adviser,
    &register_adviser,
    &scatter_adviser,
    &queue_adviser,
    &spill_adviser,
    &region_adviser,
    &mtu_adviser,
    &window_adviser,
    &stripe_adviser,
    &signal_adviser,
    &loggp_adviser,
    &loggp_mpi_adviser,
    NULL,
};
