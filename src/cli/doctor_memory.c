/* Checks of what the kernel lets a process do with its own memory, so that peers can map it. */
#include "doctor.h"
#include "util/kernel.h"
#include "util/userfault.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE    4096ul
#define PATTERN 0x5a

/* Moves a page aside, as registration does. 0 or an errno value. */
static int move_a_page(bool user_only)
{
    unsigned long moved;
    char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int uffd, err;

    if (pages == MAP_FAILED)
        return errno;
    memset(pages, PATTERN, PAGE);
    uffd = userfault_open(user_only);
    err = uffd < 0 ? errno : userfault_watch(uffd, (uintptr_t)pages + PAGE, PAGE);
    if (!err)
        err = userfault_move(uffd, (uintptr_t)pages + PAGE, (uintptr_t)pages, PAGE, &moved);
    if (!err && pages[PAGE] != PATTERN)
        err = EBADMSG;
    if (uffd >= 0)
        close(uffd);
    munmap(pages, 2 * PAGE);
    return err;
}

static int ask_for_a_mapping(void)
{
    struct kernel_procmap_query query = { .size = sizeof(query), .query_addr = (uintptr_t)&query };
    int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    int err = maps < 0 || ioctl(maps, KERNEL_PROCMAP_QUERY, &query) ? errno : 0;

    if (maps >= 0)
        close(maps);
    return err;
}

void doctor_check_page_moves(struct finding *finding)
{
    int query = ask_for_a_mapping(), whole = move_a_page(false);

    if (query) {
        doctor_found(finding, VERDICT_NO, "PROCMAP_QUERY on /proc/self/maps: %s", strerror(query));
        doctor_remedy(finding, "Linux 6.11 or later has it; until then registered memory is copied");
    } else if (!whole) {
        doctor_found(finding, VERDICT_YES, "userfaultfd moves pages, and the kernel itself waits too");
    } else if (!move_a_page(true)) {
        doctor_found(finding, VERDICT_NOTE,
              "userfaultfd moves pages, but for user mode only (%s): enough for programs without "
              "threads",
              strerror(whole));
        doctor_remedy(finding, "sysctl vm.unprivileged_userfaultfd=1, or access to /dev/userfaultfd, "
                        "as root; until then programs with threads have their memory copied");
    } else {
        doctor_found(finding, VERDICT_NO, "UFFDIO_MOVE: %s", strerror(whole));
        doctor_remedy(finding, "Linux 6.8 or later has it, if the seccomp profile lets it through");
    }
}

void doctor_check_region_way(struct finding *finding)
{
    const char *asked = getenv("VERBENA_MR");
    bool able = !ask_for_a_mapping() && (!move_a_page(false) || !move_a_page(true));

    if (asked && !strcmp(asked, "copy"))
        doctor_found(finding, VERDICT_NOTE, "copied, because VERBENA_MR asks for it");
    else if (!able)
        doctor_found(finding, VERDICT_NOTE, "copied: see page-moves");
    else
        doctor_found(finding, VERDICT_NOTE,
              "mapped where it begins on a page and is private memory, else copied; "
              "'verbena run --stats' says what became of each");
}
