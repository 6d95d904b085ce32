/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A versioned replacement for libibverbs.so.1 or librdmacm.so.1.
 *
 * Programs that call dlopen() and dlvsym() bypass the preload, so the names must exist here with
 * their versions. All state is in libverbena.so: each name jumps through a slot that the
 * constructor points at the function of this name in libverbena.so. Names that it lacks, such as
 * those that hardware providers import, fail with EOPNOTSUPP.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>

#define ADAPTER "libverbena.so"

typedef void (*dropin_function)(void);

long dropin_answer_error(void);
long dropin_answer_minus(void);
void *dropin_answer_null(void);

long dropin_answer_error(void)
{
    errno = EOPNOTSUPP;
    return EOPNOTSUPP;
}

long dropin_answer_minus(void)
{
    errno = EOPNOTSUPP;
    return -1;
}

void *dropin_answer_null(void)
{
    errno = EOPNOTSUPP;
    return NULL;
}

#if defined(__x86_64__)
#define JUMP(index) "endbr64\n jmp *(dropin_slots + 8 * " #index ")(%rip)\n"
#elif defined(__aarch64__)
#define JUMP(index)                                     \
    "bti c\n adrp x16, dropin_slots + 8 * " #index "\n" \
    "ldr x16, [x16, :lo12:dropin_slots + 8 * " #index "]\n br x16\n"
#else
#error "drop-in libraries: processor not supported"
#endif

#define TRAMPOLINE(index, symbol)                                                \
    asm(".text\n"                                                                \
        ".balign 16\n"                                                           \
        ".globl dropin_call_" #index "\n"                                        \
        ".type dropin_call_" #index ", %function\n"                              \
        "dropin_call_" #index ":\n" JUMP(index) ".size dropin_call_" #index      \
                                                ", . - dropin_call_" #index "\n" \
                                                ".symver dropin_call_" #index ", " symbol "\n");

#define CALL(index, name, symbol, answer) TRAMPOLINE(index, symbol)
#define OLD(index, name, symbol, answer)  TRAMPOLINE(index, symbol)
#define DATA(index, symbol, size)          \
    extern char dropin_data_##index[size]; \
    char dropin_data_##index[size];        \
    asm(".symver dropin_data_" #index ", " symbol "\n");
#include DROPIN_ROWS
#undef CALL
#undef OLD
#undef DATA

#define DATA(index, symbol, size)
#define CALL(index, name, symbol, answer) [index] = (dropin_function)dropin_answer_##answer,
#define OLD(index, name, symbol, answer)  [index] = (dropin_function)dropin_answer_##answer,
extern dropin_function dropin_slots[];
__attribute__((used, visibility("hidden"))) dropin_function dropin_slots[] = {
#include DROPIN_ROWS
};
#undef CALL
#undef OLD

#define CALL(index, name, symbol, answer) [index] = name,
#define OLD(index, name, symbol, answer)  [index] = NULL,
static const char *const names[] = {
#include DROPIN_ROWS
};

__attribute__((constructor)) static void dropin_connect(void)
{
    /* Found through this library's own RUNPATH, or loaded already by a preload. */
    void *adapter = dlopen(ADAPTER, RTLD_NOW | RTLD_NODELETE);

    if (!adapter) {
        fprintf(stderr, "verbena: %s: %s\n", DROPIN_NAME, dlerror());
        return;
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        void *function = names[i] ? dlsym(adapter, names[i]) : NULL;

        if (function)
            dropin_slots[i] = (dropin_function)function;
    }
}
