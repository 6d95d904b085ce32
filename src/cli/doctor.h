/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks of this machine, one row each. */
#ifndef CLI_DOCTOR_H
#define CLI_DOCTOR_H

#include <stdbool.h>

enum verdict {
    VERDICT_YES,
    VERDICT_NO,
    VERDICT_NOTE, /* neither good nor bad */
};

struct finding {
    enum verdict verdict;
    char text[512];
    char remedy[512];
};

struct doctor_check {
    const char *name;
    const char *question;
    bool needed; /* without it the adapter cannot run at all */
    void (*examine)(struct finding *finding);
};

/* Ends with a row without a name. */
extern const struct doctor_check doctor_checks[];

void doctor_found(struct finding *finding, enum verdict verdict, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void doctor_remedy(struct finding *finding, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void doctor_check_library(struct finding *finding);
void doctor_check_preload(struct finding *finding);
void doctor_check_dropins(struct finding *finding);
void doctor_check_shared_memory(struct finding *finding);
void doctor_check_stale_segments(struct finding *finding);
void doctor_check_wire(struct finding *finding);
void doctor_check_processors(struct finding *finding);

void doctor_check_real_devices(struct finding *finding);
void doctor_check_memory_lock(struct finding *finding);
void doctor_check_governor(struct finding *finding);

void doctor_check_process_vm(struct finding *finding);
void doctor_check_yama(struct finding *finding);
void doctor_check_ptracer(struct finding *finding);
void doctor_check_pidfd(struct finding *finding);
void doctor_check_membarrier(struct finding *finding);
void doctor_check_namespaces(struct finding *finding);
void doctor_check_copy_mode(struct finding *finding);

void doctor_check_page_moves(struct finding *finding);
void doctor_check_memfd(struct finding *finding);
void doctor_check_mr_mode(struct finding *finding);

#endif
