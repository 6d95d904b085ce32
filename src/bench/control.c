/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/control.h"
#include "bench/patience.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAGIC   0x56424e41u /* "VBNA" */
#define POLL_MS 200         /* interval of checks for an interrupt */

enum frame_kind {
    FRAME_HANDSHAKE,
    FRAME_HANDSHAKE_REPLY,
    FRAME_DATA,
    FRAME_ALL,
    FRAME_FAIL,
    FRAME_END,
};

struct frame {
    uint32_t magic;
    uint16_t kind;
    uint16_t status; /* of FRAME_FAIL */
    uint32_t length;
};

static int send_all(int fd, const void *data, size_t size)
{
    const char *next = data;

    while (size) {
        ssize_t sent = send(fd, next, size, MSG_NOSIGNAL);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return -1;
        next += sent;
        size -= sent;
    }
    return 0;
}

static int frame_send(int fd, enum frame_kind kind, enum control_status status, const void *data,
                      size_t size)
{
    struct frame frame = {
        .magic = MAGIC, .kind = kind, .status = status, .length = (uint32_t)size
    };

    return send_all(fd, &frame, sizeof(frame)) || (size && send_all(fd, data, size)) ? -1 : 0;
}

/* A 'limit_s' of 0 waits forever. */
struct waiting {
    unsigned int limit_s;
    bool (*stopped)(void);
};

/* Waits until the socket is readable or closed. Returns 0, or -1 with errno ETIMEDOUT, or ECANCELED
 * if the user wants to stop. */
static int wait_readable(int fd, const struct waiting *waiting)
{
    uint64_t start = patience_now();

    for (;;) {
        struct pollfd ready = { .fd = fd, .events = POLLIN };
        int count;

        if (waiting->stopped && waiting->stopped()) {
            errno = ECANCELED;
            return -1;
        }
        count = poll(&ready, 1, POLL_MS);
        if (count > 0)
            return 0;
        if (count < 0 && errno != EINTR)
            return -1;
        if (waiting->limit_s && patience_is_over(start, waiting->limit_s * 1000000000ull)) {
            errno = ETIMEDOUT;
            return -1;
        }
    }
}

/* Returns 0, or -1 with an errno of wait_readable(), or ECONNRESET if the peer is gone. */
static int receive_all(int fd, void *data, size_t size, const struct waiting *waiting)
{
    char *next = data;

    while (size) {
        ssize_t got;

        if (wait_readable(fd, waiting))
            return -1;
        got = recv(fd, next, size, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            errno = ECONNRESET;
            return -1;
        }
        next += got;
        size -= got;
    }
    return 0;
}

/* Ranks other than 0 wait without a limit while rank 0 works. If it dies, its sockets close. */
static struct waiting waiting_of(const struct control *control)
{
    return (struct waiting){ .limit_s = control->rank ? 0 : control->timeout_s,
                             .stopped = control->stopped };
}

static void note(struct control *control, enum control_status status, const char *text)
{
    if (control->status != CONTROL_OK)
        return;
    control->status = status;
    snprintf(control->text, sizeof(control->text), "%s", text);
}

/* Adds another rank's information about a recorded failure. */
static void append(struct control *control, const char *text)
{
    size_t used = strlen(control->text);

    if (!strstr(control->text, text))
        snprintf(control->text + used, sizeof(control->text) - used, "; %s", text);
}

static void tell(struct control *control)
{
    size_t length = strlen(control->text);

    if (control->rank)
        frame_send(control->fd[0], FRAME_FAIL, control->status, control->text, length);
    for (int i = 1; !control->rank && i < control->ranks; i++)
        frame_send(control->fd[i], FRAME_FAIL, control->status, control->text, length);
}

void control_fail(struct control *control, enum control_status status, const char *text)
{
    if (control->status != CONTROL_OK)
        return;
    note(control, status, text);
    tell(control);
}

void control_add_reason(struct control *control, const char *text)
{
    if (control->rank)
        frame_send(control->fd[0], FRAME_FAIL, control->status, text, strlen(text));
    else
        append(control, text);
}

void control_interrupt(struct control *control)
{
    char text[CONTROL_TEXT_MAX];

    if (!control->rank) {
        control_fail(control, CONTROL_INTERRUPTED, "interrupted");
        return;
    }
    snprintf(text, sizeof(text), "process %d: interrupted", control->rank);
    control_fail(control, CONTROL_FAILED, text);
}

/* Reports a failed wait, by errno. */
static int lost(struct control *control, int rank)
{
    char text[CONTROL_TEXT_MAX];

    if (errno == ECANCELED) {
        control_interrupt(control);
        return -1;
    }
    if (errno == ETIMEDOUT)
        snprintf(text, sizeof(text), "no message from process %d for %u s", rank,
                 control->timeout_s);
    else
        snprintf(text, sizeof(text), "lost process %d", rank);
    control_fail(control, CONTROL_FAILED, text);
    return -1;
}

/* Receives the body of a FRAME_FAIL. Rank 0 forwards it. */
static int take_failure(struct control *control, int fd, const struct frame *frame)
{
    struct waiting waiting = { .limit_s = control->timeout_s };
    enum control_status status = frame->status;
    char text[CONTROL_TEXT_MAX] = "";

    if (frame->length >= sizeof(text) || receive_all(fd, text, frame->length, &waiting))
        strcpy(text, "the peer failed");
    if (control->status != CONTROL_OK) {
        append(control, text);
        return -1;
    }
    note(control, status > CONTROL_OK && status <= CONTROL_INTERRUPTED ? status : CONTROL_FAILED,
         text);
    if (!control->rank)
        tell(control);
    return -1;
}

/* Waits for a frame of that kind and exactly that size. */
static int frame_receive(struct control *control, int rank, enum frame_kind kind, void *data,
                         size_t size)
{
    struct waiting waiting = waiting_of(control);
    int fd = control->fd[rank];
    struct frame frame;

    if (receive_all(fd, &frame, sizeof(frame), &waiting))
        return lost(control, rank);
    if (frame.magic == MAGIC && frame.kind == FRAME_FAIL)
        return take_failure(control, fd, &frame);
    if (frame.magic != MAGIC || frame.kind != kind || frame.length != size) {
        control_fail(control, CONTROL_FAILED,
                     "protocol error: the processes of the experiment are out of step");
        return -1;
    }
    return receive_all(fd, data, size, &waiting) ? lost(control, rank) : 0;
}

int control_exchange(struct control *control, const void *mine, size_t size, void *all)
{
    if (control->status != CONTROL_OK)
        return -1;
    if (control->rank) {
        if (frame_send(control->fd[0], FRAME_DATA, CONTROL_OK, mine, size))
            return lost(control, 0);
        return frame_receive(control, 0, FRAME_ALL, all, size * control->ranks);
    }
    if (size)
        memcpy(all, mine, size);
    for (int i = 1; i < control->ranks; i++) {
        if (frame_receive(control, i, FRAME_DATA, (char *)all + i * size, size))
            return -1;
    }
    for (int i = 1; i < control->ranks; i++) {
        if (frame_send(control->fd[i], FRAME_ALL, CONTROL_OK, all, size * control->ranks))
            return lost(control, i);
    }
    return 0;
}

/* No rank closes its connection before the end, so a closed connection means that the rank has
 * died, even if there is still data to read. */
static bool is_closed(int fd)
{
    struct pollfd ready = { .fd = fd, .events = POLLRDHUP };

    return poll(&ready, 1, 0) > 0 && ready.revents & (POLLRDHUP | POLLHUP | POLLERR);
}

int control_check(struct control *control)
{
    int first = control->rank ? 0 : 1;
    int last = control->rank ? 1 : control->ranks;

    if (control->status != CONTROL_OK)
        return -1;
    for (int i = first; i < last; i++) {
        struct frame frame;
        ssize_t got = recv(control->fd[i], &frame, sizeof(frame), MSG_PEEK | MSG_DONTWAIT);

        if (got == sizeof(frame) && frame.magic == MAGIC && frame.kind == FRAME_FAIL) {
            recv(control->fd[i], &frame, sizeof(frame), 0);
            return take_failure(control, control->fd[i], &frame);
        }
        if (is_closed(control->fd[i])) {
            errno = ECONNRESET;
            return lost(control, i);
        }
    }
    return 0;
}

/* Discards everything up to FRAME_END, but records a failure. */
static void drain_until_end(struct control *control, int rank)
{
    struct waiting waiting = { .limit_s = control->rank ? 0 : control->timeout_s };
    char discarded[4096];
    struct frame frame;

    while (!receive_all(control->fd[rank], &frame, sizeof(frame), &waiting) &&
           frame.magic == MAGIC) {
        if (frame.kind == FRAME_END)
            return;
        if (frame.kind == FRAME_FAIL) {
            take_failure(control, control->fd[rank], &frame);
            continue;
        }
        while (frame.length) {
            size_t piece = frame.length < sizeof(discarded) ? frame.length : sizeof(discarded);

            if (receive_all(control->fd[rank], discarded, piece, &waiting))
                return;
            frame.length -= piece;
        }
    }
    if (control->status == CONTROL_OK) {
        char text[CONTROL_TEXT_MAX];

        snprintf(text, sizeof(text), "lost process %d", rank);
        note(control, CONTROL_FAILED, text);
    }
}

void control_end(struct control *control)
{
    if (control->rank) {
        frame_send(control->fd[0], FRAME_END, CONTROL_OK, NULL, 0);
        drain_until_end(control, 0);
        return;
    }
    for (int i = 1; i < control->ranks; i++)
        drain_until_end(control, i);
    for (int i = 1; i < control->ranks; i++)
        frame_send(control->fd[i], FRAME_END, CONTROL_OK, NULL, 0);
}

int control_handshake(struct control *control, int rank, const char *handshake)
{
    struct waiting waiting = waiting_of(control);
    char refusal[CONTROL_TEXT_MAX];
    struct frame frame;

    if (frame_send(control->fd[rank], FRAME_HANDSHAKE, CONTROL_OK, handshake, strlen(handshake)) ||
        receive_all(control->fd[rank], &frame, sizeof(frame), &waiting))
        return lost(control, rank);
    if (frame.magic != MAGIC || frame.kind != FRAME_HANDSHAKE_REPLY ||
        frame.length >= sizeof(refusal)) {
        control_fail(control, CONTROL_FAILED, "the peer is not 'verbena bench'");
        return -1;
    }
    if (!frame.length)
        return 0;
    if (receive_all(control->fd[rank], refusal, frame.length, &waiting))
        return lost(control, rank);
    refusal[frame.length] = '\0';
    control_fail(control, CONTROL_FAILED, refusal);
    return -1;
}

int control_receive_handshake(int fd, unsigned int timeout_s, char *handshake, size_t size)
{
    struct waiting waiting = { .limit_s = timeout_s };
    struct frame frame;

    if (receive_all(fd, &frame, sizeof(frame), &waiting))
        return -1;
    if (frame.magic != MAGIC || frame.kind != FRAME_HANDSHAKE || frame.length >= size) {
        errno = EPROTO;
        return -1;
    }
    if (receive_all(fd, handshake, frame.length, &waiting))
        return -1;
    handshake[frame.length] = '\0';
    return 0;
}

void control_reply_handshake(int fd, const char *refusal)
{
    frame_send(fd, FRAME_HANDSHAKE_REPLY, CONTROL_OK, refusal, refusal ? strlen(refusal) : 0);
}
