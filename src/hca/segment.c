/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/segment.h"

#include "hca/arena.h"
#include "hca/bounce.h"
#include "hca/engine.h"
#include "hca/epoch.h"
#include "hca/idle.h"
#include "hca/proc.h"
#include "hca/proc_lock.h"
#include "hca/qp.h"
#include "hca/wake_file.h"
#include "util/file.h"
#include "util/log.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

struct segment *seg;
uint64_t seg_limit;
_Atomic uint64_t seg_known;

static struct fabric_config config;
static char path[384];
static atomic_int file = -1;
static struct stat file_identity;
static pthread_mutex_t attach_mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool has_left; /* the process ends: never attach again */

const struct fabric_config *segment_config(void)
{
    return &config;
}

const char *segment_path(void)
{
    return path;
}

/* Vigna's splitmix64. */
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

uint64_t segment_random(enum seed_purpose purpose)
{
    return mix(seg->seed + purpose);
}

static int read_number(const char *name, unsigned fallback, unsigned min, unsigned max,
                       unsigned *value)
{
    const char *text = getenv(name);
    char *end;

    *value = fallback;
    if (!text || !*text)
        return 0;
    unsigned long n = strtoul(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end || n < min || n > max) {
        log_error("%s=%s: expected a number from %u to %u", name, text, min, max);
        return EINVAL;
    }
    *value = n;
    return 0;
}

int segment_read_config(struct fabric_config *c)
{
    const char *name = getenv("VERBENA_FABRIC");
    const char *dir = getenv("VERBENA_SHM_DIR");
    char own[sizeof(c->name)];
    int err;

    if (!name || !*name)
        name = hca_engine->fabric && hca_engine->fabric(own, sizeof(own)) ? own : "default";
    if (strlen(name) >= sizeof(c->name) ||
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") !=
            strlen(name)) {
        log_error("VERBENA_FABRIC=%s: expected up to 64 letters, digits, '_', '.', '-'", name);
        return EINVAL;
    }
    strcpy(c->name, name);
    dir = dir && *dir ? dir : "/dev/shm";
    if (strlen(dir) >= sizeof(c->dir)) {
        log_error("VERBENA_SHM_DIR is too long");
        return EINVAL;
    }
    strcpy(c->dir, dir);
    /* 0: as in the existing fabric, or 1 */
    if ((err = read_number("VERBENA_NODES", 0, 1, FABRIC_NODES_MAX, &c->nodes)) ||
        (err = read_number("VERBENA_NODE", 0, 0, FABRIC_NODES_MAX - 1, &c->node)) ||
        (err = read_number("VERBENA_DEVICES", 0, 1, 8, &c->devices)) ||
        (err = read_number("VERBENA_PORTS", 0, 1, 4, &c->ports)) ||
        (err = read_number("VERBENA_SEED", 0, 1, UINT32_MAX, &c->seed)))
        return err;
    return 0;
}

static bool same_file(int fd, const struct stat *identity)
{
    struct stat st;

    return fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == identity->st_dev &&
           st.st_ino == identity->st_ino;
}

int segment_open_again(void)
{
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);

    if (fd >= 0 && !same_file(fd, &file_identity)) {
        close(fd);
        errno = ENOENT;
        return -1;
    }
    return fd;
}

int segment_fd(void)
{
    int fd = load_relaxed(&file);

    if (same_file(fd, &file_identity))
        return fd;
    fd = segment_open_again();
    if (fd >= 0) {
        flock(fd, LOCK_SH | LOCK_NB);
        store_relaxed(&file, fd);
    }
    return fd;
}

bool segment_reaches(uint64_t end)
{
    struct stat st;

    if (fstat(segment_fd(), &st))
        return false;
    uint64_t known = (uint64_t)st.st_size < seg_limit ? (uint64_t)st.st_size : seg_limit;
    store_relaxed(&seg_known, known);
    return end <= known;
}

/* Avoid low descriptors, which programs may close or expect to get. */
static int move_up(int fd)
{
    int high = fcntl(fd, F_DUPFD_CLOEXEC, 512);

    if (high < 0)
        return fd;
    close(fd);
    return high;
}

/* Never opens and creates in one step: what another user has put there must not look like ours. */
static int open_or_create(void)
{
    for (int tries = 0; tries < 100; tries++) {
        int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd < 0 && errno == ENOENT)
            fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

static const char *why_not_ours(const struct stat *st)
{
    if (st->st_uid != geteuid())
        return "it belongs to another user";
    if (!S_ISREG(st->st_mode))
        return "it is not a plain file";
    return st->st_nlink > 1 ? "it has another name, too (a hard link)" : NULL;
}

static int open_file(void)
{
    int fd = open_or_create(), err = errno;
    const char *why = NULL;
    struct stat st;

    if (fd >= 0 ? fstat(fd, &st) == 0 : lstat(path, &st) == 0)
        why = why_not_ours(&st);
    if (fd >= 0 && !why)
        return move_up(fd);
    log_error("%s: %s%s", path, why ? why : strerror(err), why ? "; choose another --fabric" : "");
    if (fd >= 0)
        close(fd);
    errno = why ? EPERM : err;
    return -1;
}

static int map_file(int fd)
{
    uint64_t size = (uint64_t)MAX_UNITS << UNIT_SHIFT;

    /* Map the maximum size at once, so that growth needs no remapping. With a limit on the address
     * space, map as much as it allows. */
    for (; size >= 2 * sizeof(struct segment); size /= 2) {
        void *base = mmap((void *)hca_engine->base_address, size, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_NORESERVE, fd, 0);
        if (base != MAP_FAILED) {
            madvise(base, size, MADV_DONTDUMP);
            seg = base;
            seg_limit = size;
            store_relaxed(&seg_known, 0);
            return 0;
        }
    }
    return errno;
}

static void unmap_file(void)
{
    munmap(seg, seg_limit);
    seg = NULL;
    seg_limit = 0;
    store_relaxed(&seg_known, 0);
}

static unsigned or_one(unsigned number)
{
    return number ? number : 1;
}

static int check_port_count(void)
{
    unsigned ports = or_one(config.nodes) * or_one(config.devices) * or_one(config.ports);

    if (ports <= MAX_FABRIC_PORTS)
        return 0;
    log_error("%u nodes with %u devices of %u ports each: a fabric has at most %u ports",
              or_one(config.nodes), or_one(config.devices), or_one(config.ports), MAX_FABRIC_PORTS);
    return EINVAL;
}

/* Called before other processes attach. Unicast LIDs end at 0xbfff. */
static void choose_numbers(void)
{
    seg->nodes = or_one(config.nodes);
    seg->devices = or_one(config.devices);
    seg->ports = or_one(config.ports);
    seg->seed = config.seed;
    if (!seg->seed && hca_engine->base_address) /* modelled: the same command, the same numbers */
        for (const char *c = config.name; *c; c++)
            seg->seed = mix(seg->seed + *c);
    else if (!seg->seed && getrandom(&seg->seed, sizeof(seg->seed), 0) != sizeof(seg->seed))
        seg->seed = mix(now_ns() + getpid());
    seg->first_lid =
        1 + segment_random(SEED_LID) % (0xbfff - seg->nodes * seg->devices * seg->ports);
    seg->guid_part = segment_random(SEED_GUID);
    store_relaxed(&seg->qp_generation, segment_random(SEED_QP_GENERATION));
}

/* The process slots are reserved in groups. */
#define GROUP 32
static uint64_t end_of_group(unsigned procs)
{
    return round_up(offsetof(struct segment, procs) +
                        round_up(procs, GROUP) * sizeof(struct proc_slot),
                    PAGE_BYTES);
}

/* The rest of the head is a hole. */
static int reserve_head(int fd, uint64_t from, uint64_t to)
{
    int err = file_reserve(fd, from, to - from);

    if (err)
        log_error("%s: not enough memory for the fabric's segment (%lu KiB): %s", path,
                  (unsigned long)(to >> 10), strerror(err));
    return err;
}

int segment_reserve_procs(unsigned count)
{
    uint64_t from = segment_head_bytes(), to = end_of_group(count);

    return from < to ? reserve_head(segment_fd(), from, to) : 0;
}

uint64_t segment_head_bytes(void)
{
    unsigned procs = load_acquire(&seg->proc_high);

    return end_of_group(procs < 1 ? 1 : procs < MAX_PROCS ? procs : MAX_PROCS);
}

static int make_segment(int fd)
{
    uint64_t units = round_up(sizeof(struct segment), UNIT_SIZE) >> UNIT_SHIFT;
    uint64_t size = units << UNIT_SHIFT;
    int err;

    if ((err = check_port_count()) || (err = reserve_head(fd, 0, end_of_group(1))) ||
        (err = reserve_head(fd, size - PAGE_BYTES, size)))
        return err;
    if ((err = map_file(fd)))
        return err;
    choose_numbers();
    seg->magic = SEGMENT_MAGIC;
    seg->version = SEGMENT_VERSION;
    seg->size_check = sizeof(struct segment);
    seg->units_used = units;
    seg->next_xrcd = 1;
    store_release(&seg->ready, 1);
    return 0;
}

static int check_header(int fd)
{
    struct segment *head;
    struct stat st;
    int err = 0;

    if (fstat(fd, &st))
        return errno;
    if (st.st_size < 4096)
        return EAGAIN;
    head = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    if (head == MAP_FAILED)
        return errno;
    if (head->magic == 0)
        err = EAGAIN;
    else if (head->magic != SEGMENT_MAGIC || head->version != SEGMENT_VERSION ||
             head->size_check != sizeof(struct segment) ||
             (uint64_t)st.st_size < sizeof(struct segment))
        err = EPROTO;
    else if (!load_acquire(&head->ready))
        err = EAGAIN;
    if (err == EPROTO)
        log_info("%s: segment version %u, layout %u; this library has version %u, layout %zu", path,
                 head->version, head->size_check, SEGMENT_VERSION, sizeof(struct segment));
    munmap(head, 4096);
    return err;
}

/* We hold the exclusive lock, so no process should use the file. But programs that close unknown
 * descriptors lose their lock, so also check the process table. */
static bool in_use(int fd)
{
    bool alive;

    if (check_header(fd) || map_file(fd))
        return false;
    alive = proc_any_alive(fd);
    unmap_file();
    return alive;
}

static bool has_our_name(int fd)
{
    struct stat linked;

    return stat(path, &linked) == 0 && same_file(fd, &linked);
}

/* With the exclusive lock held. A used file is replaced, not reinitialised: threads of an exiting
 * process may still have it mapped. */
static int begin_segment(int fd)
{
    struct stat st;
    int err;

    if (fstat(fd, &st))
        return errno;
    if (st.st_size) {
        unlink(path);
        return EAGAIN;
    }
    wake_file_remove_all(path);
    err = make_segment(fd);
    if (!err)
        unmap_file();
    else
        unlink(path);
    return err;
}

/* One attempt; EAGAIN: the file vanished, or another process was creating it. */
static int try_attach(void)
{
    int err = 0, fd = open_file();

    if (fd < 0)
        return errno;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && has_our_name(fd) && !in_use(fd))
        err = begin_segment(fd);
    if (!err && flock(fd, LOCK_SH))
        err = errno;
    if (!err && !has_our_name(fd))
        err = EAGAIN;
    if (!err)
        err = check_header(fd);
    if (!err)
        err = map_file(fd);
    if (err) {
        close(fd);
        return err;
    }
    fstat(fd, &file_identity);
    store_relaxed(&file, fd);
    return 0;
}

static int check_shape(void)
{
    const struct {
        const char *what;
        unsigned want, have;
    } rows[] = {
        { "nodes", config.nodes, seg->nodes },
        { "devices", config.devices, seg->devices },
        { "ports", config.ports, seg->ports },
    };

    for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
        if (rows[i].want && rows[i].want != rows[i].have) {
            log_error("fabric '%s' has %u %s, this process asks for %u", config.name, rows[i].have,
                      rows[i].what, rows[i].want);
            return EINVAL;
        }
    }
    if (config.node >= seg->nodes) {
        log_error("fabric '%s' has %u nodes: there is no node %u", config.name, seg->nodes,
                  config.node);
        return EINVAL;
    }
    return 0;
}

static void detach(void)
{
    unmap_file();
    close(load_relaxed(&file));
    store_relaxed(&file, -1);
}

static int attach_locked(void)
{
    int err;

    if (proc_self >= 0)
        return 0;
    if (load_acquire(&has_left)) /* another thread is ending the process */
        return ESHUTDOWN;
    /* In a forked child, inherited objects may still use the parent's mapping; unmap it only if the
     * new mapping needs its address. */
    if (seg && hca_engine->base_address)
        munmap(seg, seg_limit);
    seg = NULL;
    log_init();
    if ((err = segment_read_config(&config)))
        return err;
    snprintf(path, sizeof(path), "%s/verbena-%u-%s", config.dir, (unsigned)geteuid(), config.name);
    for (int tries = 0; (err = try_attach()) == EAGAIN && tries < 2000; tries++)
        usleep(1000);
    if (err) {
        if (err == EPROTO)
            log_error("%s: in use by processes with another version of Verbena; let them end, "
                      "or choose another VERBENA_FABRIC", path);
        return err;
    }
    if ((err = check_shape()) || (err = proc_join(config.node))) {
        detach();
        return err;
    }
    return 0;
}

int segment_attach(void)
{
    pthread_mutex_lock(&attach_mutex);
    int err = attach_locked();
    pthread_mutex_unlock(&attach_mutex);
    return err;
}

static void forget_in_child(void)
{
    proc_self = -1;
    store_relaxed(&file, -1);
    proc_lock_forget();
    epoch_forget();
    arena_forget();
    bounce_forget();
    qp_forget();
    pthread_mutex_init(&attach_mutex, NULL);
}

/* Other threads may be inside a verb until the process has ended: a peer frees the objects they
 * use, and the kernel closes the file. */
__attribute__((destructor)) static void leave(void)
{
    store_release(&has_left, true);
    if (proc_self < 0)
        return;
    int fd = segment_fd();
    idle_warn();
    hca_engine->stop();
    proc_leave();
    if (fd < 0)
        return;
    /* Release the shared lock before requesting the exclusive one: two leaving processes would
     * block each other. A process that was just killed may still hold it, and will not clean up. */
    flock(fd, LOCK_UN);
    for (int tries = 0; tries < 100; tries++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
            if (has_our_name(fd) && !proc_any_alive(fd)) {
                wake_file_remove_all(path); /* before another process can make a new segment */
                unlink(path);
            }
            flock(fd, LOCK_UN);
            return;
        }
        if (proc_any_staying())
            return;
        usleep(1000);
    }
}

__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, forget_in_child);
}
