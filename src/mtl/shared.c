/* SPDX-License-Identifier: BSD-2-Clause */
#include "mtl/shared.h"

#include "mtl/log.h"
#include "mtl/parameter_rows.h"
#include "mtl/protocol.h"
#include "mtl/ring_limit.h"
#include "util/memory_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#define RINGS_MAX  512
#define CELLS      256
#define CELL_SIZE  128
#define DATA_BYTES (256u << 10)
/* Of a message in pieces: what is left free at the end of the ring, its size, and the padding. */
#define PIECES_EXTRA (RING_PIECE + 4 * CACHE_LINE)
/* Behind a message that has just missed the end of the ring there must be room for the longest one,
 * even if the last quarter that is free has not been reported. */
#define UNREPORTED (DATA_BYTES / 4)
_Static_assert(2 * (RING_WHOLE_MAX + CACHE_LINE) + UNREPORTED <= DATA_BYTES &&
                   RING_QUEUED_MAX + PIECES_EXTRA + UNREPORTED <= DATA_BYTES,
               "a message may never find space");

struct cell {
    struct wire_header header; /* its mark is written last */
    char body[CELL_SIZE - sizeof(struct wire_header)];
};

/* Instead of the body, in the cell of a message whose body lies in the data ring. */
struct data_ref {
    uint64_t start, end; /* offsets in the endless stream of bytes */
};

struct ring {
    cache_aligned uint64_t sender;           /* process name, written before the first message */
    cache_aligned _Atomic uint32_t consumed; /* cells, written by the owner of the inbox */
    _Atomic uint64_t freed;                  /* bytes of the data ring */
    _Atomic bool crowded;                    /* the owner keeps much that nobody has asked for */
    cache_aligned coop_word coop;            /* the message of the sender that both copy */
    cache_aligned struct cell cells[CELLS];
    char data[DATA_BYTES];
};

/* A sender claims a ring by one atomic exchange. If it fails or dies while attaching, that ring is
 * lost, and no other. */
struct inbox_head {
    _Atomic uint32_t changes; /* incremented after a claim, so that the owner looks for new rings */
    _Atomic uint8_t claimed[RINGS_MAX];
    _Atomic uint32_t armed; /* the owner wants to be woken */
};
_Static_assert(sizeof(struct inbox_head) <= PAGE, "the rings begin on the next page");

#define RING_STRIDE ((sizeof(struct ring) + PAGE - 1) / PAGE * PAGE)
#define INBOX_BYTES (PAGE + RINGS_MAX * RING_STRIDE)

struct inbox_ring {
    struct ring *ring;
    uint32_t consumed, consumed_reported;
    uint64_t freed, freed_reported;
    struct endpoint *endpoint; /* NULL until the first message */
};

static struct inbox {
    int fd;
    struct inbox_head *head;
    uint32_t changes; /* as of the last look for new rings */
    uint32_t known;
    struct inbox_ring rings[RINGS_MAX];
} inbox = { .fd = -1 };

struct shared_peer {
    struct inbox_head *head; /* NULL if the peer never sleeps */
    int wake;
    struct ring *ring;
    uint32_t sent, consumed;
    uint64_t written, freed;
    int32_t pid;
    struct inbox_ring *in; /* the ring from that peer, after its first message */
    bool readable;         /* a read of its memory has succeeded */
    struct ring_limit limit;
};

int shared_open(void)
{
    inbox.fd = memory_file("verbena-mpi", MFD_CLOEXEC);
    if (inbox.fd < 0)
        return -1;
    /* Where Yama restricts reading the memory of others, let the peers on this node. */
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    if (!ftruncate(inbox.fd, INBOX_BYTES))
        inbox.head = mmap(NULL, INBOX_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                          inbox.fd, 0);
    if (inbox.head && inbox.head != MAP_FAILED)
        return inbox.fd;
    inbox.head = NULL;
    shared_close();
    return -1;
}

void shared_close(void)
{
    if (inbox.head)
        munmap(inbox.head, INBOX_BYTES);
    if (inbox.fd >= 0)
        close(inbox.fd);
    inbox.head = NULL;
    inbox.fd = -1;
    inbox.changes = 0;
    inbox.known = 0;
}

static uint32_t claim_ring(struct inbox_head *head)
{
    uint32_t index = 0;

    while (index < RINGS_MAX && atomic_exchange(&head->claimed[index], 1))
        index++;
    return index;
}

static struct ring *map_ring(int fd, struct inbox_head *head)
{
    uint32_t index = claim_ring(head);
    struct ring *ring;

    if (index >= RINGS_MAX)
        return NULL;
    ring =
        mmap(NULL, RING_STRIDE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, PAGE + index * RING_STRIDE);
    if (ring == MAP_FAILED) {
        store_release(&head->claimed[index], 0);
        return NULL;
    }
    ring->sender = protocol_own_name();
    atomic_fetch_add(&head->changes, 1);
    return ring;
}

/* Returns -1 if the peer has no progress thread. */
static int open_wake(const struct address *address)
{
    char path[64];

    if (address->wake < 0)
        return -1;
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", address->pid, address->wake);
    /* With both ends open, writing after the death of the peer does not raise SIGPIPE. */
    return open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
}

struct shared_peer *shared_attach(const struct address *address)
{
    struct shared_peer *peer = calloc(1, sizeof(*peer));
    struct inbox_head *head;
    char path[64];
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/fd/%d", address->pid, address->inbox);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || !peer)
        goto free_peer;
    peer->pid = address->pid;
    ring_limit_init(&peer->limit);
    head = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (head != MAP_FAILED) {
        peer->ring = map_ring(fd, head);
        peer->wake = peer->ring ? open_wake(address) : -1;
        if (peer->wake >= 0)
            peer->head = head;
        else
            munmap(head, PAGE);
    }
    close(fd);
    if (peer->ring)
        return peer;
free_peer:
    free(peer);
    return NULL;
}

void shared_detach(struct shared_peer *peer)
{
    if (peer->head) {
        munmap(peer->head, PAGE);
        close(peer->wake);
    }
    munmap(peer->ring, RING_STRIDE);
    free(peer);
}

static bool has_cells(struct shared_peer *peer, uint32_t count)
{
    if (peer->sent - peer->consumed + count <= CELLS)
        return true;
    peer->consumed = load_acquire(&peer->ring->consumed);
    return peer->sent - peer->consumed + count <= CELLS;
}

/* Finds contiguous space: a body that does not fit before the end of the ring goes to its start. */
static bool find_space(struct shared_peer *peer, uint32_t length, struct data_ref *ref)
{
    uint32_t at = peer->written % DATA_BYTES;

    ref->start = at + length <= DATA_BYTES ? peer->written : peer->written + DATA_BYTES - at;
    ref->end = ref->start + round_up(length, CACHE_LINE);
    if (ref->end - peer->freed <= DATA_BYTES)
        return true;
    peer->freed = load_acquire(&peer->ring->freed);
    return ref->end - peer->freed <= DATA_BYTES;
}

bool shared_has_room(struct shared_peer *peer, uint64_t size)
{
    uint32_t cells = size / RING_PIECE + 1;
    uint64_t end = peer->written + size + PIECES_EXTRA;

    if (end - peer->freed > DATA_BYTES)
        peer->freed = load_acquire(&peer->ring->freed);
    return end - peer->freed <= DATA_BYTES && has_cells(peer, cells);
}

static uint32_t mark_of(uint32_t count)
{
    return count / CELLS + 1;
}

void shared_arm(void)
{
    if (!inbox.head)
        return;
    store_relaxed(&inbox.head->armed, 1);
    atomic_thread_fence(memory_order_seq_cst);
}

/* The fence orders the message before the look, as that of the owner orders its wish before its
 * poll: either the peer sees the message or this process the wish. */
static void wake(struct shared_peer *peer)
{
    atomic_thread_fence(memory_order_seq_cst);
    if (!load_relaxed(&peer->head->armed) || !atomic_exchange(&peer->head->armed, 0))
        return;
    if (write(peer->wake, "", 1) < 0)
        return; /* the pipe is full: the peer has enough to wake up for */
}

bool shared_prefers_ring(struct shared_peer *peer, uint64_t size)
{
    if (size > RING_PIECE && load_relaxed(&peer->ring->crowded))
        return false;
    return ring_limit_allows(&peer->limit, size);
}

void shared_set_crowded(struct shared_peer *peer, bool crowded)
{
    if (peer->in && load_relaxed(&peer->in->ring->crowded) != crowded)
        store_relaxed(&peer->in->ring->crowded, crowded);
}

/* In the first lap the kernel provides the pages. Packing tells nothing about the ring. */
static void write_data(struct shared_peer *peer, struct message *message, uint64_t start,
                       uint32_t length)
{
    bool packed = message->request && !message->request->buffer;
    bool timed = !vtime.on && !packed && peer->written >= DATA_BYTES &&
                 ring_limit_wants_time(&peer->limit, length);
    uint64_t began = timed ? now_ns() : 0;

    endpoint_write_message(peer->ring->data + start % DATA_BYTES, message);
    if (timed)
        ring_limit_learn(&peer->limit, length, now_ns() - began);
}

bool shared_send(struct shared_peer *peer, struct message *message)
{
    uint32_t length = endpoint_message_length(message);
    struct cell *cell = &peer->ring->cells[peer->sent % CELLS];
    bool in_data_ring = length > sizeof(cell->body);
    struct data_ref ref;

    if (!has_cells(peer, 1) || (in_data_ring && !find_space(peer, length, &ref)))
        return false;
    message->header.length = length;
    message->header.flags |= in_data_ring ? WIRE_IN_DATA_RING : 0;
    if (in_data_ring) {
        write_data(peer, message, ref.start, length);
        memcpy(cell->body, &ref, sizeof(ref));
        peer->written = ref.end;
    } else {
        endpoint_write_message(cell->body, message);
    }
    mtl_charge(mtl.costs.shared_latency);
    wire_copy_header(&cell->header, &message->header);
    store_release((_Atomic uint32_t *)&cell->header.mark, mark_of(peer->sent));
    if (vtime.on)
        vtime.memory_written(peer->pid);
    if (unlikely(peer->head && wire_wants_answer(message->header.type)))
        wake(peer);
    peer->sent++;
    prefetch_for_writing(&peer->ring->cells[(peer->sent + 1) % CELLS]);
    mtl.counters.shared_messages++;
    mtl.counters.shared_bytes += length;
    return true;
}

static struct endpoint *sender_of(struct inbox_ring *in)
{
    opal_process_name_t name = { .jobid = in->ring->sender >> 32, .vpid = in->ring->sender };

    if (in->endpoint)
        return in->endpoint;
    in->endpoint = endpoint_of_name(&name);
    if (in->endpoint && in->endpoint->shared)
        in->endpoint->shared->in = in;
    return in->endpoint;
}

/* Reports free cells and bytes to the sender, a quarter of the ring at a time. */
static void return_credit(struct inbox_ring *in)
{
    if (in->consumed - in->consumed_reported >= CELLS / 4) {
        in->consumed_reported = in->consumed;
        store_release(&in->ring->consumed, in->consumed);
    }
    if (in->freed - in->freed_reported >= UNREPORTED) {
        in->freed_reported = in->freed;
        store_release(&in->ring->freed, in->freed);
    }
}

static bool is_full(const struct inbox_ring *in, struct cell *cell)
{
    return load_acquire((_Atomic uint32_t *)&cell->header.mark) == mark_of(in->consumed);
}

bool shared_has_more(const struct shared_peer *peer)
{
    return peer->in && is_full(peer->in, &peer->in->ring->cells[peer->in->consumed % CELLS]);
}

static int poll_ring(struct inbox_ring *in)
{
    int count = 0;

    for (;; count++) {
        struct cell *cell = &in->ring->cells[in->consumed % CELLS];
        const char *body = cell->body;
        struct endpoint *endpoint;
        struct data_ref ref;

        if (!is_full(in, cell))
            return count;
        endpoint = sender_of(in);
        if (!endpoint)
            return count;
        if (cell->header.flags & WIRE_IN_DATA_RING) {
            memcpy(&ref, cell->body, sizeof(ref));
            body = in->ring->data + ref.start % DATA_BYTES;
            in->freed = ref.end;
        }
        in->consumed++;
        protocol_arrived(endpoint, &cell->header, body);
        return_credit(in);
    }
}

/* Rings are claimed in order: polls all rings up to the last one that is claimed. A ring without a
 * sender stays empty. */
static void find_new_rings(void)
{
    inbox.changes = load_acquire(&inbox.head->changes);
    for (uint32_t i = inbox.known; i < RINGS_MAX; i++)
        if (load_acquire(&inbox.head->claimed[i]))
            while (inbox.known <= i) {
                char *at = (char *)inbox.head + PAGE + inbox.known * RING_STRIDE;
                inbox.rings[inbox.known++] = (struct inbox_ring){ .ring = (struct ring *)at };
            }
}

int shared_poll(void)
{
    int count = 0;

    if (!inbox.head)
        return 0;
    if (unlikely(load_relaxed(&inbox.head->changes) != inbox.changes))
        find_new_rings();
    for (uint32_t i = 0; i < inbox.known; i++)
        count += poll_ring(&inbox.rings[i]);
    return count;
}

/* ---- copies from process to process ---- */

typedef ssize_t (*copy_call)(pid_t, const struct iovec *, unsigned long, const struct iovec *,
                             unsigned long, unsigned long);

static bool run_copy(copy_call call, pid_t pid, const struct shared_copy *copy, bool *refused)
{
    struct iovec local = { copy->local, copy->length };
    struct iovec remote = { (void *)(uintptr_t)copy->remote, copy->length };

    if (!mtl.parameters.single_copy || *refused)
        return false;
    while (local.iov_len) {
        ssize_t count = call(pid, &local, 1, &remote, 1, 0);

        if (count <= 0) {
            *refused = errno == EPERM || errno == ENOSYS;
            return false;
        }
        local.iov_base = (char *)local.iov_base + count;
        remote.iov_base = (char *)remote.iov_base + count;
        local.iov_len -= count;
        remote.iov_len = local.iov_len;
    }
    if (mtl.costs.shared_rate > 0)
        mtl_charge(copy->length / mtl.costs.shared_rate);
    else
        mtl_charge_copy(copy->length);
    return true;
}

bool shared_read(struct shared_peer *peer, const struct shared_copy *copy)
{
    static bool refused;
    bool done = run_copy(process_vm_readv, peer->pid, copy, &refused);

    peer->readable |= done;
    return done;
}

static bool write_refused;

bool shared_may_write(void)
{
    return mtl.parameters.single_copy && !write_refused;
}

bool shared_write(struct shared_peer *peer, const struct shared_copy *copy)
{
    return run_copy(process_vm_writev, peer->pid, copy, &write_refused);
}

coop_word *shared_coop_recv_word(struct shared_peer *peer)
{
    return peer->in && peer->readable ? &peer->in->ring->coop : NULL;
}

coop_word *shared_coop_send_word(struct shared_peer *peer)
{
    return &peer->ring->coop;
}
