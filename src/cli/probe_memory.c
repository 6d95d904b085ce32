/* SPDX-License-Identifier: BSD-2-Clause */
#include "probe_memory.h"
#include "options.h"
#include "segment.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* verbs.h defines this name as a macro. */
#undef ibv_reg_mr

#define QUEUE_PAIRS 64
#define REGIONS     1024

static double segment_bytes(void)
{
    struct stat status;
    char path[PATH_MAX];

    return segment_path(path, sizeof(path)) || stat(path, &status) ? 0 : status.st_blocks * 512.0;
}

/* The preloaded adapter, not the library that this program is linked with. */
#define CALL(name) ((__typeof__(&name))dlsym(RTLD_DEFAULT, #name))

static bool make_queue_pair(struct ibv_context *context, struct ibv_pd *pd)
{
    struct ibv_cq *cq = CALL(ibv_create_cq)(context, PROBE_RECEIVES + PROBE_SENDS, NULL, NULL, 0);
    struct ibv_qp_init_attr attributes = {
        .send_cq = cq,
        .recv_cq = cq,
        .qp_type = IBV_QPT_RC,
        .cap = { .max_send_wr = PROBE_SENDS,
                 .max_recv_wr = PROBE_RECEIVES,
                 .max_send_sge = 1,
                 .max_recv_sge = 1 },
    };

    return cq && CALL(ibv_create_qp)(pd, &attributes);
}

static bool make_objects(struct ibv_context *context, struct ibv_pd *pd, double at[3])
{
    static char memory[REGIONS];

    at[0] = segment_bytes();
    for (int i = 0; i < QUEUE_PAIRS; i++) {
        if (!make_queue_pair(context, pd))
            return false;
    }
    at[1] = segment_bytes();
    for (int i = 0; i < REGIONS; i++) {
        if (!CALL(ibv_reg_mr)(pd, &memory[i], 1, IBV_ACCESS_LOCAL_WRITE))
            return false;
    }
    at[2] = segment_bytes();
    return true;
}

/* The objects go with the process. */
int probe_memory_print(void)
{
    struct ibv_device **list = CALL(ibv_get_device_list)(NULL);
    struct ibv_context *context = list && *list ? CALL(ibv_open_device)(*list) : NULL;
    struct ibv_pd *pd = context ? CALL(ibv_alloc_pd)(context) : NULL;
    double at[3];

    if (!pd || !make_objects(context, pd, at))
        return CLI_FAILED;
    printf("%.0f %.0f %.0f\n", at[0], (at[1] - at[0]) / QUEUE_PAIRS, (at[2] - at[1]) / REGIONS);
    return CLI_OK;
}

static void run_child(const struct launch *launch, const char *directory, int output)
{
    setenv("VERBENA_SHM_DIR", directory, 1);
    setenv("VERBENA_FABRIC", "doctor", 1);
    unsetenv("VERBENA_NODE");
    if (launch_environment(launch, NULL))
        _exit(CLI_FAILED);
    dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
    dup2(output, STDOUT_FILENO);
    execl("/proc/self/exe", "verbena", "probe", "memory", (char *)NULL);
    _exit(CLI_NOT_FOUND);
}

static bool read_numbers(int fd, struct probe_memory *out)
{
    FILE *lines = fdopen(fd, "r");
    bool found =
        lines && fscanf(lines, "%lf %lf %lf", &out->fabric, &out->queue_pair, &out->region) == 3;

    if (lines)
        fclose(lines);
    else
        close(fd);
    return found;
}

static void remove_directory(const char *directory)
{
    char path[PATH_MAX];

    if (snprintf(path, sizeof(path), "%s/verbena-%u-doctor", directory, getuid()) < PATH_MAX)
        unlink(path);
    rmdir(directory);
}

/* Not in the directory of the segments, which may be too small. */
bool probe_memory(const struct launch *launch, struct probe_memory *out)
{
    char directory[] = "/tmp/verbena-doctor-XXXXXX";
    bool found = false;
    int ends[2];
    pid_t child;

    if (!mkdtemp(directory))
        return false;
    if (!pipe2(ends, O_CLOEXEC)) {
        child = fork();
        if (!child)
            run_child(launch, directory, ends[1]);
        close(ends[1]);
        found = read_numbers(ends[0], out);
        if (child > 0)
            waitpid(child, NULL, 0);
    }
    remove_directory(directory);
    return found && out->fabric > 0;
}
