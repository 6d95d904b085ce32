/* SPDX-License-Identifier: BSD-2-Clause */
/* Says why work requests and calls fail. */
#ifndef CHECK_EXPLAIN_H
#define CHECK_EXPLAIN_H

#include "hca/observer.h"

extern const struct hca_observer explain_observer;

#endif
