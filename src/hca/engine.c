/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/engine.h"

const struct hca_engine *hca_engine;
atomic_uint hca_waiting;
