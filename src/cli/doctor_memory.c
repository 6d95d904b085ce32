/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks of what mapping registered memory into peers needs. */
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
#define COPIED                                                                                \
    "; peers copy registered memory instead of mapping it: a write or read takes about 1 us " \
    "more"

/* Moves a page away, as registration does. Returns 0 or an errno value. */
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

static int query_mapping(void)
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
    int query = query_mapping(), whole = move_a_page(false);

    if (query) {
        doctor_found(finding, VERDICT_NO, "PROCMAP_QUERY on /proc/self/maps: %s" COPIED,
                     strerror(query));
        doctor_remedy(finding, "needs Linux 6.11 or later");
    } else if (!whole) {
        doctor_found(finding, VERDICT_YES,
                     "userfaultfd moves pages and handles faults of the kernel");
    } else if (!move_a_page(true)) {
        doctor_found(finding, VERDICT_NOTE,
                     "userfaultfd moves pages but handles no faults of the kernel (%s): enough for "
                     "single-threaded programs",
                     strerror(whole));
        doctor_remedy(finding,
                      "sysctl vm.unprivileged_userfaultfd=1, or access to /dev/userfaultfd, "
                      "as root; until then the memory of multi-threaded programs is copied");
    } else {
        doctor_found(finding, VERDICT_NO, "UFFDIO_MOVE of userfaultfd: %s" COPIED, strerror(whole));
        doctor_remedy(finding,
                      "needs Linux 6.8 or later, and a seccomp profile that permits userfaultfd");
    }
}

/* Returns 0 or an errno value. */
static int create_memory_file(void)
{
    int fd = memfd_create("verbena-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

void doctor_check_memfd(struct finding *finding)
{
    int err = create_memory_file();

    if (!err) {
        doctor_found(finding, VERDICT_YES, "memfd_create works");
        return;
    }
    doctor_found(finding, VERDICT_NO, "memfd_create: %s" COPIED, strerror(err));
    doctor_remedy(finding, "allow memfd_create in the container's seccomp profile");
}

void doctor_check_mr_mode(struct finding *finding)
{
    const char *asked = getenv("VERBENA_MR");
    bool moves = !query_mapping() && (!move_a_page(false) || !move_a_page(true));

    if (asked && !strcmp(asked, "copy"))
        doctor_found(finding, VERDICT_NOTE, "copied, because VERBENA_MR=copy is set");
    else if (!moves)
        doctor_found(finding, VERDICT_NOTE, "copied: see page-moves");
    else if (create_memory_file())
        doctor_found(finding, VERDICT_NOTE, "copied: see memfd");
    else
        doctor_found(
            finding, VERDICT_NOTE,
            "private memory that starts on a page boundary is mapped once peers use it much, "
            "other memory is copied; "
            "'verbena run --stats' reports each region");
}
