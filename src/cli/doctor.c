/* SPDX-License-Identifier: BSD-2-Clause */
/* verbena doctor: the table of checks. */
#include "doctor.h"
#include "commands.h"
#include "json.h"

#include <stdarg.h>

/* clang-format off */
const struct doctor_check doctor_checks[] = {
    { "library", "can this command find libverbena.so", true, doctor_check_library },
    { "shared-memory", "can segments be created, and how large can they grow", true,
      doctor_check_shared_memory },
    { "preload", "does a program started with the library see the adapter", true, doctor_check_preload },
    { "drop-ins", "do programs that dlopen libibverbs find the adapter too", false,
      doctor_check_dropins },
    { "process_vm", "can a process read and write a sibling's memory", false,
      doctor_check_process_vm },
    { "yama", "does Yama restrict access to the memory of siblings", false, doctor_check_yama },
    { "ptracer", "can a process permit access to its own memory", false, doctor_check_ptracer },
    { "copy-mode", "how is data copied between processes", false, doctor_check_copy_mode },
    { "pidfd", "can a process duplicate a sibling's file descriptor", false, doctor_check_pidfd },
    { "membarrier", "can one process order the memory accesses of others", false,
      doctor_check_membarrier },
    { "namespaces", "which namespaces is this process in", false, doctor_check_namespaces },
    { "page-moves", "can pages be replaced while a program uses them", false, doctor_check_page_moves },
    { "mr-mode", "do peers map registered memory, or copy it", false, doctor_check_mr_mode },
    { "memfd", "can anonymous memory files be created", false, doctor_check_memfd },
    { "wire", "can packets be exchanged on the UDP port of RoCEv2", false, doctor_check_wire },
    { "stale-segments", "have dead processes left segments behind", false,
      doctor_check_stale_segments },
    { "processors", "can two processes run at the same time", false, doctor_check_processors },
    { "real-devices", "does this machine have RDMA devices, and do they work", false,
      doctor_check_real_devices },
    { "memory-lock", "can enough memory be locked for real devices", false, doctor_check_memory_lock },
    { "governor", "do the processors run at a constant clock", false, doctor_check_governor },
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

static json_t *finding_json(const struct doctor_check *check, const struct finding *finding)
{
    return json_pack("{s:s, s:s, s:b, s:s, s:s}", "check", check->name, "verdict",
                     verdict_words[finding->verdict], "needed", check->needed, "text",
                     finding->text, "remedy", finding->remedy);
}

int cli_doctor(const struct invocation *invocation)
{
    if (invocation->operand_count)
        return cli_usage_error(invocation->command, "takes no operands");

    json_t *findings = option_value(invocation, "json") ? json_array() : NULL;
    bool runs = true;

    options_export(invocation);
    for (const struct doctor_check *check = doctor_checks; check->name; check++) {
        struct finding finding = { .verdict = VERDICT_NO };

        check->examine(&finding);
        if (check->needed && finding.verdict == VERDICT_NO)
            runs = false;
        if (findings) {
            json_array_append_new(findings, finding_json(check, &finding));
            continue;
        }
        print_finding(check, &finding);
        fflush(stdout);
    }
    if (findings)
        json_print(json_pack("{s:o, s:b}", "checks", findings, "runs", runs));
    else
        printf("\nThe software adapter %s on this machine.\n", runs ? "runs" : "cannot run");
    return runs ? CLI_OK : CLI_FAILED;
}
