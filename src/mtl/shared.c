#include "mtl/shared.h"

#include "mtl/log.h"
#include "mtl/protocol.h"

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

struct cell {
    struct wire_header header; /* its mark is written last */
    char body[CELL_SIZE - sizeof(struct wire_header)];
};

/* Where the rest of a message lies, in front of what its cell can hold. */
struct far {
    uint64_t start, end; /* positions in the ring of bytes, which never go back */
};

struct ring {
    cache_aligned uint64_t sender; /* its name, written before its first message */
    cache_aligned _Atomic uint32_t consumed; /* cells, by the owner of the inbox */
    _Atomic uint64_t freed;                  /* bytes */
    cache_aligned claims_word claims;        /* of the sender's message that both copy */
    cache_aligned struct cell cells[CELLS];
    char data[DATA_BYTES];
};

/* A ring is claimed by one exchange, so that a sender which fails or dies in the middle of attaching
 * costs a ring and hides no other. */
struct inbox_head {
    _Atomic uint32_t changes; /* counted after a claim, for the owner to look */
    _Atomic uint8_t claimed[RINGS_MAX];
};
_Static_assert(sizeof(struct inbox_head) <= PAGE, "the rings begin on the next page");

#define RING_STRIDE ((sizeof(struct ring) + PAGE - 1) / PAGE * PAGE)
#define INBOX_BYTES (PAGE + RINGS_MAX * RING_STRIDE)

struct inbox_ring {
    struct ring *ring;
    uint32_t taken, told;
    uint64_t freed, freed_told;
    struct endpoint *endpoint; /* NULL until it is first needed */
};

static struct inbox {
    int fd;
    struct inbox_head *head;
    uint32_t changes; /* as of the last look for new rings */
    uint32_t known;
    struct inbox_ring rings[RINGS_MAX];
} inbox = { .fd = -1 };

struct shared_peer {
    struct ring *ring;
    uint32_t sent, consumed;
    uint64_t written, freed;
    int32_t pid;
    struct inbox_ring *in; /* what comes from there, since something did */
    bool readable;         /* its memory has been read */
};

int inbox_open(void)
{
    inbox.fd = memfd_create("verbena-mpi", MFD_CLOEXEC);
    if (inbox.fd < 0)
        return -1;
    /* Where Yama restricts who may read whose memory: the others of the node may. */
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    if (!ftruncate(inbox.fd, INBOX_BYTES))
        inbox.head = mmap(NULL, INBOX_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                          inbox.fd, 0);
    if (inbox.head && inbox.head != MAP_FAILED)
        return inbox.fd;
    inbox.head = NULL;
    inbox_close();
    return -1;
}

void inbox_close(void)
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
    head = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (head != MAP_FAILED) {
        peer->ring = map_ring(fd, head);
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
    munmap(peer->ring, RING_STRIDE);
    free(peer);
}

static bool has_cell(struct shared_peer *peer)
{
    if (peer->sent - peer->consumed < CELLS)
        return true;
    peer->consumed = load_acquire(&peer->ring->consumed);
    return peer->sent - peer->consumed < CELLS;
}

/* Room in one piece: what does not fit before the end begins at the start. */
static bool find_room(struct shared_peer *peer, uint32_t length, struct far *far)
{
    uint32_t at = peer->written % DATA_BYTES;

    far->start = at + length <= DATA_BYTES ? peer->written : peer->written + DATA_BYTES - at;
    far->end = far->start + round_up(length, CACHE_LINE);
    if (far->end - peer->freed <= DATA_BYTES)
        return true;
    peer->freed = load_acquire(&peer->ring->freed);
    return far->end - peer->freed <= DATA_BYTES;
}

static uint32_t mark_of(uint32_t count)
{
    return count / CELLS + 1;
}

bool shared_send(struct shared_peer *peer, struct message *message)
{
    uint32_t length = message_length(message);
    struct cell *cell = &peer->ring->cells[peer->sent % CELLS];
    bool far = length > sizeof(cell->body);
    struct far place;

    if (!has_cell(peer) || (far && !find_room(peer, length, &place)))
        return false;
    message->header.length = length;
    message->header.flags |= far ? WIRE_FAR : 0;
    if (far) {
        message_write(peer->ring->data + place.start % DATA_BYTES, message);
        memcpy(cell->body, &place, sizeof(place));
        peer->written = place.end;
    } else {
        message_write(cell->body, message);
    }
    mtl_charge(mtl.costs.shared_latency);
    memcpy((char *)&cell->header + sizeof(uint32_t), (char *)&message->header + sizeof(uint32_t),
           sizeof(cell->header) - sizeof(uint32_t));
    store_release((_Atomic uint32_t *)&cell->header.mark, mark_of(peer->sent));
    if (vtime.on)
        vtime.wrote(peer->pid);
    peer->sent++;
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

static void tell(struct inbox_ring *in)
{
    if (in->taken - in->told >= CELLS / 4) {
        in->told = in->taken;
        store_release(&in->ring->consumed, in->taken);
    }
    if (in->freed - in->freed_told >= DATA_BYTES / 4) {
        in->freed_told = in->freed;
        store_release(&in->ring->freed, in->freed);
    }
}

static int look(struct inbox_ring *in)
{
    int count = 0;

    for (;; count++) {
        struct cell *cell = &in->ring->cells[in->taken % CELLS];
        const char *body = cell->body;
        struct endpoint *endpoint;
        struct far place;

        if (load_acquire((_Atomic uint32_t *)&cell->header.mark) != mark_of(in->taken))
            return count;
        endpoint = sender_of(in);
        if (!endpoint)
            return count;
        if (cell->header.flags & WIRE_FAR) {
            memcpy(&place, cell->body, sizeof(place));
            body = in->ring->data + place.start % DATA_BYTES;
            in->freed = place.end;
        }
        in->taken++;
        protocol_arrived(endpoint, &cell->header, body);
        tell(in);
    }
}

/* Rings are claimed in order: all below the last one that is claimed are looked at, and one that has
 * no sender stays empty. */
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

int inbox_look(void)
{
    int count = 0;

    if (!inbox.head)
        return 0;
    if (unlikely(load_relaxed(&inbox.head->changes) != inbox.changes))
        find_new_rings();
    for (uint32_t i = 0; i < inbox.known; i++)
        count += look(&inbox.rings[i]);
    return count;
}

/* ---- from memory to memory ---- */

typedef ssize_t (*copy_call)(pid_t, const struct iovec *, unsigned long, const struct iovec *,
                             unsigned long, unsigned long);

static bool copy(copy_call call, pid_t pid, const struct memory_pair *pair, bool *refused)
{
    struct iovec here = { pair->here, pair->length };
    struct iovec there = { (void *)(uintptr_t)pair->there, pair->length };

    if (!mtl.parameters.single_copy || *refused)
        return false;
    while (here.iov_len) {
        ssize_t count = call(pid, &here, 1, &there, 1, 0);

        if (count <= 0) {
            *refused = errno == EPERM || errno == ENOSYS;
            return false;
        }
        here.iov_base = (char *)here.iov_base + count;
        there.iov_base = (char *)there.iov_base + count;
        here.iov_len -= count;
        there.iov_len = here.iov_len;
    }
    if (mtl.costs.shared_rate > 0)
        mtl_charge(pair->length / mtl.costs.shared_rate);
    else
        mtl_charge_copy(pair->length);
    return true;
}

bool shared_read(struct shared_peer *peer, const struct memory_pair *pair)
{
    static bool refused;
    bool done = copy(process_vm_readv, peer->pid, pair, &refused);

    peer->readable |= done;
    return done;
}

static bool write_refused;

bool shared_may_write(void)
{
    return mtl.parameters.single_copy && !write_refused;
}

bool shared_write(struct shared_peer *peer, const struct memory_pair *pair)
{
    return copy(process_vm_writev, peer->pid, pair, &write_refused);
}

claims_word *shared_claims_in(struct shared_peer *peer)
{
    return peer->in && peer->readable ? &peer->in->ring->claims : NULL;
}

claims_word *shared_claims_out(struct shared_peer *peer)
{
    return &peer->ring->claims;
}
