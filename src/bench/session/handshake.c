/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/session/handshake.h"
#include "bench/session/experiments.h"

#include <stdlib.h>
#include <string.h>

#define PROTOCOL "verbena-bench 1"

/* Returns how many of the words, from the first on, are local to this host. */
static int words_to_keep(char *const *words, int count)
{
    const struct option_row *row = settings_row_of(words[0]);

    if (!row || !(row->tags & SETTING_OWN))
        return 0;
    return count > 1 && row->kind != OPTION_FLAG && !strchr(words[0], '=') ? 2 : 1;
}

/* One item per line: protocol, version, rank, ranks, experiment, then the words. */
int handshake_write(char text[HANDSHAKE_MAX], const struct assignment *assignment, bool remote,
                    char *const *words, int count, const char *version, char *error, size_t size)
{
    int used = snprintf(text, HANDSHAKE_MAX, PROTOCOL "\n%s\n%d\n%d\n%s\n", version,
                        assignment->rank, assignment->ranks, assignment->experiment->name);

    for (int i = 0; i < count && used < HANDSHAKE_MAX; i++) {
        int kept = remote ? words_to_keep(words + i, count - i) : 0;

        if (kept) {
            i += kept - 1;
            continue;
        }
        if (strchr(words[i], '\n')) {
            snprintf(error, size, "option contains a line break: '%s'", words[i]);
            return -1;
        }
        used += snprintf(text + used, HANDSHAKE_MAX - used, "%s\n", words[i]);
    }
    if (used >= HANDSHAKE_MAX || count > SETTINGS_WORDS_MAX) {
        snprintf(error, size, "the options are too long");
        return -1;
    }
    return 0;
}

static char *next_line(char **text)
{
    char *line = *text, *end = strchr(line, '\n');

    if (!end)
        return NULL;
    *end = '\0';
    *text = end + 1;
    return line;
}

static int next_number(char **text)
{
    const char *line = next_line(text);

    return line ? atoi(line) : 0;
}

int handshake_read(char *text, const char *version, struct assignment *out, char *refusal,
                   size_t size)
{
    char *words[SETTINGS_WORDS_MAX], *protocol = next_line(&text), *theirs = next_line(&text);
    char *line, *name, error[CONTROL_TEXT_MAX / 2];
    int count = 0;

    if (!protocol || !theirs || strcmp(protocol, PROTOCOL) || strcmp(theirs, version)) {
        snprintf(refusal, size,
                 "the peer runs Verbena %s and this host %.64s: the versions must be the same",
                 version, theirs ? theirs : "an unknown version");
        return -1;
    }
    out->rank = next_number(&text);
    out->ranks = next_number(&text);
    name = next_line(&text);
    out->experiment = name ? experiment_find(name) : NULL;
    if (!out->experiment) {
        snprintf(refusal, size, "the peer does not know the experiment '%.64s'", name ? name : "");
        return -1;
    }
    if (out->rank < 1 || out->ranks <= out->rank || out->ranks > CONTROL_RANKS_MAX) {
        snprintf(refusal, size, "the peer cannot be process %d of %d", out->rank, out->ranks);
        return -1;
    }
    while (count < SETTINGS_WORDS_MAX && (line = next_line(&text)))
        words[count++] = line;
    settings_init(&out->settings);
    if (settings_read(&out->settings, words, count, error, sizeof(error))) {
        snprintf(refusal, size, "the peer: %s", error);
        return -1;
    }
    return 0;
}
