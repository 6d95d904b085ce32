/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds libibverbs with dlopen() and dlvsym(), like programs that are not linked with it, and prints
 * what it found.
 */
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>

static int complain(const char *what)
{
    fprintf(stderr, "byname: %s: %s\n", what, dlerror());
    return 1;
}

int main(void)
{
    struct ibv_device **(*get_list)(int *), **(*old_list)(int *);
    const char *(*get_name)(struct ibv_device *);
    int (*provider_call)(void *), (*listen_call)(void *, int);
    void *verbs = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
    void *cm = dlopen("librdmacm.so.1", RTLD_NOW | RTLD_LOCAL);
    struct ibv_device **list;
    int count = 0;

    if (!verbs || !cm)
        return complain("dlopen");
    *(void **)&get_list = dlvsym(verbs, "ibv_get_device_list", "IBVERBS_1.1");
    *(void **)&old_list = dlvsym(verbs, "ibv_get_device_list", "IBVERBS_1.0");
    *(void **)&get_name = dlsym(verbs, "ibv_get_device_name");
    *(void **)&provider_call = dlsym(verbs, "ibv_cmd_create_qp");
    *(void **)&listen_call = dlvsym(cm, "rdma_listen", "RDMACM_1.0");
    if (!get_list || !old_list || !get_name || !provider_call || !listen_call)
        return complain("dlvsym");
    list = get_list(&count);
    if (!list)
        return complain("ibv_get_device_list");
    for (int i = 0; i < count; i++)
        printf("device %s\n", get_name(list[i]));
    printf("provider call %s\n", provider_call(NULL) == EOPNOTSUPP ? "declined" : "accepted");
    errno = 0;
    printf("old list %s\n", !old_list(&count) && errno == EOPNOTSUPP ? "declined" : "accepted");
    return 0;
}
