/* SPDX-License-Identifier: BSD-2-Clause */
/* Options of a run, for the program itself and for the command that starts it. No MPI here: the
 * command is not an MPI program. */
#ifndef NAS_SETTINGS_H
#define NAS_SETTINGS_H

#include "util/option.h"

enum nas_kernel_id {
    NAS_IS,
    NAS_FT,
    NAS_CG,
    NAS_MG,
    NAS_LU,
    NAS_KERNELS,
};

enum nas_class {
    CLASS_S,
    CLASS_W,
    CLASS_A,
    CLASS_B,
    CLASS_C,
    NAS_CLASSES,
};

#define NAS_KERNEL_LIST "is, ft, cg, mg and lu"

struct nas_settings {
    enum nas_kernel_id kernel; /* the operand */
    uint64_t class;
    uint64_t ranks;
    const char *output;
    const char *launcher;
    const char *launcher_options;
};

/* Tags options of the command that starts the ranks. */
enum { NAS_LAUNCH = 1 };

#define NAS_RANKS_MAX 4096

/* A macro, so that the command can append rows of its own. */
/* clang-format off */
#define NAS_OPTION_ROWS \
    { .name = "class", .heading = "Kernel", .argument = "CLASS", .default_value = "S", .kind = OPTION_CHOICE, \
      .choices = "S W A B C", .offset = offsetof(struct nas_settings, class), \
      .help = "problem size: S, W, A, B or C" }, \
    { .name = "output", .letter = 'o', .argument = "FILE.json", .kind = OPTION_PATH, .writes = true, \
      .takes_dash = true, .offset = offsetof(struct nas_settings, output), \
      .help = "write times, messages and work to a result file; - is standard output" }, \
    { .name = "ranks", .heading = "Processes", .letter = 'n', .argument = "N", .default_value = "1", .kind = OPTION_NUMBER, \
      .minimum = 1, .maximum = NAS_RANKS_MAX, .offset = offsetof(struct nas_settings, ranks), \
      .tags = NAS_LAUNCH, .help = "processes, a power of two" }, \
    { .name = "mpirun", .argument = "PROGRAM", .default_value = NAS_LAUNCHER, .kind = OPTION_PATH, \
      .offset = offsetof(struct nas_settings, launcher), .tags = NAS_LAUNCH, \
      .help = "launcher of the processes" }, \
    { .name = "mpirun-options", .argument = "WORDS", .kind = OPTION_TEXT, \
      .offset = offsetof(struct nas_settings, launcher_options), .tags = NAS_LAUNCH, \
      .help = "more options for the launcher, separated by blanks: '--mca pml ucx'" }
/* clang-format on */

extern const struct option_row nas_rows[];

char nas_class_letter(enum nas_class class);
const char *nas_kernel_name(enum nas_kernel_id kernel);

void nas_settings_init(struct nas_settings *settings);

/* Return 0, or -1 with a message in 'error'. */
int nas_read_kernel(const char *name, enum nas_kernel_id *kernel, char *error, size_t size);
int nas_check_ranks(uint64_t ranks, char *error, size_t size);
int nas_check_output(const char *path, char *error, size_t size);

#endif
