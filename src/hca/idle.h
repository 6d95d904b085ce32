#ifndef HCA_IDLE_H
#define HCA_IDLE_H

/* A library that finds a shorter way than the adapter, such as shared memory, connects queue pairs
 * and leaves them idle, and its user takes what is measured for the adapter's. 'verbena run' asks for
 * a warning about that. */

#include "hca/objects.h"

/* A queue pair's first request. */
void idle_first_send(const struct hca_qp *qp);

/* A queue pair is about to be destroyed. */
void idle_note_end(const struct hca_qp *qp);

/* The process is about to leave the fabric. */
void idle_warn(void);

#endif
