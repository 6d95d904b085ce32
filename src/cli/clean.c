/* SPDX-License-Identifier: BSD-2-Clause */
/* verbena clean: remove the segments that no process uses any more. */
#include "commands.h"
#include "json.h"
#include "segment.h"

#include <errno.h>
#include <string.h>
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

static void clean_one(const char *path, void *context)
{
    struct cleaning *cleaning = context;
    enum segment_state before, after;
    struct stat status;
    const char *outcome;
    double bytes;
    int error;

    if (cleaning->fabric && strcmp(segment_fabric(path), cleaning->fabric))
        return;
    before = after = stat(path, &status) ? SEGMENT_ABSENT : segment_state_of(path);
    if (before == SEGMENT_ABSENT)
        return;
    if (before == SEGMENT_STALE && !cleaning->dry_run)
        after = segment_remove(path);
    error = errno;
    bytes = status.st_blocks * 512.0;
    outcome = tell(cleaning, before, after, bytes);
    if (!strcmp(outcome, "failed"))
        cli_error("%s: %s", path, strerror(error));
    if (cleaning->json)
        json_array_append_new(cleaning->json, json_pack("{s:s, s:s, s:I, s:s}", "fabric",
                                                        segment_fabric(path), "path", path, "bytes",
                                                        (json_int_t)bytes, "state", outcome));
    else
        printf("%-8s %8.1f MiB  %s\n", outcome, bytes / MEBIBYTE, path);
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
    if (cleaning.json)
        json_print(cleaning.json);
    else
        print_total(&cleaning);
    if (cleaning.fabric && cleaning.used)
        cli_error("fabric '%s' is in use: not removed", cleaning.fabric);
    return cleaning.failed || (cleaning.fabric && cleaning.used) ? CLI_FAILED : CLI_OK;
}
