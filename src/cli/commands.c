/* The commands and their options, one row each. */
#include "commands.h"
#include "bench/settings.h"
#include "mpi.h"
#include "nas/settings.h"
#include "rails/rails.h"

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
#define MEMORY_ROWS \
    { .name = "copy", .argument = "WAY", .fallback = "auto", .kind = OPTION_CHOICE, \
      .environment = "VERBENA_COPY", .choices = "auto agent", \
      .help = "auto, or agent: the slower copy made by the owner of the memory" }, \
    { .name = "mr", .argument = "WAY", .fallback = "auto", .kind = OPTION_CHOICE, \
      .environment = "VERBENA_MR", .choices = "auto copy share", \
      .help = "registered memory: auto, copy it between processes, or share it wherever possible" }
#define LOG_AND_MODEL_ROWS \
    { .name = "log", .argument = "LEVEL", .fallback = "warn", .kind = OPTION_CHOICE, \
      .environment = "VERBENA_LOG", .choices = "error warn info debug", \
      .help = "what the library says on stderr: error, warn, info or debug" }, \
    { .name = "adapter", .argument = "NAME", .fallback = "live", .kind = OPTION_TEXT, \
      .help = "live, or the model of an adapter in virtual time (see verbena list adapters)" }, \
    { .name = "set", .argument = "KEY=VALUE", .kind = OPTION_TEXT, \
      .help = "change a number of the modelled adapter: bus.rate=4GB/s; several with ';'" }, \
    { .name = "faults", .argument = "LIST", .kind = OPTION_TEXT, .environment = "VERBENA_FAULTS", \
      .help = "what goes wrong between modelled adapters: drop=1e-3,corrupt=0,duplicate=0,reorder=0,seed=7" }, \
    { .name = "compute", .argument = "WAY", .kind = OPTION_TEXT, .environment = "VERBENA_COMPUTE", \
      .help = "what the program does between its calls takes no virtual time (none), or the processor time it really used (measured), times a factor (measured=2)" }, \
    { .name = "stats", .kind = OPTION_FLAG, .environment = "VERBENA_STATS", \
      .help = "say at the end how busy each part of the modelled adapters was; live: what became of registered memory, and how many datagrams nobody took" }, \
    { .name = "stats-file", .argument = "FILE", .kind = OPTION_PATH, .writes = true, \
      .environment = "VERBENA_STATS_FILE", \
      .help = "write what the parts of the modelled adapters have done to FILE, as JSON" }, \
    { .name = "explain", .kind = OPTION_FLAG, .environment = "VERBENA_EXPLAIN", \
      .help = "say at the end where the time of a message went, stage by stage" }, \
    { .name = "trace", .argument = "FILE", .kind = OPTION_PATH, .writes = true, .environment = "VERBENA_TRACE", \
      .help = "write what happens in the model, as a Chrome trace that Perfetto opens" }, \
    { .name = "pcap", .argument = "FILE", .kind = OPTION_PATH, .writes = true, .environment = "VERBENA_PCAP", \
      .help = "write every packet on the modelled links, for tshark and Wireshark" }
#define RAIL_ROWS \
    { .name = "policy", .argument = "POLICY", .fallback = RAILS_DEFAULT_POLICY, .kind = OPTION_CHOICE, \
      .choices = RAILS_POLICY_NAMES, \
      .help = "how messages go over rails: one of " RAILS_POLICY_NAMES }, \
    { .name = "qps", .argument = "N", .fallback = "1", .kind = OPTION_NUMBER, \
      .minimum = 1, .maximum = RAILS_MAX, \
      .help = "queue pairs per port to each peer" }, \
    { .name = "ports", .argument = "N", .fallback = "all, of a live software adapter 1", \
      .kind = OPTION_NUMBER, .environment = "VERBENA_PORTS", .minimum = 1, .maximum = 4, \
      .help = "ports of each adapter to use; software adapters are made with so many" }, \
    { .name = "devices", .argument = "N", .fallback = "all, of a software host 1", \
      .kind = OPTION_NUMBER, .environment = "VERBENA_DEVICES", .minimum = 1, .maximum = 8, \
      .help = "adapters of each host to use; software hosts are made with so many" }, \
    { .name = "nodes", .argument = "N", .fallback = "1, in virtual time one for each rank", \
      .kind = OPTION_NUMBER, .environment = "VERBENA_NODES", .minimum = 1, .maximum = 256, \
      .help = "software hosts the ranks live on" }, \
    { .name = "ranks-per-node", .argument = "N", .kind = OPTION_NUMBER, \
      .environment = "VERBENA_RANKS_PER_NODE", .minimum = 1, .maximum = 4096, \
      .help = "ranks on each host, the first ones on the first; without it they are spread evenly" }, \
    { .name = "fabric", .argument = "NAME", .fallback = "one of its own", .kind = OPTION_NAME, \
      .environment = "VERBENA_FABRIC", \
      .help = "fabric to join; needed only where two of these commands are to meet" }, \
    MEMORY_ROWS, \
    SHM_DIR_ROW, \
    LOG_AND_MODEL_ROWS
#define JSON_ROW \
    { .name = "json", .kind = OPTION_FLAG, .help = "print JSON instead of a table" }

static const struct option_row run_options[] = {
    FABRIC_ROW,
    NODES_ROW,
    { .name = "node", .argument = "K", .fallback = "0", .kind = OPTION_NUMBER,
      .environment = "VERBENA_NODE", .minimum = 0, .maximum = 255,
      .help = "host this program lives on" },
    { .name = "seed", .argument = "N", .kind = OPTION_NUMBER, .environment = "VERBENA_SEED",
      .minimum = 1, .maximum = UINT32_MAX,
      .help = "where LIDs, GUIDs, QP numbers and keys of the fabric begin; without it at random, in virtual time by the fabric's name" },
    DEVICES_ROW,
    PORTS_ROW,
    MEMORY_ROWS,
    SHM_DIR_ROW,
    LOG_AND_MODEL_ROWS,
    { .name = NULL },
};

static const struct option_row mpirun_options[] = {
    { .name = "ranks", .letter = 'n', .argument = "N", .fallback = "1", .kind = OPTION_NUMBER,
      .minimum = 1, .maximum = 4096, .help = "processes" },
    RAIL_ROWS,
    { .name = "mpirun", .argument = "PROGRAM", .fallback = MPI_LAUNCHER, .kind = OPTION_PATH,
      .help = "what starts the processes: Open MPI's mpirun, or srun" },
    { .name = "print", .kind = OPTION_FLAG,
      .help = "print the environment and the command instead of running it" },
    { .name = NULL },
};

static const struct option_row nas_options[] = { NAS_OPTION_ROWS, RAIL_ROWS, { .name = NULL } };

static const struct option_row list_options[] = {
    FABRIC_ROW, NODES_ROW, DEVICES_ROW, PORTS_ROW, SHM_DIR_ROW, JSON_ROW, { .name = NULL },
};

static const struct option_row doctor_options[] = {
    SHM_DIR_ROW, JSON_ROW, { .name = NULL },
};

static const struct option_row compare_options[] = {
    { .name = "threshold", .argument = "PERCENT", .fallback = "2", .kind = OPTION_REAL,
      .help = "changes up to this count as none" },
    { .name = "fail-if-worse", .kind = OPTION_FLAG,
      .help = "exit with status 3 if something has become worse" },
    JSON_ROW, { .name = NULL },
};

static const struct option_row advise_options[] = {
    { .name = "mca", .argument = "FILE", .kind = OPTION_PATH, .writes = true,
      .help = "write the parameters that follow from it, for Open MPI" },
    { .name = "verbose", .kind = OPTION_FLAG,
      .help = "say also where nothing was found, and why" },
    JSON_ROW, { .name = NULL },
};

static const struct option_row report_options[] = {
    { .name = "output", .letter = 'o', .argument = "FILE", .fallback = "report.html",
      .kind = OPTION_PATH, .writes = true, .help = "where the page goes" },
    { .name = NULL },
};

static const struct option_row reproduce_options[] = {
    { .name = "quick", .kind = OPTION_FLAG,
      .help = "only the points that the papers quote, not whole curves" },
    { .name = "strict", .kind = OPTION_FLAG,
      .help = "exit with status 3 unless every figure holds" },
    { .name = "tolerance", .argument = "PERCENT", .fallback = "5", .kind = OPTION_REAL,
      .help = "a number holds if it is off by no more than this" },
    { .name = "adapter", .argument = "NAME", .kind = OPTION_TEXT,
      .help = "what if: run everything on this adapter, or file, and set it beside the papers' own" },
    { .name = "set", .argument = "KEY=VALUE", .kind = OPTION_TEXT,
      .help = "what if: change a number of the adapters: link.rate=2GB/s; several with ';'" },
    { .name = "output", .letter = 'o', .argument = "DIR", .fallback = "reproduction",
      .kind = OPTION_PATH, .help = "directory of results and report" },
    { .name = "jobs", .argument = "N", .fallback = "0", .kind = OPTION_NUMBER, .maximum = 256,
      .help = "commands at the same time; 0 is one for each core" },
    { .name = "limit", .argument = "SECONDS", .fallback = "0", .kind = OPTION_NUMBER,
      .maximum = 86400,
      .help = "a command that takes longer is ended, and its figures are not run; 0 is no limit" },
    { .name = NULL },
};

static const struct option_row help_options[] = {
    { .name = NULL },
};

const struct command cli_commands[] = {
    { .name = "run", .operands = "-- PROGRAM [ARGUMENT...]", .run = cli_run,
      .options = run_options, .takes_program = true,
      .summary = "Run any verbs program on software adapters" },
    { .name = "bench", .operands = "[EXPERIMENT|GROUP|SWEEP...]", .run = cli_bench,
      .options = settings_rows,
      .summary = "Measure a verbs device: the experiments of the suite" },
    { .name = "compare", .operands = "A.json B.json", .run = cli_compare,
      .options = compare_options,
      .summary = "Set two runs side by side, and say what has changed" },
    { .name = "advise", .operands = "FILE.json...", .run = cli_advise,
      .options = advise_options,
      .summary = "Say how to use a device, from what was measured on it" },
    { .name = "report", .operands = "FILE.json...", .run = cli_report,
      .options = report_options,
      .summary = "Make a page with charts of one run, or of several side by side" },
    { .name = "reproduce", .operands = "[PAPER|ID|EXPERIMENT...]", .run = cli_reproduce,
      .options = reproduce_options,
      .summary = "Run the experiments of the papers on modelled adapters, and judge each figure" },
    { .name = "mpirun", .operands = "-- [OPTION-OF-MPIRUN...] PROGRAM [ARGUMENT...]",
      .run = cli_mpirun, .options = mpirun_options, .takes_program = true,
      .summary = "Run an MPI program over several queue pairs, ports and adapters" },
    { .name = "nas", .operands = "KERNEL", .run = cli_nas, .options = nas_options,
      .summary = "Run a NAS kernel under MPI: is, ft, cg, mg or lu" },
    { .name = "list", .operands = "adapters|devices|experiments|papers", .run = cli_list,
      .options = list_options,
      .summary = "List modelled adapters, devices, experiments of the suite, or figures of the papers" },
    { .name = "doctor", .operands = "", .run = cli_doctor, .options = doctor_options,
      .summary = "Say what works on this machine, what does not, why, and the remedy" },
    { .name = "help", .operands = "[COMMAND]", .run = cli_help, .options = help_options,
      .summary = "Show the help of a command" },
    { .name = "fill", .operands = "TEMPLATE", .run = cli_fill, .options = help_options,
      .internal = true, .summary = "Put option rows into the template of a man page" },
    { .name = "bench-rank", .operands = "FD", .run = cli_bench_rank,
      .options = settings_rows, .internal = true,
      .summary = "Be one of the processes of an experiment" },
    { .name = "mpi-bench", .operands = "-- TASK [OPTION...]", .run = cli_mpi_bench,
      .options = mpirun_options, .takes_program = true, .internal = true,
      .summary = "Measure an MPI library: what experiments of the suite start" },
    { .name = "probe", .operands = "", .run = cli_probe, .options = help_options,
      .internal = true, .summary = "Print the ports this process sees, tab-separated" },
    { .name = NULL },
};
/* clang-format on */
