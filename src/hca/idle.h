/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef HCA_IDLE_H
#define HCA_IDLE_H

/* A library may connect queue pairs but transfer data otherwise, for instance through shared
 * memory. Its user then takes the measurements for the adapter's. 'verbena run' asks for a warning
 * about idle queue pairs. */

#include "hca/objects.h"

/* A queue pair's first request. */
void idle_first_send(const struct hca_qp *qp);

/* A queue pair is about to be destroyed. */
void idle_note_end(const struct hca_qp *qp);

/* The process is about to leave the fabric. */
void idle_warn(void);

#endif
