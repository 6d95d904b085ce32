/* SPDX-License-Identifier: BSD-2-Clause */
/* What the program's own processor does inside a timed section: copying and computing. Everything
 * goes through here because virtual time does not follow the processor and must be told. */
#ifndef BENCH_MEASURE_CPU_WORK_H
#define BENCH_MEASURE_CPU_WORK_H

#include <stddef.h>
#include <stdint.h>

void cpu_work_copy(void *to, const void *from, size_t size);

/* Copies 'count' contiguous blocks of 'size' bytes to destinations 'stride' bytes apart. */
void cpu_work_scatter(void *to, size_t stride, const void *from, size_t size, size_t count);

void cpu_work_compute(uint64_t ns);

#endif
