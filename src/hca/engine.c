/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/engine.h"
#include "hca/observer.h"

const struct hca_engine *hca_engine;
const struct hca_mad_agent *hca_mad_agent;
const struct hca_observer *hca_observer;
bool hca_faults_seen;
atomic_uint hca_waiting;
