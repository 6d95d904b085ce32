/* SPDX-License-Identifier: BSD-2-Clause */
/* verbena clean: remove the segments that no process uses any more. */
#include "commands.h"
#include "json.h"
#include "segment.h"
#include "util/sysv_memory.h"

#include <errno.h>
#include <string.h>
#include <sys/shm.h>
#include <sys/stat.h>

#define MEBIBYTE (1024.0 * 1024)

struct cleaning {
    json_t *json;       /* NULL: print text */
    const char *fabric; /* NULL: all */
    bool dry_run;
    int removed, used, failed;
    double bytes;
};

static const char *tell(struct cleaning *cleaning, enum segment_state before,
                        enum segment_state after, double bytes)
{
    if (before == SEGMENT_IN_USE || after == SEGMENT_IN_USE) {
        cleaning->used++;
        return "in use";
    }
    if (after == SEGMENT_STALE && !cleaning->dry_run) {
        cleaning->failed++;
        return "failed";
    }
    cleaning->removed++;
    cleaning->bytes += bytes;
    return cleaning->dry_run ? "stale" : "removed";
}

/* The fabric is NULL if there is none; errno is the reason of a failure. */
static void report(const struct cleaning *cleaning, const char *path, const char *fabric,
                   const char *outcome, double bytes)
{
    if (!strcmp(outcome, "failed"))
        cli_error("%s: %s", path, strerror(errno));
    if (cleaning->json)
        json_array_append_new(cleaning->json, json_pack("{s:s?, s:s, s:I, s:s}", "fabric", fabric,
                                                        "path", path, "bytes", (json_int_t)bytes,
                                                        "state", outcome));
    else
        printf("%-8s %8.1f MiB  %s\n", outcome, bytes / MEBIBYTE, path);
}

static void clean_one(const char *path, void *context)
{
    struct cleaning *cleaning = context;
    enum segment_state before, after;
    struct stat status;

    if (cleaning->fabric && strcmp(segment_fabric(path), cleaning->fabric))
        return;
    before = after = stat(path, &status) ? SEGMENT_ABSENT : segment_state_of(path);
    if (before == SEGMENT_ABSENT)
        return;
    if (before == SEGMENT_STALE && !cleaning->dry_run)
        after = segment_remove(path);
    report(cleaning, path, segment_fabric(path), tell(cleaning, before, after, status.st_blocks * 512.0),
           status.st_blocks * 512.0);
}

/* Memory of a rank that was killed: it has no name, and belongs to no fabric. */
static void clean_sysv(int id, uint64_t bytes, void *context)
{
    struct cleaning *cleaning = context;
    enum segment_state after = SEGMENT_STALE;
    char name[64];

    snprintf(name, sizeof(name), "System V segment %d", id);
    if (!cleaning->dry_run && !shmctl(id, IPC_RMID, NULL))
        after = SEGMENT_ABSENT;
    report(cleaning, name, NULL, tell(cleaning, SEGMENT_STALE, after, bytes), bytes);
}

static void print_total(const struct cleaning *cleaning)
{
    if (!cleaning->removed && !cleaning->used && !cleaning->failed) {
        printf("No segments in %s%s%s: nothing to clean up.\n", segment_directory(),
               cleaning->fabric ? " of fabric " : "", cleaning->fabric ? cleaning->fabric : "");
        return;
    }
    printf("%s %d stale segment%s, %.1f MiB; %d in use.\n",
           cleaning->dry_run ? "Would remove" : "Removed", cleaning->removed,
           cleaning->removed == 1 ? "" : "s", cleaning->bytes / MEBIBYTE, cleaning->used);
}

/* A fabric that was named and is in use is a failure: it could not be cleaned. */
int cli_clean(const struct invocation *invocation)
{
    struct cleaning cleaning = {
        .fabric = option_value(invocation, "fabric"),
        .dry_run = option_value(invocation, "dry-run"),
        .json = option_value(invocation, "json") ? json_array() : NULL,
    };

    if (invocation->operand_count)
        return cli_usage_error(invocation->command, "takes no operands");
    options_export(invocation);
    if (segment_each(clean_one, &cleaning)) {
        cli_error("%s: %s", segment_directory(), strerror(errno));
        return CLI_FAILED;
    }
    if (!cleaning.fabric)
        sysv_memory_each_stale(clean_sysv, &cleaning);
    if (cleaning.json)
        json_print(cleaning.json);
    else
        print_total(&cleaning);
    if (cleaning.fabric && cleaning.used)
        cli_error("fabric '%s' is in use: not removed", cleaning.fabric);
    return cleaning.failed || (cleaning.fabric && cleaning.used) ? CLI_FAILED : CLI_OK;
}
