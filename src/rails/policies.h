/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RAILS_POLICIES_H
#define RAILS_POLICIES_H

#include "rails.h"

extern const struct rails_policy rails_binding;
extern const struct rails_policy rails_round_robin;
extern const struct rails_policy rails_striping;
extern const struct rails_policy rails_weighted;
extern const struct rails_policy rails_epc;
extern const struct rails_policy rails_adaptive;

#endif
