/* SPDX-License-Identifier: BSD-2-Clause */
/* Puts the buffers of an MPI program at the same places within their pages in every run, because a
 * buffer that covers one page more takes longer to register and to translate. Open MPI's own
 * threads allocate and free in real time, so where the C library finds room differs from run to
 * run; and so does the length of the environment, which moves the stack.
 *
 * Blocks of a page or more, of threads in virtual time, are whole pages. A block is reused only for
 * blocks of its size class. All others, and those of other threads, are the C library's. */
#include "sim/guest/guest.h"

#include "util/spinlock.h"

#include <alloca.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ARENA_BYTES (1ull << 38) /* of address space */
#define STEPS       8            /* size classes for each power of two */
#define CLASSES     255
#define LARGE       (32ull << 20) /* the memory of such blocks goes back to the system */

void *__libc_malloc(size_t size);
void __libc_free(void *block);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

struct free_block {
    struct free_block *next;
};

static struct spinlock lock;
static char *arena;
static uint8_t *classes; /* one more than the size class of the block that begins at a page */
static uint64_t used;
static struct free_block *spare[CLASSES];
static bool refused; /* there is no address space */

/* ---- size classes ---- */

static uint64_t class_bytes(uint32_t class)
{
    uint64_t power = PAGE_BYTES << class / STEPS;

    return round_up(power + power / STEPS * (class % STEPS), PAGE_BYTES);
}

static uint32_t class_for(size_t size)
{
    uint32_t class = 0;

    if (size > PAGE_BYTES)
        class = (63 - __builtin_clzll((size - 1) / PAGE_BYTES)) * STEPS;
    while (class_bytes(class) < size)
        class ++;
    return class;
}

/* ---- blocks ---- */

static bool is_ours(const void *block)
{
    return arena && (const char *)block >= arena && (const char *)block < arena + ARENA_BYTES;
}

static uint8_t *class_at(const void *block)
{
    return &classes[((const char *)block - arena) / PAGE_BYTES];
}

static void *reserve(uint64_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

static bool open_arena(void)
{
    if (arena || refused)
        return arena;
    classes = reserve(ARENA_BYTES / PAGE_BYTES);
    arena = classes ? reserve(ARENA_BYTES) : NULL;
    refused = !arena;
    return arena;
}

/* NULL if the C library is to serve the call. */
static void *block_new(size_t size, bool zeroed)
{
    struct free_block *block = NULL;
    bool fresh = false;
    uint32_t class;

    if (size < PAGE_BYTES || size > ARENA_BYTES / 2 || !guest_thread_joined())
        return NULL;
    class = class_for(size);
    spin_lock(&lock);
    if (open_arena() && spare[class]) {
        block = spare[class];
        spare[class] = block->next;
    } else if (arena && used + class_bytes(class) <= ARENA_BYTES) {
        block = (struct free_block *)(arena + used);
        used += class_bytes(class);
        fresh = true;
        *class_at(block) = class + 1;
    }
    spin_unlock(&lock);
    if (block && zeroed && !fresh)
        memset(block, 0, size);
    return block;
}

static void block_free(void *memory)
{
    struct free_block *block = memory;
    uint32_t class = *class_at(memory) - 1;

    if (class_bytes(class) >= LARGE)
        madvise(memory, class_bytes(class), MADV_DONTNEED);
    spin_lock(&lock);
    block->next = spare[class];
    spare[class] = block;
    spin_unlock(&lock);
}

static size_t block_bytes(const void *block)
{
    return class_bytes(*class_at(block) - 1);
}

/* ---- the C library's names ---- */

EXPORT void *malloc(size_t size)
{
    void *block = block_new(size, false);

    return block ? block : __libc_malloc(size);
}

EXPORT void *calloc(size_t count, size_t size)
{
    size_t bytes;
    void *block;

    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    block = block_new(bytes, true);
    return block ? block : __libc_calloc(count, size);
}

EXPORT void free(void *block)
{
    int saved = errno;

    if (is_ours(block))
        block_free(block);
    else
        __libc_free(block);
    errno = saved;
}

EXPORT size_t malloc_usable_size(void *block)
{
    static size_t (*real)(void *);

    if (is_ours(block))
        return block_bytes(block);
    if (!real)
        real = (size_t(*)(void *))dlsym(RTLD_NEXT, "malloc_usable_size");
    return real ? real(block) : 0;
}

EXPORT void *realloc(void *block, size_t size)
{
    size_t old = is_ours(block) ? block_bytes(block) : 0;
    void *moved;

    if (!block)
        return malloc(size);
    if (!is_ours(block) && (size < PAGE_BYTES || !guest_thread_joined()))
        return __libc_realloc(block, size);
    if (is_ours(block) && size >= PAGE_BYTES && class_for(size) == class_for(old))
        return block;
    if (is_ours(block) && !size) {
        free(block);
        return NULL;
    }
    moved = malloc(size);
    if (!moved)
        return NULL;
    if (!old)
        old = malloc_usable_size(block);
    memcpy(moved, block, old < size ? old : size);
    free(block);
    return moved;
}

EXPORT void *memalign(size_t alignment, size_t size)
{
    void *block = alignment <= PAGE_BYTES ? block_new(size, false) : NULL;

    return block ? block : __libc_memalign(alignment, size);
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

EXPORT int posix_memalign(void **result, size_t alignment, size_t size)
{
    void *block;

    if (alignment % sizeof(void *) || !alignment || alignment & (alignment - 1))
        return EINVAL;
    block = memalign(alignment, size);
    if (!block)
        return ENOMEM;
    *result = block;
    return 0;
}

EXPORT void *valloc(size_t size)
{
    return memalign(PAGE_BYTES, size);
}

/* ---- the stack ---- */

typedef int main_fn(int argc, char **argv, char **environment);

static main_fn *program;

/* Begins the program's own frames at the same place within a page. */
static int main_at_page(int argc, char **argv, char **environment)
{
    size_t skew = (uintptr_t)__builtin_frame_address(0) % PAGE_BYTES;
    char *gap = alloca(skew + 16);

    __asm__ volatile("" ::"r"(gap) : "memory");
    return program(argc, argv, environment);
}

int __libc_start_main(main_fn *main, int argc, char **argv, void (*init)(void), void (*fini)(void),
                      void (*linker_fini)(void), void *stack_end);

EXPORT int __libc_start_main(main_fn *main, int argc, char **argv, void (*init)(void),
                             void (*fini)(void), void (*linker_fini)(void), void *stack_end)
{
    __typeof__(&__libc_start_main) start = (__typeof__(start))dlsym(RTLD_NEXT, "__libc_start_main");

    program = main;
    return start(main_at_page, argc, argv, init, fini, linker_fini, stack_end);
}
