/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CM_EXPORTED_H
#define CM_EXPORTED_H

/* The library hides its names, except those that these headers declare. */
#pragma GCC visibility push(default)
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <rdma/rsocket.h>
#pragma GCC visibility pop

#endif
