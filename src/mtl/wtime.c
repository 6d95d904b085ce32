/* Loaded into MPI programs that run on a model: MPI's clock is that of the modelled world, and
 * starts when the processes of the job have met. */
#include "verbena.h"

#define EXPORT __attribute__((visibility("default")))

/* Set by the component. */
extern uint64_t verbena_mpi_start;
EXPORT uint64_t verbena_mpi_start;

double MPI_Wtime(void);
double PMPI_Wtime(void);
double MPI_Wtick(void);
double PMPI_Wtick(void);

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
