/* SPDX-License-Identifier: BSD-2-Clause */
#include "dma/peer.h"

#include "dma/agent.h"
#include "dma/mr_mode.h"
#include "dma/sysv.h"
#include "hca/epoch.h"
#include "hca/proc.h"
#include "util/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Mapping a region costs as much as several system calls. */
#define WORTH_IT_AFTER 4
/* What a copy costs more than loads and stores. */
#define COPY_CALL_NS      2000
#define COPY_BYTES_PER_NS 16
#define POPULATE_BYTES (16ull << 20)
#define NEEDED_SEALS   (F_SEAL_SHRINK | F_SEAL_SEAL)

struct mapping *_Atomic peer_mappings[MR_CHUNKS];

/* Mapping uses trylock, inside an epoch; unmapping waits for a grace period with the mutex held. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint32_t *listed; /* indices of existing mappings */
static unsigned listed_count, listed_capacity;
static atomic_uint mapped_now, maps_made;
static uint32_t drops_seen;

bool peer_maps_any(void)
{
    return load_relaxed(&mapped_now);
}

unsigned peer_maps_made(void)
{
    return load_relaxed(&maps_made);
}

/* ---- opening the file ---- */

static int take_descriptor(unsigned proc, int fd)
{
    if ((int)proc == proc_self)
        return fcntl(fd, F_DUPFD_CLOEXEC, 0);
    int pidfd = proc_pidfd(proc);
    int got = pidfd > 0 ? (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0) : -1;
    if (got >= 0)
        return got;
    char name[32];
    snprintf(name, sizeof(name), "fd/%d", fd);
    return proc_open(proc, name, O_RDWR | O_NONBLOCK | O_NOCTTY);
}

/* Values in the segment may be wrong, and the descriptor may have been reused. Accesses cannot
 * fault if the file cannot shrink. */
static bool is_good_file(int fd, const struct share_piece *piece)
{
    struct stat st;
    int seals = fcntl(fd, F_GET_SEALS);

    return !fstat(fd, &st) && st.st_ino == piece->inode && st.st_uid == geteuid() && seals >= 0 &&
           (seals & NEEDED_SEALS) == NEEDED_SEALS && piece->length <= (uint64_t)st.st_size &&
           piece->offset <= st.st_size - piece->length;
}

static bool map_piece(unsigned proc, const struct share_piece *piece, char *at, int prot)
{
    int fd = take_descriptor(proc, piece->fd);
    int flags = MAP_SHARED | MAP_FIXED | (piece->length <= POPULATE_BYTES ? MAP_POPULATE : 0);
    bool good;

    if (fd < 0)
        return false;
    good = is_good_file(fd, piece) && (void *)syscall(SYS_mmap, at, piece->length, prot, flags, fd,
                                                      piece->offset) != MAP_FAILED;
    close(fd);
    return good;
}

static char *map_all(unsigned proc, const struct share_map *map, int prot)
{
    char *base = (char *)syscall(SYS_mmap, NULL, map->length, PROT_NONE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    uint64_t done = 0;

    if (base == MAP_FAILED)
        return NULL;
    for (unsigned i = 0; i < map->count; i++) {
        const struct share_piece *piece = &map->pieces[i];
        if (piece->length > map->length - done || !map_piece(proc, piece, base + done, prot)) {
            syscall(SYS_munmap, base, map->length);
            return NULL;
        }
        done += piece->length;
    }
    if (done != map->length) {
        syscall(SYS_munmap, base, map->length);
        return NULL;
    }
    syscall(SYS_madvise, base, map->length, MADV_DONTFORK);
    syscall(SYS_madvise, base, map->length, MADV_DONTDUMP);
    return base;
}

/* ---- attaching a System V segment ---- */

/* Values in the segment may be wrong. A System V segment cannot shrink. */
static bool is_good_segment(const struct share_piece *piece, struct shmid_ds *found)
{
    return piece->ipc_namespace && piece->ipc_namespace == sysv_namespace() &&
           !shmctl((int)piece->inode, IPC_STAT, found) && found->shm_perm.cuid == geteuid() &&
           piece->length <= round_up(found->shm_segsz, PAGE_BYTES) &&
           piece->offset <= round_up(found->shm_segsz, PAGE_BYTES) - piece->length;
}

static char *attach(const struct share_piece *piece, int prot, char **attached)
{
    struct shmid_ds found;

    if (!is_good_segment(piece, &found))
        return NULL;
    char *at = (char *)syscall(SYS_shmat, (int)piece->inode, NULL,
                               prot & PROT_WRITE ? 0 : SHM_RDONLY);
    if (at == MAP_FAILED)
        return NULL;
    syscall(SYS_madvise, at, round_up(found.shm_segsz, PAGE_BYTES), MADV_DONTFORK);
    syscall(SYS_madvise, at, round_up(found.shm_segsz, PAGE_BYTES), MADV_DONTDUMP);
    *attached = at;
    return at + piece->offset;
}

static bool is_sysv(const struct share_map *map)
{
    return map->count == 1 && map->pieces[0].fd < 0;
}

/* ---- the table ---- */

static struct mapping *mapping_for(uint32_t index)
{
    uint32_t c = index >> MR_CHUNK_SHIFT;

    if (c >= MR_CHUNKS)
        return NULL;
    if (!peer_mappings[c]) {
        struct mapping *chunk = calloc(1u << MR_CHUNK_SHIFT, sizeof(*chunk));
        if (!chunk)
            return NULL;
        store_release(&peer_mappings[c], chunk);
    }
    return load_relaxed(&peer_mappings[c]) + (index & ((1u << MR_CHUNK_SHIFT) - 1));
}

static bool list(uint32_t index)
{
    if (listed_count == listed_capacity) {
        unsigned more = listed_capacity ? 2 * listed_capacity : 64;
        uint32_t *grown = realloc(listed, more * sizeof(*grown));
        if (!grown)
            return false;
        listed = grown;
        listed_capacity = more;
    }
    listed[listed_count++] = index;
    return true;
}

static unsigned rights_of(const struct shared_mr *mr)
{
    if (mr->access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC))
        return PROT_READ | PROT_WRITE;
    return PROT_READ;
}

static void make_mapping(struct mapping *m, const struct shared_mr *mr, uint64_t serial)
{
    struct share_map *shared =
        seg_at((uint64_t)mr->share_at * CACHE_LINE, sizeof(struct share_map));
    struct share_map map;

    m->base = m->attached = NULL;
    if (shared) {
        map = *shared;
        m->start = map.start;
        m->length = map.length;
        m->writable = rights_of(mr) & PROT_WRITE;
        if (map.serial == serial && map.count <= SHARE_PIECES && map.length &&
            map.length % PAGE_BYTES == 0 && list(mr->index)) {
            m->base = is_sysv(&map) ? attach(&map.pieces[0], rights_of(mr), &m->attached)
                                    : map_all(mr->proc, &map, rights_of(mr));
            if (m->base)
                atomic_store(&shared->mapped, 1);
            else
                listed_count--;
        }
    }
    if (m->base) {
        atomic_fetch_add(&mapped_now, 1);
        atomic_fetch_add(&maps_made, 1);
        atomic_store(&proc_slot(proc_self)->maps_memory, 1);
    } else {
        log_info("cannot map memory of process %d: copying it instead", proc_slot(mr->proc)->pid);
    }
    store_release(&m->serial, serial);
}

/* ---- asking for it ---- */

/* The owner may replace the count by a serial number at any time. */
static void count_copy(const struct shared_mr *mr, uint64_t length)
{
    struct shared_mr *entry = (int)mr->proc == proc_self ? mr_published(mr) : (struct shared_mr *)mr;
    uint64_t cost = COPY_CALL_NS + length / COPY_BYTES_PER_NS;
    uint64_t share = load_relaxed(&entry->share), left;

    do {
        left = share & SHARE_LEFT;
        if (!(share & SHARE_PENDING) || !left)
            return;
    } while (!atomic_compare_exchange_weak(&entry->share, &share,
                                           share - (left < cost ? left : cost)));
    if (left > cost)
        return;
    atomic_store(&proc_slot(mr->proc)->share_asked, 1);
    proc_attention(mr->proc);
}

char *peer_map(const struct mem_ref *ref, uint64_t serial, uint64_t length, bool for_writing)
{
    const struct shared_mr *mr = ref->mr;
    char *at = NULL;
    int err = errno;

    if (mr_mode() == MR_COPY || mr->proc >= MAX_PROCS)
        return NULL;
    if (serial & SHARE_PENDING) {
        count_copy(mr, length);
        return NULL;
    }
    if (pthread_mutex_trylock(&mutex))
        return NULL;
    struct mapping *m = mapping_for(mr->index);
    if (m && load_relaxed(&m->serial) != serial && !m->base) {
        if (m->wanted != serial)
            m->uses = 0;
        m->wanted = serial;
        if (mr_mode() == MR_SHARE || ++m->uses >= WORTH_IT_AFTER) {
            make_mapping(m, mr, serial);
            agent_watch();
        }
    }
    if (m && load_relaxed(&m->serial) == serial)
        at = peer_in_mapping(m, ref->addr, length, for_writing);
    pthread_mutex_unlock(&mutex);
    errno = err;
    return at;
}

/* ---- unmapping ---- */

static bool is_withdrawn(uint32_t index, uint64_t serial)
{
    epoch_enter();
    struct shared_mr *mr =
        table_entry(seg->mr_dir, index, MR_CHUNK_SHIFT, MR_CHUNKS, sizeof(struct shared_mr));
    bool gone = !mr || !load_relaxed(&mr->key) || load_acquire(&mr->share) != serial;
    epoch_exit();
    return gone;
}

/* Moves withdrawn mappings to the end of the list and makes them unfindable. */
static unsigned hide_withdrawn(void)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < listed_count; i++) {
        uint32_t index = listed[i];
        struct mapping *m = mapping_for(index);
        if (is_withdrawn(index, load_relaxed(&m->serial))) {
            store_release(&m->serial, 0);
            continue;
        }
        listed[i] = listed[kept];
        listed[kept++] = index;
    }
    return kept;
}

void peer_drop_withdrawn(void)
{
    uint32_t drops = load_acquire(&seg->share_drops);

    if (drops == drops_seen)
        return;
    pthread_mutex_lock(&mutex);
    unsigned kept = hide_withdrawn();
    if (kept < listed_count && !epoch_grace()) { /* a stopped thread may be using them */
        pthread_mutex_unlock(&mutex);
        return;
    }
    drops_seen = drops;
    for (unsigned i = kept; i < listed_count; i++) {
        struct mapping *m = mapping_for(listed[i]);
        if (m->attached)
            syscall(SYS_shmdt, m->attached);
        else
            syscall(SYS_munmap, m->base, m->length);
        m->base = m->attached = NULL;
        atomic_fetch_sub(&mapped_now, 1);
    }
    listed_count = kept;
    pthread_mutex_unlock(&mutex);
}

void peer_forget(void)
{
    for (unsigned c = 0; c < MR_CHUNKS; c++) {
        free(peer_mappings[c]);
        peer_mappings[c] = NULL;
    }
    listed_count = 0;
    atomic_store(&mapped_now, 0);
    pthread_mutex_init(&mutex, NULL);
}
