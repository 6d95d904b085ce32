/* The commands and their options, one row each. */
#include "commands.h"

/* clang-format off */
#define FABRIC_ROW \
    { .name = "fabric", .argument = "NAME", .fallback = "default", .kind = OPTION_NAME, \
      .environment = "VERBENA_FABRIC", \
      .help = "fabric to join: programs of one user that name the same one meet" }
#define NODES_ROW \
    { .name = "nodes", .argument = "N", .fallback = "1", .kind = OPTION_NUMBER, \
      .environment = "VERBENA_NODES", .minimum = 1, .maximum = 256, \
      .help = "software hosts in the fabric" }
#define DEVICES_ROW \
    { .name = "devices", .argument = "N", .fallback = "1", .kind = OPTION_NUMBER, \
      .environment = "VERBENA_DEVICES", .minimum = 1, .maximum = 8, \
      .help = "adapters per host: verbena0, verbena1 and so on" }
#define PORTS_ROW \
    { .name = "ports", .argument = "N", .fallback = "1", .kind = OPTION_NUMBER, \
      .environment = "VERBENA_PORTS", .minimum = 1, .maximum = 4, \
      .help = "ports per adapter" }
#define SHM_DIR_ROW \
    { .name = "shm-dir", .argument = "DIR", .fallback = "/dev/shm", .kind = OPTION_PATH, \
      .environment = "VERBENA_SHM_DIR", \
      .help = "directory of the shared memory segment" }
#define JSON_ROW \
    { .name = "json", .kind = OPTION_FLAG, .help = "print JSON instead of a table" }

static const struct option_row run_options[] = {
    FABRIC_ROW,
    NODES_ROW,
    { .name = "node", .argument = "K", .fallback = "0", .kind = OPTION_NUMBER,
      .environment = "VERBENA_NODE", .minimum = 0, .maximum = 255,
      .help = "host this program lives on" },
    DEVICES_ROW,
    PORTS_ROW,
    { .name = "copy", .argument = "WAY", .fallback = "auto", .kind = OPTION_CHOICE,
      .environment = "VERBENA_COPY", .choices = "auto agent",
      .help = "auto, or agent: the slower copy made by the owner of the memory" },
    SHM_DIR_ROW,
    { .name = "log", .argument = "LEVEL", .fallback = "warn", .kind = OPTION_CHOICE,
      .environment = "VERBENA_LOG", .choices = "error warn info debug",
      .help = "what the library says on stderr: error, warn, info or debug" },
    { .name = "adapter", .kind = OPTION_LATER },
    { .name = NULL },
};

static const struct option_row list_options[] = {
    FABRIC_ROW, NODES_ROW, DEVICES_ROW, PORTS_ROW, SHM_DIR_ROW, JSON_ROW, { .name = NULL },
};

static const struct option_row doctor_options[] = {
    SHM_DIR_ROW, JSON_ROW, { .name = NULL },
};

static const struct option_row help_options[] = {
    { .name = NULL },
};

const struct command cli_commands[] = {
    { .name = "run", .operands = "-- PROGRAM [ARGUMENT...]", .run = command_run,
      .options = run_options, .takes_program = true,
      .summary = "Run any verbs program on software adapters" },
    { .name = "list", .operands = "devices", .run = command_list, .options = list_options,
      .summary = "List the devices a program would see, and real ones" },
    { .name = "doctor", .operands = "", .run = command_doctor, .options = doctor_options,
      .summary = "Say what works on this machine, what does not, why, and the remedy" },
    { .name = "help", .operands = "[COMMAND]", .run = command_help, .options = help_options,
      .summary = "Show the help of a command" },
    { .name = "fill", .operands = "TEMPLATE", .run = command_fill, .options = help_options,
      .internal = true, .summary = "Put option rows into the template of a man page" },
    { .name = "probe", .operands = "", .run = command_probe, .options = help_options,
      .internal = true, .summary = "Print the ports this process sees, tab-separated" },
    { .name = NULL },
};
/* clang-format on */

const char *const cli_words_for_later[] = {
    "bench", "mpirun", "reproduce", "report", "compare", "advise", NULL,
};
