#ifndef HCA_MR_H
#define HCA_MR_H

/* Registered memory: keys, ranges, and every check that stands before an access. */

#include "hca/objects.h"
#include "hca/table.h"

#include <sys/uio.h>

/* Where bytes are: in a process, or in the segment (device memory). */
enum place_kind { PLACE_PROCESS, PLACE_SEGMENT };

struct place {
    enum place_kind kind;
    unsigned proc;
    uint64_t addr; /* virtual address, or offset in the segment */
    uint64_t length;
};

struct shared_mr *mr_create(uint32_t pd, enum mr_kind kind, uint64_t addr, uint64_t iova,
                            uint64_t length, unsigned access, uint32_t *key);

/* After these no peer touches the memory any more. */
void mr_invalidate(struct shared_mr *mr);
void mr_destroy(struct shared_mr *mr);

/* Gives the entry a new tag and makes it valid. */
uint32_t mr_validate(struct shared_mr *mr, uint8_t tag);
uint8_t mr_next_tag(struct shared_mr *mr);

/* A local scatter/gather element of a queue whose PD is `pd` in process `proc`. */
bool mr_local(uint32_t lkey, unsigned proc, uint32_t pd, uint64_t addr, uint64_t length,
              bool for_writing, struct place *place);

/* A remote access through a QP (of type and number) whose PD is `pd` in process `proc`. */
bool mr_remote(uint32_t rkey, unsigned proc, uint32_t pd, uint32_t qpn, uint64_t addr,
               uint64_t length, unsigned access, struct place *place);

#endif
