/* SPDX-License-Identifier: BSD-2-Clause */
/* verbena_assert() of the public header. */
#include "check/finding.h"
#include "verbena.h"

__attribute__((visibility("default"))) void verbena_report_assertion(const char *condition,
                                                                     const char *file, int line)
{
    struct stacktrace here;
    struct finding *finding;

    stacktrace_take(&here);
    finding = finding_begin("assertion", "%s does not hold (%s:%d)", condition, file, line);
    finding_stack(finding, "asserted", &here);
    finding_end(finding);
}
