/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SIM_ENGINE_H
#define SIM_ENGINE_H

#include "hca/engine.h"

/* Virtual time: the adapter that VERBENA_ADAPTER names, simulated packet by packet. */
extern const struct hca_engine sim_engine;

/* What icm_host_bytes() counts: of the node's first adapter, and the CQs of this process. */
uint64_t sim_icm_host_bytes(void);

#endif
