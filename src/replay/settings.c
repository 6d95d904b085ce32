/* SPDX-License-Identifier: BSD-2-Clause */
#include "replay/settings.h"

#include "sim/adapter/faults.h"
#include "sim/adapter/parameters.h"

#include <limits.h>
#include <stdio.h>

/* clang-format off */
#define AT(member) .offset = offsetof(struct replay_settings, member)

const struct option_row replay_rows[] = {
    { .name = "adapter", AT(adapter), .heading = "Modelled adapter", .argument = "NAME", .default_value = "hdr100", .kind = OPTION_TEXT,
      .help = "adapter to model (see verbena list adapters)" },
    { .name = "set", AT(settings), .argument = "KEY=VALUE", .kind = OPTION_TEXT,
      .help = "change a parameter of the modelled adapter: bus.rate=4GB/s; separate several with ';'" },
    { .name = "faults", AT(faults), .argument = "LIST", .kind = OPTION_TEXT,
      .help = "faults on the modelled links, as probabilities: drop=1e-3,corrupt=0,duplicate=0,reorder=0,seed=7" },
    { .name = "ranks-per-node", AT(ranks_per_node), .heading = "Ranks", .argument = "N", .default_value = "1", .kind = OPTION_NUMBER,
      .minimum = 1, .maximum = 65536, .help = "ranks on each host, in blocks; they talk through shared memory" },
    { .name = "eager-limit", AT(eager_limit), .argument = "BYTES", .default_value = "8192", .kind = OPTION_NUMBER,
      .minimum = 64, .maximum = 1 << 20,
      .help = "longest message that is sent at once; longer ones use rendezvous" },
    { .name = "speed", AT(speed), .heading = "Output", .kind = OPTION_FLAG,
      .help = "also print how long the replay took, and how much memory" },
    { .name = "json", AT(json), .kind = OPTION_FLAG, .help = "print JSON instead of a table" },
    { .name = "csv", AT(csv), .kind = OPTION_FLAG, .help = "print a line of comma-separated values for each rank" },
    { .name = NULL },
};
/* clang-format on */

int replay_settings_read(struct replay_settings *settings, int count, char **words, char *error,
                         size_t size)
{
    *settings = (struct replay_settings){ .adapter = NULL };
    for (const struct option_row *row = replay_rows; row->name; row++) {
        if (row->default_value && option_store(row, row->default_value, settings, error, size))
            return -1;
    }
    return option_read_words(replay_rows, 0, count, words, settings, error, size);
}

int replay_settings_check(const struct replay_settings *settings, char *error, size_t size)
{
    struct parameters parameters;
    struct faults faults;
    char path[PATH_MAX];

    if (settings->json && settings->csv) {
        snprintf(error, size, "give --json or --csv, not both");
        return -1;
    }
    if (parameters_find(settings->adapter, path, sizeof(path), error, size) ||
        parameters_read(path, settings->settings, &parameters, error, size))
        return -1;
    return settings->faults ? faults_read(settings->faults, &faults, error, size) : 0;
}
