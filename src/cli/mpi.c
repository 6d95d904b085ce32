#include "mpi.h"

#include <stddef.h>
#include <stdlib.h>

static const struct {
    const char *name, *value;
} permissions[] = {
    { "OMPI_ALLOW_RUN_AS_ROOT", "1" },
    { "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1" },
    { "OMPI_MCA_rmaps_base_oversubscribe", "1" },
};

void mpi_permit(void)
{
    for (size_t i = 0; i < sizeof(permissions) / sizeof(*permissions); i++)
        setenv(permissions[i].name, permissions[i].value, 0);
}
