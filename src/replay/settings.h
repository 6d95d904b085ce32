/* SPDX-License-Identifier: BSD-2-Clause */
/* Options of a replay, for the program itself and for the command that starts it. */
#ifndef REPLAY_SETTINGS_H
#define REPLAY_SETTINGS_H

#include "util/option.h"

struct replay_settings {
    const char *adapter;  /* name, or path of an adapter file */
    const char *settings; /* "key=value;...", or NULL */
    const char *faults;   /* or NULL */
    uint64_t ranks_per_node;
    uint64_t eager_limit;
    bool speed, json, csv;
    bool progress; /* on standard error; no option */
};

extern const struct option_row replay_rows[];

/* Reads the words behind the name of the schedule. Returns 0, or -1 with the reason in 'error'. */
int replay_settings_read(struct replay_settings *settings, int count, char **words, char *error,
                         size_t size);

/* Rejects what the rows cannot, such as an unknown adapter. */
int replay_settings_check(const struct replay_settings *settings, char *error, size_t size);

#endif
