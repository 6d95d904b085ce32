/* SPDX-License-Identifier: BSD-2-Clause */
/* What was measured, and where. */
#ifndef BENCH_FACTS_H
#define BENCH_FACTS_H

#include "bench/bench.h"

void facts_of_machine(struct facts *facts);
void facts_of_device(const struct adapter *adapter, bool software, struct facts *facts);

/* The settings that differ from the fallbacks of their rows. */
void facts_of_settings(const struct settings *settings, struct facts *facts);

#endif
