/* SPDX-License-Identifier: BSD-2-Clause */
/* Loaded into MPI programs on a modelled adapter. MPI_Wtime returns virtual time, all processes
 * leave MPI_Init at the same virtual time, and from then on their threads wait for each other in
 * virtual time (thread.c). Clocks, sleeps and files are not intercepted. */
#include "sim/guest/guest.h"

#include "verbena.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#define PMIX_FAILED          (-1) /* PMIX_ERROR */
#define READS_BEFORE_WAITING 100  /* of the clock, without a change */

/* A barrier of all processes of the job, set by the MTL component. Without it, what a program
 * computes before MPI_Init would make the start time depend on who came first. */
extern void (*verbena_mpi_meet)(void);
EXPORT void (*verbena_mpi_meet)(void);

/* The component calls this after the barrier. */
void verbena_mpi_started(void);

static bool started;
static uint64_t start_time;

int MPI_Init(int *argc, char ***argv);
int PMPI_Init(int *argc, char ***argv);
int MPI_Init_thread(int *argc, char ***argv, int required, int *provided);
int PMPI_Init_thread(int *argc, char ***argv, int required, int *provided);
double MPI_Wtime(void);
double PMPI_Wtime(void);
double MPI_Wtick(void);
double PMPI_Wtick(void);

bool guest_thread_joined(void)
{
    return started && vsched->joined();
}

void guest_leave(void)
{
    guest_bypass--;
    vsched->compute_begin();
}

/* OpenMP threads wait for each other by system calls that are not intercepted, and most of them
 * never call MPI. */
static bool adopts_thread(const void *caller)
{
    static const char *const runtimes[] = { "libgomp.so", "libomp.so", "libiomp5.so" };
    Dl_info library;

    if (!dladdr(caller, &library))
        return true;
    for (size_t i = 0; i < sizeof(runtimes) / sizeof(*runtimes); i++) {
        if (strstr(library.dli_fname, runtimes[i]))
            return false;
    }
    return true;
}

EXPORT void verbena_mpi_started(void)
{
    guest_find_internal();
    guest_adopts_thread = adopts_thread;
    vsched->watch_unreserved();
    vsched->on_resume(guest_await_thread_end);
    start_time = verbena_now();
    started = true;
}

/* MPI programs compute deadlines from real clocks: the remaining time counts. */
uint64_t guest_clock_deadline(int clock, uint64_t seconds, uint64_t ns)
{
    struct timespec now;
    uint64_t then = seconds * SECOND_NS + ns, real;

    clock_gettime(clock, &now);
    real = now.tv_sec * SECOND_NS + now.tv_nsec;
    return vsched->now() + (then > real ? then - real : 0);
}

/* The time since boot is much shorter than the time since 1970. */
uint64_t guest_clock_deadline_any(uint64_t seconds, uint64_t ns)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return guest_clock_deadline(
        seconds < (uint64_t)now.tv_sec / 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME, seconds, ns);
}

static void meet(void)
{
    if (verbena_mpi_meet)
        verbena_mpi_meet();
}

/* The function that 'caller' would call without this library; it may be local to its scope. */
static void *defined_for(const void *caller, const char *name)
{
    Dl_info library;
    void *handle = NULL;

    if (dladdr(caller, &library))
        handle = dlopen(library.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    return handle ? dlsym(handle, name) : NULL;
}

/* Asks the launcher about another process. This takes no virtual time, and no other vthread may run
 * meanwhile: it would notice when the reply came. */
int PMIx_Get(const void *process, const char *key, const void *info, size_t count, void **value);

EXPORT int PMIx_Get(const void *process, const char *key, const void *info, size_t count,
                    void **value)
{
    static __typeof__(&PMIx_Get) real;
    int status;

    if (!real)
        real = (__typeof__(real))defined_for(__builtin_return_address(0), "PMIx_Get");
    if (!real)
        return PMIX_FAILED;
    guest_bypass++;
    status = real(process, key, info, count, value);
    guest_bypass--;
    return status;
}

EXPORT int PMPI_Init(int *argc, char ***argv)
{
    int (*init)(int *, char ***) = (int (*)(int *, char ***))dlsym(RTLD_NEXT, "PMPI_Init");
    int status = init ? init(argc, argv) : ENOSYS;

    if (!status)
        meet();
    return status;
}

EXPORT int MPI_Init(int *argc, char ***argv)
{
    return PMPI_Init(argc, argv);
}

EXPORT int PMPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int (*init)(int *, char ***, int, int *) =
        (int (*)(int *, char ***, int, int *))dlsym(RTLD_NEXT, "PMPI_Init_thread");
    int status = init ? init(argc, argv, required, provided) : ENOSYS;

    if (!status)
        meet();
    return status;
}

EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    return PMPI_Init_thread(argc, argv, required, provided);
}

/* Reading the clock takes no time, unless the program does nothing else: it waits for a time. */
EXPORT double MPI_Wtime(void)
{
    static __thread uint64_t last;
    static __thread uint32_t reads;
    uint64_t now = verbena_now();

    if (now != last) {
        reads = 0;
    } else if (reads < READS_BEFORE_WAITING) {
        reads++;
    } else {
        verbena_compute(CLOCK_CALL_NS);
        now = verbena_now();
    }
    last = now;
    return (now - start_time) * 1e-9;
}

EXPORT double PMPI_Wtime(void)
{
    return MPI_Wtime();
}

EXPORT double MPI_Wtick(void)
{
    return 1e-9;
}

EXPORT double PMPI_Wtick(void)
{
    return MPI_Wtick();
}
