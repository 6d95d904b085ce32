/* verbena doctor: run the checks, tell what was found. */
#include "doctor.h"
#include "commands.h"
#include "json.h"

#include <stdarg.h>

/* clang-format off */
const struct doctor_check doctor_checks[] = {
    { "library", "is libverbena.so where this command looks for it", true, doctor_check_library },
    { "shared-memory", "can segments be made, and how large may they grow", true,
      doctor_check_shared_memory },
    { "preload", "does a program started with the library see the adapter", true, doctor_check_preload },
    { "drop-ins", "do programs that dlopen libibverbs find the adapter too", false,
      doctor_check_dropins },
    { "process_vm", "may a process copy to and from a sibling's memory", false,
      doctor_check_process_vm },
    { "yama", "does the system restrict such copies", false, doctor_check_yama },
    { "ptracer", "can a process permit them for itself", false, doctor_check_ptracer },
    { "copy-way", "which way will data between processes take", false, doctor_check_copy_way },
    { "pidfd", "can a process take over a sibling's file descriptor", false, doctor_check_pidfd },
    { "membarrier", "can one process order the memory accesses of others", false,
      doctor_check_membarrier },
    { "page-moves", "can memory be exchanged while a program uses it", false, doctor_check_page_moves },
    { "region-way", "will peers map registered memory, or copy it", false, doctor_check_region_way },
    { "memfd", "are anonymous memory files to be had", false, doctor_check_memfd },
    { "stale-segments", "did processes that died leave segments behind", false,
      doctor_check_stale_segments },
    { "processors", "can two processes run at the same time", false, doctor_check_processors },
    { "real-devices", "are there RDMA devices in this machine, and do they work", false,
      doctor_check_real_devices },
    { "memory-lock", "may enough memory be locked for real devices", false, doctor_check_memory_lock },
    { "governor", "do the processors keep their speed", false, doctor_check_governor },
    { NULL, NULL, false, NULL },
};
/* clang-format on */

static const char *const verdict_words[] = {
    [VERDICT_YES] = "yes",
    [VERDICT_NO] = "no",
    [VERDICT_NOTE] = "note",
};

void doctor_found(struct finding *finding, enum verdict verdict, const char *format, ...)
{
    va_list arguments;

    finding->verdict = verdict;
    va_start(arguments, format);
    vsnprintf(finding->text, sizeof(finding->text), format, arguments);
    va_end(arguments);
}

void doctor_remedy(struct finding *finding, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(finding->remedy, sizeof(finding->remedy), format, arguments);
    va_end(arguments);
}

static void print_finding(const struct doctor_check *check, const struct finding *finding)
{
    printf("%-15s %-5s %s\n", check->name, verdict_words[finding->verdict], finding->text);
    if (*finding->remedy)
        printf("%-15s %-5s -> %s\n", "", "", finding->remedy);
}

static void print_finding_json(const struct doctor_check *check, const struct finding *finding)
{
    fputs(check == doctor_checks ? "\n    {" : ",\n    {", stdout);
    json_print_member("check", check->name, ", ");
    json_print_member("verdict", verdict_words[finding->verdict], ", ");
    printf("\"needed\": %s, ", check->needed ? "true" : "false");
    json_print_member("text", finding->text, ", ");
    json_print_member("remedy", finding->remedy, "}");
}

int cli_doctor(const struct invocation *invocation)
{
    bool json = option_value(invocation, "json");
    bool runs = true;

    if (invocation->operand_count)
        return cli_usage_error(invocation->command, "takes no operands");
    options_export(invocation);
    if (json)
        fputs("{\n  \"checks\": [", stdout);
    for (const struct doctor_check *check = doctor_checks; check->name; check++) {
        struct finding finding = { .verdict = VERDICT_NO };

        check->examine(&finding);
        if (check->needed && finding.verdict == VERDICT_NO)
            runs = false;
        if (json)
            print_finding_json(check, &finding);
        else
            print_finding(check, &finding);
        fflush(stdout);
    }
    if (json)
        printf("\n  ],\n  \"runs\": %s\n}\n", runs ? "true" : "false");
    else
        printf("\nThe software adapter %s on this machine.\n", runs ? "runs" : "cannot run");
    return runs ? CLI_OK : CLI_FAILED;
}
