/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/engine.h"

const struct hca_engine *hca_engine;
const struct hca_mad_agent *hca_mad_agent;
atomic_uint hca_waiting;
