/* SPDX-License-Identifier: BSD-2-Clause */
/* All advisers, in the order of their output. */
#ifndef RESULTS_ADVICE_ADVISERS_H
#define RESULTS_ADVICE_ADVISERS_H

#include "advice.h"

extern const struct adviser block_adviser;
extern const struct adviser inline_adviser;
extern const struct adviser registration_adviser;
extern const struct adviser register_adviser;
extern const struct adviser scatter_adviser;
extern const struct adviser queue_adviser;
extern const struct adviser spill_adviser;
extern const struct adviser region_adviser;
extern const struct adviser mtu_adviser;
extern const struct adviser window_adviser;
extern const struct adviser stripe_adviser;
extern const struct adviser signal_adviser;
extern const struct adviser loggp_adviser;
extern const struct adviser loggp_mpi_adviser;

#endif
