/* SPDX-License-Identifier: BSD-2-Clause */
/* Request IDs: how a peer refers to a request or transfer of this process. A stale ID finds
 * nothing; 0 is never an ID. */
#ifndef MTL_REQUEST_ID_H
#define MTL_REQUEST_ID_H

#include <stdint.h>

enum request_id_kind { REQUEST_ID_FREE, REQUEST_ID_REQUEST, REQUEST_ID_TRANSFER };

/* Returns 0 if there is no memory. */
uint64_t request_id_new(enum request_id_kind kind, void *object);
void *request_id_find(enum request_id_kind kind, uint64_t id);
void request_id_free(uint64_t id);
void request_ids_each(void (*call)(enum request_id_kind kind, void *object, void *argument),
                      void *argument);
void request_ids_free(void);

#endif
