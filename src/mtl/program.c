/* Loaded into MPI programs that run on a model: MPI's clock is that of the modelled world, and its
 * processes begin together when MPI_Init returns. */
#include "verbena.h"

#include <dlfcn.h>
#include <errno.h>

#define EXPORT __attribute__((visibility("default")))

/* Of all processes of the job; set by the component. What a program computes before they have met
 * would otherwise make the time of their start depend on who came first. */
extern void (*verbena_mpi_meet)(void);
EXPORT void (*verbena_mpi_meet)(void);

/* Set by the component when they have. */
extern uint64_t verbena_mpi_start;
EXPORT uint64_t verbena_mpi_start;

int MPI_Init(int *argc, char ***argv);
int PMPI_Init(int *argc, char ***argv);
int MPI_Init_thread(int *argc, char ***argv, int required, int *provided);
int PMPI_Init_thread(int *argc, char ***argv, int required, int *provided);
double MPI_Wtime(void);
double PMPI_Wtime(void);
double MPI_Wtick(void);
double PMPI_Wtick(void);

static void meet(void)
{
    if (verbena_mpi_meet)
        verbena_mpi_meet();
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
    return (verbena_now() - verbena_mpi_start) * 1e-9;
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
