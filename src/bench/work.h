/* What the program itself does inside timed sections, in one place: a clock that does not follow
 * the processor has to be told of it. */
#ifndef BENCH_WORK_H
#define BENCH_WORK_H

#include <stddef.h>
#include <stdint.h>

void work_copy(void *to, const void *from, size_t size);

/* Copies 'count' pieces of 'size' bytes, which lie one after the other, to places 'stride' bytes
 * apart. */
void work_scatter(void *to, size_t stride, const void *from, size_t size, size_t count);

/* Computes for so long. */
void work_compute(uint64_t ns);

#endif
