/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/control.h"
#include "bench/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAGIC   0x56424e41u /* "VBNA" */
#define LOOK_MS 200         /* between two looks at whether the user wants to stop */

enum frame_kind {
    FRAME_GREETING,
    FRAME_WELCOME,
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

/* How long to wait: 'limit_s' of 0 is for ever. */
struct waiting {
    unsigned int limit_s;
    bool (*stopped)(void);
};

/* Waits for something to read, the end of the stream included. Returns 0, or -1 with errno:
 * ETIMEDOUT, ECANCELED if the user wants to stop. */
static int wait_readable(int fd, const struct waiting *waiting)
{
    uint64_t start = monotonic_ns();

    for (;;) {
        struct pollfd ready = { .fd = fd, .events = POLLIN };
        int count;

        if (waiting->stopped && waiting->stopped()) {
            errno = ECANCELED;
            return -1;
        }
        count = poll(&ready, 1, LOOK_MS);
        if (count > 0)
            return 0;
        if (count < 0 && errno != EINTR)
            return -1;
        if (waiting->limit_s && monotonic_ns() - start >= waiting->limit_s * 1000000000ull) {
            errno = ETIMEDOUT;
            return -1;
        }
    }
}

/* As wait_readable(), with ECONNRESET if the other side is gone. */
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

/* Rank 0 is at work while the others wait, for as long as that takes; should it die, its sockets
 * say so. */
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

/* What another process knows of a failure that has been told already. */
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

void control_add(struct control *control, const char *text)
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

/* Of a wait that failed with errno. */
static int lost(struct control *control, int rank)
{
    char text[CONTROL_TEXT_MAX];

    if (errno == ECANCELED) {
        control_interrupt(control);
        return -1;
    }
    if (errno == ETIMEDOUT)
        snprintf(text, sizeof(text), "process %d has said nothing for %u s", rank,
                 control->timeout_s);
    else
        snprintf(text, sizeof(text), "process %d is gone", rank);
    control_fail(control, CONTROL_FAILED, text);
    return -1;
}

/* Takes the body of a FRAME_FAIL; rank 0 passes it on. */
static int take_failure(struct control *control, int fd, const struct frame *frame)
{
    struct waiting waiting = { .limit_s = control->timeout_s };
    enum control_status status = frame->status;
    char text[CONTROL_TEXT_MAX] = "";

    if (frame->length >= sizeof(text) || receive_all(fd, text, frame->length, &waiting))
        strcpy(text, "the other side failed");
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

/* Waits for a frame of that kind with exactly that many bytes. */
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
        control_fail(control, CONTROL_FAILED, "the processes of the experiment disagree");
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

/* Nobody closes a connection before the end: one that is closed means a process that died, even if
 * something it said is still to be read. */
static bool is_closed(int fd)
{
    struct pollfd ready = { .fd = fd, .events = POLLRDHUP };

    return poll(&ready, 1, 0) > 0 && ready.revents & (POLLRDHUP | POLLHUP | POLLERR);
}

int control_watch(struct control *control)
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

/* Reads and forgets what comes before the end; a failure is noted. */
static void drain_until_end(struct control *control, int rank)
{
    struct waiting waiting = { .limit_s = control->rank ? 0 : control->timeout_s };
    char scrap[4096];
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
            size_t piece = frame.length < sizeof(scrap) ? frame.length : sizeof(scrap);

            if (receive_all(control->fd[rank], scrap, piece, &waiting))
                return;
            frame.length -= piece;
        }
    }
    if (control->status == CONTROL_OK) {
        char text[CONTROL_TEXT_MAX];

        snprintf(text, sizeof(text), "process %d is gone", rank);
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

int control_greet(struct control *control, int rank, const char *greeting)
{
    struct waiting waiting = waiting_of(control);
    char refusal[CONTROL_TEXT_MAX];
    struct frame frame;

    if (frame_send(control->fd[rank], FRAME_GREETING, CONTROL_OK, greeting, strlen(greeting)) ||
        receive_all(control->fd[rank], &frame, sizeof(frame), &waiting))
        return lost(control, rank);
    if (frame.magic != MAGIC || frame.kind != FRAME_WELCOME || frame.length >= sizeof(refusal)) {
        control_fail(control, CONTROL_FAILED, "the other side is not 'verbena bench'");
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

int control_welcome(int fd, unsigned int timeout_s, char *greeting, size_t size)
{
    struct waiting waiting = { .limit_s = timeout_s };
    struct frame frame;

    if (receive_all(fd, &frame, sizeof(frame), &waiting))
        return -1;
    if (frame.magic != MAGIC || frame.kind != FRAME_GREETING || frame.length >= size) {
        errno = EPROTO;
        return -1;
    }
    if (receive_all(fd, greeting, frame.length, &waiting))
        return -1;
    greeting[frame.length] = '\0';
    return 0;
}

void control_accept(int fd, const char *refusal)
{
    frame_send(fd, FRAME_WELCOME, CONTROL_OK, refusal, refusal ? strlen(refusal) : 0);
}
