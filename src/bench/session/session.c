/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/session/session.h"
#include "bench/session/experiments.h"
#include "bench/metadata.h"
#include "bench/interrupt.h"
#include "bench/other_load.h"
#include "bench/session/null.h"
#include "bench/session/ranks.h"
#include "bench/report.h"
#include "util/file.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

struct session {
    const struct session_spec *spec;
    struct settings settings; /* of the command line */
    struct results *results;
    struct report *report;
    unsigned int failed;
    unsigned int skipped;
    bool device_known;
    bool unreachable; /* the other host; it is not tried again for the other experiments */
};

/* Describes the device once, when the first experiment opens it. */
static void describe_device(struct session *session, struct bench *bench)
{
    struct adapter adapter;

    if (session->device_known || adapter_open(bench, &adapter))
        return;
    metadata_of_device(&adapter, session->spec->software, &session->results->device);
    session->device_known = true;
    printf("%s, %s\n", results_metadata_get(&session->results->device, "name"),
           results_metadata_get(&session->results->device, "kind"));
    adapter_close(&adapter);
}

static void run_one(struct session *session, const struct session_run *run)
{
    struct assignment assignment = { .experiment = run->experiment, .ranks = run->ranks };
    struct ranks ranks;
    char error[512];
    struct bench bench = {
        .experiment = run->experiment,
        .settings = &assignment.settings,
        .control = &ranks.control,
        .report = session->report,
        .ranks = run->ranks,
    };

    settings_init(&assignment.settings);
    settings_read(&assignment.settings, run->words, run->count, error, sizeof(error));
    if (!ranks_start(&ranks, &assignment, run->words, run->count, session->spec->version))
        describe_device(session, &bench);
    else
        session->unreachable = assignment.settings.connect != NULL;
    report_begin(session->report, run->experiment, experiment_group(run->experiment),
                 &assignment.settings);
    if (ranks.control.status == CONTROL_OK)
        rank_run(&bench);
    if (vtime.on)
        vtime.leave();
    control_end(&ranks.control);
    ranks_stop(&ranks);
    report_end(session->report, ranks.control.status, ranks.control.text);
    session->failed += ranks.control.status == CONTROL_FAILED;
    session->skipped += ranks.control.status == CONTROL_SKIPPED;
}

static bool has_ending(const char *path, const char *ending)
{
    size_t length = strlen(path), end = strlen(ending);

    return length > end && !strcmp(path + length - end, ending);
}

static int report_output_error(const char *path)
{
    fprintf(stderr, "verbena bench: %s: %s\n", file_shown(path), strerror(errno));
    return SESSION_FAILED;
}

static int write_results(const struct session *session)
{
    const char *path = session->settings.output;
    if (!path || !results_write_file(session->results, path))
        return SESSION_OK;
    return report_output_error(path);
}

static int check_output(const struct session *session)
{
    const char *path = session->settings.output;
    struct stat status;

    if (!path)
        return SESSION_OK;
    if (file_is_stdout(path))
        return file_claim_stdout() ? report_output_error(path) : SESSION_OK;
    if (!has_ending(path, ".json") && !has_ending(path, ".csv")) {
        fprintf(stderr, "verbena bench: --output must end in .json or .csv, or be -, not '%s'\n",
                path);
        return SESSION_USAGE;
    }
    if (!stat(path, &status) && !S_ISREG(status.st_mode)) {
        errno = S_ISDIR(status.st_mode) ? EISDIR : EINVAL;
        return report_output_error(path);
    }
    return write_results(session);
}

static void print_totals(const struct session *session, unsigned int planned)
{
    unsigned int started = session->results->count;

    printf("\n%u experiment%s: %u measured, %u skipped, %u failed", planned,
           planned == 1 ? "" : "s", started - session->failed - session->skipped, session->skipped,
           session->failed);
    if (started < planned)
        printf(", %u not started", planned - started);
    puts(session->results->interrupted ? "; interrupted, results so far are kept" : "");
    if (session->settings.output && !file_is_stdout(session->settings.output))
        printf("results: %s\n", session->settings.output);
    else if (!session->settings.output && !session->spec->operand_count)
        puts("-o FILE.json saves the results; 'verbena advise FILE.json' interprets them");
}

static int finish(struct session *session, const struct plan *plan)
{
    unsigned int violations;

    session->results->interrupted = interrupt_seen();
    print_totals(session, plan->count);
    violations = thresholds_check(&plan->thresholds, session->results, stdout);
    fflush(stdout);
    if (write_results(session))
        return SESSION_FAILED;
    if (session->results->interrupted)
        return SESSION_SIGNALLED + interrupt_signal();
    if (violations)
        return SESSION_THRESHOLD;
    return session->failed ? SESSION_FAILED : SESSION_OK;
}

int session_run(const struct session_spec *spec, const struct plan *plan)
{
    struct session session = { .spec = spec };
    struct other_load before;
    char error[512], date[32];
    double load;
    int status;

    settings_init(&session.settings);
    settings_read(&session.settings, spec->words, spec->word_count, error, sizeof(error));
    results_now(date, sizeof(date));
    session.results = results_new(spec->version, date, spec->command);
    status = check_output(&session);
    if (status)
        goto free_results;
    session.report = report_new(session.results, stdout, plan->count);
    interrupt_catch();
    signal(SIGPIPE, SIG_IGN);
    clock_start();
    metadata_of_machine(&session.results->machine);
    results_metadata_set(&session.results->machine, "harness overhead", "%.1f ns per round trip",
                         null_pingpong_ns());
    session.results->deterministic = vtime_is_deterministic();
    other_load_read(&before);
    for (unsigned int i = 0; i < plan->count && !interrupt_seen() && !session.unreachable; i++) {
        run_one(&session, &plan->runs[i]);
        /* Write after each experiment, so that a later crash does not lose results. */
        if (i + 1 < plan->count && !file_is_stdout(session.settings.output) &&
            write_results(&session))
            break;
    }
    load = other_load_since(&before);
    /* In virtual time other programs make no difference, and equal runs write equal files. */
    if (!isnan(load) && !session.results->deterministic)
        results_add_load(session.results, load);
    status = finish(&session, plan);
    report_free(session.report);
free_results:
    results_free(session.results);
    return status;
}
