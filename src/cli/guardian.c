#include "guardian.h"
#include "options.h"
#include "segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAME        "verbena-guard"
#define LINE        3 /* the descriptor on which the command is heard */
#define LOOK_US     50000
#define LOOKS       1200 /* a minute: whoever lives longer than the command removes it himself */
#define LATE_COMERS 100  /* looks: programs that were being started may still make a segment */

static pid_t guardian = -1;
static int line = -1;

/* Nothing that belongs to the command is kept: no terminal, no group, no pipe that is read to its
 * end. */
static void stand_aside(int heard)
{
    int above = fcntl(heard, F_DUPFD, LINE + 1), nothing = open("/dev/null", O_RDWR);

    setsid();
    prctl(PR_SET_NAME, NAME); /* its words are those of the command */
    for (int fd = 0; fd < LINE; fd++)
        dup2(nothing, fd);
    dup2(above, LINE);
    closefrom(LINE + 1);
}

/* A word from the command: all is done. The end of the line: the command is gone. */
static bool is_dismissed(void)
{
    char word;
    ssize_t length;

    do
        length = read(LINE, &word, 1);
    while (length < 0 && errno == EINTR);
    return length == 1;
}

static void guard(int heard)
{
    stand_aside(heard);
    if (is_dismissed())
        return;
    for (int looks = 0, unused = 0; looks < LOOKS && unused < LATE_COMERS; looks++) {
        unused += segment_remove_unused() != SEGMENT_IN_USE;
        usleep(LOOK_US);
    }
}

static void remove_if_stale(const char *path, void *unused)
{
    segment_remove(path);
}

void guardian_begin(void)
{
    int ends[2];

    segment_each(remove_if_stale, NULL);
    if (pipe2(ends, O_CLOEXEC))
        return;
    guardian = fork();
    if (!guardian) {
        close(ends[1]);
        guard(ends[0]);
        _exit(0);
    }
    close(ends[0]);
    line = ends[1];
}

void guardian_end(int status)
{
    bool removed = segment_remove_unused() != SEGMENT_IN_USE;

    if (guardian > 0 && (removed || status == CLI_OK) && write(line, "", 1) == 1)
        waitpid(guardian, NULL, 0);
    if (line >= 0)
        close(line);
}
