/* SPDX-License-Identifier: BSD-2-Clause */
/* Parameters that control experiments measure directly: the costs of calls. */
#ifndef CALIBRATE_CONTROL_H
#define CALIBRATE_CONTROL_H

#include "calibrate/data.h"
#include "calibrate/keys.h"

/* Sets the keys that the control experiments determine, and leaves those undetermined that
 * only a control experiment can tell; both are not varied any more. Returns how many it has set. */
unsigned int control_apply(const struct data *data, struct keys *keys);

/* The control experiment that measures a key, or NULL. */
const char *control_experiment_of(const char *key);

#endif
