/* SPDX-License-Identifier: BSD-2-Clause */
/* Loaded into MPI programs that run on a model: MPI's clock is that of the modelled world, its
 * processes begin barrier when MPI_Init returns, and from then on their threads wait for each
 * other in virtual time (thread.c). Clocks, sleeps and files are left alone. */
#include "sim/guest/guest.h"

#include "verbena.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#define PMIX_FAILED (-1) /* PMIX_ERROR */

/* Of all processes of the job; set by the component. What a program computes before they have met
 * would otherwise make the time of their start depend on who came first. */
extern void (*verbena_mpi_meet)(void);
EXPORT void (*verbena_mpi_meet)(void);

/* Called by it when they have. */
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

bool guest_is_one(void)
{
    return started && turns->takes_part();
}

void guest_leave(void)
{
    guest_inside--;
    turns->computes();
}

/* Threads of OpenMP wait for each other by system calls that cannot be seen, and most of them never
 * call MPI. */
static bool is_announced(const void *caller)
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
    guest_adopts = is_announced;
    turns->watch_strangers();
    start_time = verbena_now();
    started = true;
}

/* Programs have deadlines from clocks that are not virtual: what is left counts. */
uint64_t guest_clock_deadline(int clock, uint64_t seconds, uint64_t ns)
{
    struct timespec now;
    uint64_t then = seconds * SECOND_NS + ns, real;

    clock_gettime(clock, &now);
    real = now.tv_sec * SECOND_NS + now.tv_nsec;
    return turns->now() + (then > real ? then - real : 0);
}

/* Time since the start of this machine is a small part of that since 1970. */
uint64_t guest_clock_deadline_any(uint64_t seconds, uint64_t ns)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return guest_clock_deadline(seconds < (uint64_t)now.tv_sec / 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME,
                          seconds, ns);
}

static void meet(void)
{
    if (verbena_mpi_meet)
        verbena_mpi_meet();
}

/* What a library would call by that name without this one; it may not be visible to all. */
static void *defined_for(const void *caller, const char *name)
{
    Dl_info library;
    void *handle = NULL;

    if (dladdr(caller, &library))
        handle = dlopen(library.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    return handle ? dlsym(handle, name) : NULL;
}

/* Asks the launcher about another process. That takes no virtual time, and others are not to go on
 * meanwhile: who waits for this one would see when the answer came. */
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
    guest_inside++;
    status = real(process, key, info, count, value);
    guest_inside--;
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

EXPORT double MPI_Wtime(void)
{
    return (verbena_now() - start_time) * 1e-9;
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
