/* SPDX-License-Identifier: BSD-2-Clause */
#include "data.h"

#include <stdlib.h>
#include <string.h>

uint64_t data_mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

uint64_t data_seed(int from, int to, uint64_t n)
{
    return data_mix((uint64_t)from << 40 ^ (uint64_t)to << 20 ^ data_mix(n));
}

void data_fill(void *buffer, size_t size, uint64_t seed)
{
    unsigned char *to = buffer;

    for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
        uint64_t word = data_mix(seed + at);

        memcpy(to + at, &word, size - at < sizeof(word) ? size - at : sizeof(word));
    }
}

bool data_is(const void *buffer, size_t size, uint64_t seed)
{
    const unsigned char *from = buffer;

    for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
        uint64_t word = data_mix(seed + at);

        if (memcmp(from + at, &word, size - at < sizeof(word) ? size - at : sizeof(word)))
            return false;
    }
    return true;
}

void expect_data(const void *buffer, size_t size, uint64_t seed, const char *what)
{
    expect(data_is(buffer, size, seed), "%s: wrong bytes in a message of %zu", what, size);
}

void expect_untouched(const void *buffer, size_t size, unsigned char byte, const char *what)
{
    const unsigned char *from = buffer;

    for (size_t i = 0; i < size; i++)
        expect(from[i] == byte, "%s: byte %zu beyond the message was written", what, i);
}

void expect_status(const MPI_Status *status, int source, int tag, size_t bytes)
{
    int count;

    MPI_Get_count(status, MPI_BYTE, &count);
    expect(status->MPI_SOURCE == source && status->MPI_TAG == tag && (size_t)count == bytes,
           "status says source %d, tag %d, %d bytes; it was %d, %d, %zu", status->MPI_SOURCE,
           status->MPI_TAG, count, source, tag, bytes);
}

void *allocate(size_t size)
{
    void *memory = malloc(size ? size : 1);

    expect(memory, "no memory for %zu bytes", size);
    return memory;
}
