/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens the first device, reports it, and keeps it open until a signal ends the program. */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;

    if (!context || !ibv_alloc_pd(context)) {
        fprintf(stderr, "hold: no device\n");
        return 1;
    }
    printf("holding %d\n", getpid());
    fflush(stdout);
    for (;;)
        pause();
}
