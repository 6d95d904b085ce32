/* SPDX-License-Identifier: BSD-2-Clause */
#include "check/stacktrace.h"

#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <execinfo.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY    "libverbena" /* and libverbena-guest.so beside it */

/* The calls of libdw, which is loaded when the first stack trace is printed. */
#define LIBDW_CALLS(call)           \
    call(dwfl_begin)                \
    call(dwfl_report_begin)         \
    call(dwfl_linux_proc_report)    \
    call(dwfl_report_end)           \
    call(dwfl_linux_proc_find_elf)  \
    call(dwfl_standard_find_debuginfo) \
    call(dwfl_addrmodule)           \
    call(dwfl_module_addrname)      \
    call(dwfl_module_addrdie)       \
    call(dwfl_module_getsrc)        \
    call(dwfl_lineinfo)             \
    call(dwarf_getscopes)           \
    call(dwarf_getscopes_die)       \
    call(dwarf_tag)                 \
    call(dwarf_diename)             \
    call(dwarf_attr)                \
    call(dwarf_formudata)           \
    call(dwarf_getsrcfiles)         \
    call(dwarf_filesrc)

#define DECLARE(name) __typeof__(&name) name;
static struct {
    LIBDW_CALLS(DECLARE)
} libdw;

static Dwfl *session;
static pthread_mutex_t session_lock = PTHREAD_MUTEX_INITIALIZER;

void stacktrace_take(struct stacktrace *trace)
{
    int count = backtrace(trace->frames, STACKTRACE_FRAMES);

    trace->count = count > 0 ? count : 0;
}

/* The instruction is no call, and the look-up expects an address behind one. */
void stacktrace_take_fault(struct stacktrace *trace, const void *pc)
{
    void *frames[2 * STACKTRACE_FRAMES];
    int count = backtrace(frames, 2 * STACKTRACE_FRAMES), at = 0;

    while (at < count && frames[at] != pc)
        at++;
    trace->frames[0] = (char *)pc + 1;
    for (trace->count = 1; trace->count < STACKTRACE_FRAMES && ++at < count; trace->count++)
        trace->frames[trace->count] = frames[at];
}

static bool is_of_libc(const void *frame)
{
    Dl_info libc, info;

    return dladdr((const void *)abort, &libc) && dladdr((const char *)frame - 1, &info) &&
           info.dli_fbase == libc.dli_fbase;
}

/* Their names would be in the debug information of the C library, which takes long to read. */
void stacktrace_trim(struct stacktrace *trace)
{
    uint32_t count = trace->count;

    if (count == STACKTRACE_FRAMES)
        return; /* they have not been taken */
    if (count > 1 && !is_of_libc(trace->frames[count - 1]) && is_of_libc(trace->frames[count - 2]))
        count--; /* _start() of the program */
    while (count > 1 && is_of_libc(trace->frames[count - 1]))
        count--;
    trace->count = count;
}

static bool load_libdw(void)
{
    void *handle = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);

    if (!handle)
        return false;
#define FIND(name)                              \
    libdw.name = dlsym(handle, #name);          \
    if (!libdw.name)                            \
        return false;
    LIBDW_CALLS(FIND)
    return true;
}

static int count_changes(struct dl_phdr_info *info, size_t size, void *changes)
{
    *(unsigned long long *)changes = info->dlpi_adds + info->dlpi_subs;
    return 1;
}

/* Called with the lock held. The set of loaded objects may have changed since the last call. */
static bool open_session(void)
{
    static bool tried;
    static Dwfl_Callbacks callbacks;
    static unsigned long long reported;
    unsigned long long changes = 0;

    if (!tried && load_libdw()) {
        callbacks = (Dwfl_Callbacks){ .find_elf = libdw.dwfl_linux_proc_find_elf,
                                      .find_debuginfo = libdw.dwfl_standard_find_debuginfo };
        session = libdw.dwfl_begin(&callbacks);
    }
    tried = true;
    if (!session)
        return false;
    dl_iterate_phdr(count_changes, &changes);
    if (changes == reported)
        return true;
    reported = changes;
    libdw.dwfl_report_begin(session);
    return !libdw.dwfl_linux_proc_report(session, getpid()) &&
           !libdw.dwfl_report_end(session, NULL, NULL);
}

static void set_place(struct stacktrace_line *line, const char *file, int number)
{
    snprintf(line->file, sizeof(line->file), "%s", file ? file : "");
    line->line = file ? number : 0;
}

/* The place at which an inlined function was called. */
static void set_call_place(struct stacktrace_line *line, Dwarf_Die *unit, Dwarf_Die *inlined)
{
    Dwarf_Attribute attribute;
    Dwarf_Word file = 0, number = 0;
    Dwarf_Files *files;
    size_t count;

    libdw.dwarf_formudata(libdw.dwarf_attr(inlined, DW_AT_call_file, &attribute), &file);
    libdw.dwarf_formudata(libdw.dwarf_attr(inlined, DW_AT_call_line, &attribute), &number);
    if (libdw.dwarf_getsrcfiles(unit, &files, &count) || file >= count)
        return;
    set_place(line, libdw.dwarf_filesrc(files, file, NULL, NULL), number);
}

/* An abstract function has the name of an inlined one. */
static const char *name_of(Dwarf_Die *scope)
{
    const char *name = libdw.dwarf_diename(scope);

    return name ? name : "?";
}

/* Returns the number of lines, 0 without debug information. */
static int describe_scopes(Dwfl_Module *module, Dwarf_Addr address, struct stacktrace_line *lines,
                           int capacity)
{
    Dwarf_Addr bias, address_bias;
    Dwarf_Die *unit = libdw.dwfl_module_addrdie(module, address, &address_bias);
    Dwarf_Die *innermost = NULL, *scopes = NULL;
    Dwfl_Line *source = libdw.dwfl_module_getsrc(module, address);
    const char *file = NULL;
    int number = 0, filled = 0, count;

    if (!unit || !source)
        return 0;
    file = libdw.dwfl_lineinfo(source, &bias, &number, NULL, NULL, NULL);
    /* The scopes around an inlined function are those of its definition; those around its body
     * are wanted. */
    if (libdw.dwarf_getscopes(unit, address - address_bias, &innermost) <= 0)
        return 0;
    count = libdw.dwarf_getscopes_die(innermost, &scopes);
    free(innermost);
    set_place(&lines[0], file, number);
    for (int i = 0; i < count && filled < capacity; i++) {
        int tag = libdw.dwarf_tag(&scopes[i]);

        if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram)
            continue;
        snprintf(lines[filled].function, sizeof(lines[filled].function), "%s", name_of(&scopes[i]));
        filled++;
        if (tag == DW_TAG_subprogram)
            break;
        if (filled < capacity)
            set_call_place(&lines[filled], unit, &scopes[i]);
    }
    free(scopes);
    return filled;
}

static const char *base_name(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;

    return slash ? slash + 1 : path ? path : "?";
}

int stacktrace_describe(void *frame, struct stacktrace_line *lines, int capacity)
{
    /* The call lies before the address it returns to. */
    char *address = (char *)frame - 1;
    Dl_info info = { 0 };
    Dwfl_Module *module;
    const char *symbol = NULL;
    int count = 0;

    if (dladdr(address, &info) && !strncmp(base_name(info.dli_fname), LIBRARY, strlen(LIBRARY)))
        return 0;
    memset(lines, 0, capacity * sizeof(*lines));
    pthread_mutex_lock(&session_lock);
    module = open_session() ? libdw.dwfl_addrmodule(session, (uintptr_t)address) : NULL;
    if (module) {
        count = describe_scopes(module, (uintptr_t)address, lines, capacity);
        symbol = libdw.dwfl_module_addrname(module, (uintptr_t)address);
    }
    if (!count) {
        snprintf(lines->function, sizeof(lines->function), "%s",
                 symbol ? symbol : info.dli_sname ? info.dli_sname : "?");
        count = 1;
    }
    pthread_mutex_unlock(&session_lock);
    for (int i = 0; i < count; i++)
        snprintf(lines[i].object, sizeof(lines[i].object), "%s", base_name(info.dli_fname));
    return count;
}
