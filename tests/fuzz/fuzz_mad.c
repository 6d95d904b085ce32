/* SPDX-License-Identifier: BSD-2-Clause */
/* CM datagrams from the network: whatever decodes is encoded to a datagram with the same meaning.
 */
#include "cm/mad.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A datagram's length is fixed: shorter inputs are padded. The first bytes of each CM message are
 * given, so that the fuzzer need not guess them. */
static void make(uint8_t bytes[MAD_BYTES], const uint8_t *data, size_t size)
{
    memset(bytes, 0, MAD_BYTES);
    memcpy(bytes, "\1\7\2\3", 4);
    bytes[17] = 0x10 + data[0] % 16;
    size--;
    memcpy(bytes + 18, data + 1, size < MAD_BYTES - 18 ? size : MAD_BYTES - 18);
}

static void demand(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "violated: %s\n", what);
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *bytes = malloc(MAD_BYTES);
    struct mad_message m, again;

    if (size >= MAD_BYTES)
        mad_decode(&m, data);
    if (size && (make(bytes, data, size), !mad_decode(&m, bytes))) {
        demand(m.message.qpn <= 0xffffff && m.message.psn <= 0xffffff, "QPN and PSN have 24 bits");
        demand(!mad_is_request(&m) || m.message.dst.port == (m.service_id & 0xffff),
               "the port of a request is that of its service");
        mad_encode(&m, bytes);
        demand(!mad_decode(&again, bytes), "an encoded message decodes");
        demand(!memcmp(&m, &again, sizeof(m)), "encoding keeps the message");
    }
    free(bytes);
    return 0;
}
