/* SPDX-License-Identifier: BSD-2-Clause */
/* Options of a replay, for the program itself and for the command that starts it. */
#ifndef REPLAY_SETTINGS_H
#define REPLAY_SETTINGS_H

#include "sim/adapter/parameters.h"
#include "util/option.h"

struct replay_settings {
    const char *adapter;  /* name, or path of an adapter file */
    const char *settings; /* "key=value;...", or NULL */
    const char *shape;    /* of the fabric, or NULL */
    const char *faults;   /* or NULL */
    const char *links;    /* file to write, or NULL */
    uint64_t policy;    /* index in rails_policies */
    uint64_t qps;       /* on each port, to each rank */
    uint64_t ports;     /* of each adapter; replay_settings_check() sets it if it was not given */
    uint64_t devices;   /* adapters of each node */
    uint64_t ranks_per_node;
    uint64_t eager_limit;
    bool speed, json, csv;
    bool progress; /* on standard error; no option */
};

enum link_form { LINKS_TEXT, LINKS_CSV, LINKS_JSON, LINKS_HTML, LINKS_UNKNOWN };

extern const struct option_row replay_rows[];

/* The form of the file for --links, by what its name ends in. */
enum link_form replay_settings_form(const char *path);

/* Reads the words behind the name of the schedule. Returns 0, or -1 with the reason in 'error'. */
int replay_settings_read(struct replay_settings *settings, int count, char **words, char *error,
                         size_t size);

/* Reads the parameters of the adapter. Returns 0, or -1 with the reason in 'error'. */
int replay_settings_parameters(const struct replay_settings *settings, struct parameters *out,
                               char *error, size_t size);

/* Rejects what the rows cannot, such as an unknown adapter, and completes the settings. */
int replay_settings_check(struct replay_settings *settings, char *error, size_t size);

#endif
