/* SPDX-License-Identifier: BSD-2-Clause */
/* Linked with libibverbs and libmlx5, like perftest: prints its devices. */
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <stdio.h>

int main(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);

    for (int i = 0; list && list[i]; i++)
        printf("device %s%s\n", ibv_get_device_name(list[i]),
               mlx5dv_is_supported(list[i]) ? " is taken for a Mellanox one" : "");
    return !list;
}
