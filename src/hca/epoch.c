#include "hca/epoch.h"

#include "hca/proc.h"
#include "util/log.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A thread that is stopped inside an epoch (a debugger, SIGSTOP) must not stop everybody. */
#define GRACE_LIMIT_NS 5000000000ull

_Thread_local struct thread_line *epoch_line;
struct thread_line *epoch_overflow_line;

static pthread_mutex_t overflow_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t line_key;
static bool have_key;
static int line_owner = -1; /* the process slot whose lines the key's values belong to */

static void return_line(void *line)
{
    if (proc_self >= 0 && proc_self == line_owner)
        store_release(&((struct thread_line *)line)->used, 0);
}

int epoch_init(void)
{
    if (!have_key && pthread_key_create(&line_key, return_line))
        return ENOMEM;
    have_key = true;
    epoch_line = NULL;
    line_owner = proc_self;
    epoch_overflow_line = &proc_slot(proc_self)->threads[MAX_THREAD_LINES - 1];
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0)) {
        log_info("no membarrier here: every operation pays a fence");
        atomic_store(&seg->strong_fences, 1);
    }
    return 0;
}

void epoch_claim_line(void)
{
    static struct thread_line nobodys;
    struct proc_slot *slot;

    if (proc_self < 0 && segment_attach()) { /* a forked child that uses what it inherited */
        epoch_line = &nobodys;
        return;
    }
    slot = proc_slot(proc_self);

    for (unsigned i = 0; i < MAX_THREAD_LINES - 1; i++) {
        if (!load_relaxed(&slot->threads[i].used) && !atomic_exchange(&slot->threads[i].used, 1)) {
            epoch_line = &slot->threads[i];
            pthread_setspecific(line_key, epoch_line);
            return;
        }
    }
    epoch_line = epoch_overflow_line;
    store_relaxed(&epoch_line->used, 1);
}

void epoch_shared_enter(void)
{
    pthread_mutex_lock(&overflow_mutex);
}

void epoch_shared_exit(void)
{
    pthread_mutex_unlock(&overflow_mutex);
}

/* Lines that were waited for in vain, and the epoch they stood at: once is enough. */
static _Atomic uint32_t given_up[MAX_PROCS][MAX_THREAD_LINES];

static void await_line(unsigned proc, unsigned index, uint64_t started)
{
    struct thread_line *line = &proc_slot(proc)->threads[index];
    uint32_t seen = load_acquire(&line->epoch);

    if (unlikely((seen & 1) && load_relaxed(&given_up[proc][index]) == seen))
        return;
    for (unsigned spins = 1; (seen & 1) && load_acquire(&line->epoch) == seen; spins++) {
        if (spins % 64)
            cpu_relax();
        else
            sched_yield();
        if (spins % 4096)
            continue;
        if (!proc_alive(proc))
            return;
        if (now_ns() - started > GRACE_LIMIT_NS) {
            store_relaxed(&given_up[proc][index], seen);
            return;
        }
    }
}

void epoch_grace(void)
{
    uint64_t started = now_ns();

    atomic_thread_fence(memory_order_seq_cst);
    if (!load_relaxed(&seg->strong_fences))
        syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
    for (unsigned p = 0; p < load_acquire(&seg->proc_high) && p < MAX_PROCS; p++) {
        struct proc_slot *slot = proc_slot(p);
        if (load_acquire(&slot->state) != PROC_ALIVE)
            continue;
        for (unsigned t = 0; t < MAX_THREAD_LINES; t++)
            if (load_acquire(&slot->threads[t].used) && &slot->threads[t] != epoch_line)
                await_line(p, t, started);
    }
}
