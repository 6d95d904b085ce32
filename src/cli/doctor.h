/* What this machine allows: one row, one check. */
#ifndef CLI_DOCTOR_H
#define CLI_DOCTOR_H

#include <stdbool.h>

enum verdict {
    VERDICT_YES,
    VERDICT_NO,
    VERDICT_NOTE, /* a fact that is neither good nor bad */
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

void found(struct finding *finding, enum verdict verdict, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void remedy(struct finding *finding, const char *format, ...) __attribute__((format(printf, 2, 3)));

void examine_library(struct finding *finding);
void examine_preload(struct finding *finding);
void examine_dropins(struct finding *finding);
void examine_shared_memory(struct finding *finding);
void examine_stale_segments(struct finding *finding);
void examine_memfd(struct finding *finding);
void examine_processors(struct finding *finding);

void examine_real_devices(struct finding *finding);
void examine_memory_lock(struct finding *finding);
void examine_governor(struct finding *finding);

void examine_process_vm(struct finding *finding);
void examine_yama(struct finding *finding);
void examine_ptracer(struct finding *finding);
void examine_pidfd(struct finding *finding);
void examine_membarrier(struct finding *finding);
void examine_copy_way(struct finding *finding);

void examine_page_moves(struct finding *finding);
void examine_region_way(struct finding *finding);

#endif
