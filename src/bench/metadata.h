/* SPDX-License-Identifier: BSD-2-Clause */
/* Metadata of a measurement: machine, device and settings. */
#ifndef BENCH_METADATA_H
#define BENCH_METADATA_H

#include "bench/bench.h"

void metadata_of_machine(struct metadata *metadata);
void metadata_of_device(const struct adapter *adapter, bool software, struct metadata *metadata);

/* Adds the settings that differ from their defaults. */
void metadata_of_settings(const struct settings *settings, struct metadata *metadata);

#endif
