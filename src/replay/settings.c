/* SPDX-License-Identifier: BSD-2-Clause */
#include "replay/settings.h"

#include "mtl/parameter_rows.h"
#include "sim/adapter/faults.h"
#include "sim/adapter/shape.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
#define TEXT(number)  TEXT_(number)
#define TEXT_(number) #number
#define AT(member) .offset = offsetof(struct replay_settings, member)

const struct option_row replay_rows[] = {
    { .name = "adapter", AT(adapter), .heading = "Modelled adapter", .argument = "NAME", .default_value = "hdr100", .kind = OPTION_TEXT,
      .help = "adapter to model (see verbena list adapters)" },
    { .name = "set", AT(settings), .argument = "KEY=VALUE", .kind = OPTION_TEXT,
      .help = "change a parameter of the modelled adapter: bus.rate=4GB/s; separate several with ';'" },
    { .name = "fabric-shape", AT(shape), .argument = "SHAPE", .kind = OPTION_TEXT,
      .help = "switches and cables, as fabric.shape: " SHAPE_SYNTAX },
    { .name = "faults", AT(faults), .argument = "LIST", .kind = OPTION_TEXT,
      .help = "faults on the modelled links, as probabilities: drop=1e-3,corrupt=0,duplicate=0,reorder=0,flip=0,seed=7" },
    { .name = "policy", AT(policy), .heading = "Rails", .argument = "POLICY", .default_value = RAILS_DEFAULT_POLICY, .kind = OPTION_CHOICE,
      .choices = RAILS_POLICY_NAMES,
      .help = "how messages are scheduled over rails: one of " RAILS_POLICY_NAMES },
    { .name = "qps", AT(qps), .argument = "N", .default_value = "1", .kind = OPTION_NUMBER, .minimum = 1, .maximum = RAILS_MAX,
      .help = "queue pairs per port and peer" },
    { .name = "ports", AT(ports), .argument = "N", .kind = OPTION_NUMBER, .minimum = 1, .maximum = 4,
      .help = "ports of each adapter; those that it has by default" },
    { .name = "devices", AT(devices), .argument = "N", .default_value = "1", .kind = OPTION_NUMBER, .minimum = 1, .maximum = DEVICES_MAX,
      .help = "adapters of each host" },
    { .name = "ranks-per-node", AT(ranks_per_node), .heading = "Ranks", .argument = "N", .default_value = "1", .kind = OPTION_NUMBER,
      .minimum = 1, .maximum = 65536, .help = "ranks on each host, in blocks; they talk through shared memory" },
    { .name = "eager-limit", AT(eager_limit), .argument = "BYTES", .default_value = TEXT(MTL_EAGER_LIMIT), .kind = OPTION_NUMBER,
      .minimum = MTL_EAGER_LIMIT_MIN, .maximum = MTL_EAGER_LIMIT_MAX,
      .help = "longest message between nodes that is sent at once; longer ones use rendezvous" },
    { .name = "links", AT(links), .heading = "Output", .argument = "FILE", .kind = OPTION_PATH, .writes = true,
      .help = "write what each link carried, how busy it was and its longest queue to FILE: .txt, .csv, .json, or .html for a heat map" },
    { .name = "speed", AT(speed), .kind = OPTION_FLAG,
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

int replay_settings_parameters(const struct replay_settings *settings, struct parameters *out,
                               char *error, size_t size)
{
    char path[PATH_MAX], *changes = shape_settings(settings->settings, settings->shape);
    int status;

    if (!changes) {
        snprintf(error, size, "out of memory");
        return -1;
    }
    status = parameters_find(settings->adapter, path, sizeof(path), error, size) ||
                     parameters_read(path, changes, out, error, size)
                 ? -1
                 : 0;
    free(changes);
    return status;
}

enum link_form replay_settings_form(const char *path)
{
    static const char *const endings[] = { ".txt", ".csv", ".json", ".html" };
    const char *dot = strrchr(path, '.');
    int form = LINKS_TEXT;

    while (form < LINKS_UNKNOWN && (!dot || strcmp(dot, endings[form])))
        form++;
    return form;
}

int replay_settings_check(struct replay_settings *settings, char *error, size_t size)
{
    struct parameters parameters;
    struct faults faults;

    if (settings->json && settings->csv) {
        snprintf(error, size, "give --json or --csv, not both");
        return -1;
    }
    if (settings->links && replay_settings_form(settings->links) == LINKS_UNKNOWN) {
        snprintf(error, size, "--links %s: the name must end in .txt, .csv, .json or .html",
                 settings->links);
        return -1;
    }
    if (replay_settings_parameters(settings, &parameters, error, size))
        return -1;
    if (!settings->ports)
        settings->ports = parameters.link.ports;
    return settings->faults ? faults_read(settings->faults, &faults, error, size) : 0;
}
