/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/wire.h"

#include "util/log.h"

#include <errno.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SPARE_COUNT 8

/* ---- buffers ---- */

static struct spinlock spare_lock;
static uint8_t *spare[SPARE_COUNT];
static unsigned spare_count;

static uint8_t *take_buffer(void)
{
    uint8_t *buffer = NULL;

    spin_lock(&spare_lock);
    if (spare_count)
        buffer = spare[--spare_count];
    spin_unlock(&spare_lock);
    return buffer ? buffer : malloc(WIRE_BATCH_BYTES);
}

static void give_buffer(uint8_t *buffer)
{
    spin_lock(&spare_lock);
    if (spare_count < SPARE_COUNT) {
        spare[spare_count++] = buffer;
        buffer = NULL;
    }
    spin_unlock(&spare_lock);
    free(buffer);
}

void wire_batch_forget(void)
{
    spare_lock = (struct spinlock){ 0 };
    spare_count = 0;
}

/* ---- sending ---- */

static void note_refusal(int err)
{
    static atomic_bool told;

    if (!atomic_exchange(&told, true))
        log_warn("wire: packets are lost, the kernel does not send them: %s", strerror(err));
}

static void put_segment(struct msghdr *message, uint16_t segment)
{
    struct cmsghdr *header = CMSG_FIRSTHDR(message);

    header->cmsg_level = IPPROTO_UDP;
    header->cmsg_type = UDP_SEGMENT;
    header->cmsg_len = CMSG_LEN(sizeof(segment));
    memcpy(CMSG_DATA(header), &segment, sizeof(segment));
}

/* Not libc's functions: a thread that is cancelled there would keep its locks. */
static long send_bytes(struct wire_batch *batch, uint16_t segment)
{
    union netif_address *to = &batch->to;
    char control[CMSG_SPACE(sizeof(segment))] = { 0 };
    struct iovec bytes = { batch->buffer, batch->bytes };
    struct msghdr message = { .msg_iov = &bytes, .msg_iovlen = 1 };
    int fd = batch->path ? batch->path->fd : wire_port_source(batch->from, to);

    if (batch->path && wire_path_cuts(batch->path, batch->bytes, segment))
        return syscall(SYS_sendto, fd, batch->buffer, batch->bytes, MSG_NOSIGNAL, NULL, 0);
    if (segment || batch->path) {
        message.msg_control = control;
        message.msg_controllen = sizeof(control);
        put_segment(&message, segment);
    }
    if (!batch->path) {
        message.msg_name = to;
        message.msg_namelen = to->any.sa_family == AF_INET ? sizeof(to->v4) : sizeof(to->v6);
    }
    return syscall(SYS_sendmsg, fd, &message, MSG_NOSIGNAL);
}

static bool send_datagram(struct wire_batch *batch, uint16_t segment)
{
    while (send_bytes(batch, segment) < 0) {
        if (errno == EINTR)
            continue;
        if (segment && (errno == EIO || errno == EINVAL || errno == ENOPROTOOPT))
            wire_port.segmentation = false; /* this device cannot: the frames are sent again */
        else
            note_refusal(errno);
        return false;
    }
    return true;
}

static void send_frames(struct wire_batch *batch)
{
    if (batch->frames) {
        bool sent = send_datagram(batch, batch->frames > 1 ? batch->frame_bytes : 0);

        if (batch->path)
            wire_path_release(batch->path, sent);
    }
    batch->bytes = 0;
    batch->frames = 0;
    batch->closed = false;
}

void wire_batch_begin(struct wire_batch *batch)
{
    batch->buffer = NULL; /* there may be nothing to send */
    batch->bytes = 0;
    batch->frames = 0;
    batch->closed = false;
}

void wire_batch_end(struct wire_batch *batch)
{
    if (!batch->buffer)
        return;
    send_frames(batch);
    give_buffer(batch->buffer);
}

static bool joins(const struct wire_batch *batch, const struct wire_gid *from,
                  const union netif_address *to, size_t length)
{
    return batch->frames && wire_port.segmentation && !batch->closed &&
           length <= batch->frame_bytes && batch->bytes + length <= WIRE_BATCH_BYTES &&
           batch->frames < WIRE_BATCH_FRAMES && batch->from == from &&
           !memcmp(&batch->to, to, sizeof(*to));
}

/* The kernel counts up from the identification of a datagram in the frames that it cuts from it.
 * From an unconnected socket, that is 0. */
uint8_t *wire_batch_frame(struct wire_batch *batch, const struct wire_gid *from,
                          const union netif_address *to, struct wire_path *path, size_t length,
                          uint16_t *identification)
{
    if (!batch->buffer && !(batch->buffer = take_buffer()))
        return NULL;
    if (!joins(batch, from, to, length)) {
        send_frames(batch);
        batch->frame_bytes = length;
        batch->from = from;
        batch->to = *to;
        batch->path = wire_path_take(path) ? path : NULL;
        batch->identification = batch->path ? path->identification : 0;
    }
    *identification = batch->identification + batch->frames;
    return batch->buffer + batch->bytes;
}

void wire_batch_add(struct wire_batch *batch, size_t length)
{
    batch->closed = length < batch->frame_bytes;
    batch->bytes += length;
    batch->frames++;
}
