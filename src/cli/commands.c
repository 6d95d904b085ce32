/* SPDX-License-Identifier: BSD-2-Clause */
/* The commands and their options, one row each. */
#include "commands.h"
#include "bench/settings.h"
#include "mpi.h"
#include "nas/settings.h"
#include "rails/rails.h"
#include "replay/settings.h"
#include "sim/adapter/shape.h"
#include "util/fabric_limits.h"
#include "util/output_limit.h"

/* clang-format off */
#define FABRIC_ROW \
    { .name = "fabric", .heading = "Fabric", .argument = "NAME", .default_value = "default", .kind = OPTION_NAME, \
      .environment = "VERBENA_FABRIC", \
      .help = "fabric to join; programs of one user on the same fabric can communicate" }
#define NODES_ROW \
    { .name = "nodes", .argument = "N", .default_value = "1", .kind = OPTION_NUMBER, \
      .environment = "VERBENA_NODES", .minimum = 1, .maximum = FABRIC_NODES_MAX, \
      .help = "hosts of the fabric" }
#define DEVICES_ROW \
    { .name = "devices", .argument = "N", .default_value = "1", .kind = OPTION_NUMBER, \
      .environment = "VERBENA_DEVICES", .minimum = 1, .maximum = 8, \
      .help = "adapters per host: verbena0, verbena1, ..." }
#define PORTS_ROW \
    { .name = "ports", .argument = "N", .default_value = "1", .kind = OPTION_NUMBER, \
      .environment = "VERBENA_PORTS", .minimum = 1, .maximum = 4, \
      .help = "ports per adapter" }
#define SHM_DIR_ROW \
    { .name = "shm-dir", .argument = "DIR", .default_value = "/dev/shm", .kind = OPTION_PATH, \
      .environment = "VERBENA_SHM_DIR", \
      .help = "directory for the shared memory segment" }
#define MEMORY_ROWS \
    { .name = "copy", .heading = "Memory", .argument = "MODE", .default_value = "auto", .kind = OPTION_CHOICE, \
      .environment = "VERBENA_COPY", .choices = "auto agent", \
      .help = "how data is copied between processes: auto, or agent (slower: a thread of the memory's owner copies)" }, \
    { .name = "mr", .argument = "MODE", .default_value = "auto", .kind = OPTION_CHOICE, \
      .environment = "VERBENA_MR", .choices = "auto copy share", \
      .help = "how peers reach registered memory: auto (mapped once used much), copy, or share (mapped at once)" }
#define CHECK_ROWS \
    { .name = "explain-errors", .heading = "Checks", .kind = OPTION_FLAG, .environment = "VERBENA_EXPLAIN_ERRORS", \
      .help = "say why a work request or a call failed, and where in the program it was made" }, \
    { .name = "sanitize", .kind = OPTION_FLAG, .environment = "VERBENA_SANITIZE", \
      .help = "watch rules that no adapter notices: buffers changed too early, leaks, use after destroy" }, \
    { .name = "inject", .argument = "PLAN", .kind = OPTION_TEXT, .environment = "VERBENA_INJECT", \
      .help = "faults on demand, separated by ';': 'fail reg_mr ENOMEM nth=3; status send RETRY_EXC_ERR rate=1e-3; seed=7'" }, \
    { .name = "inject-file", .argument = "FILE", .kind = OPTION_PATH, .environment = "VERBENA_INJECT_FILE", \
      .help = "the same from FILE, one fault on each line" }, \
    { .name = "findings", .argument = "FILE", .kind = OPTION_PATH, .writes = true, \
      .environment = "VERBENA_FINDINGS", \
      .help = "append what the checks find to FILE, one line of JSON each" }, \
    { .name = "deadlock", .argument = "WHEN", .default_value = "auto", .kind = OPTION_CHOICE, \
      .environment = "VERBENA_DEADLOCK", .choices = "auto any off", \
      .help = "in virtual time, end programs that wait for each other: auto, unless a program yet to start could end a wait; any: even then; or off" }
#define LOG_AND_MODEL_ROWS \
    { .name = "log", .heading = "Messages", .argument = "LEVEL", .default_value = "warn", \
      .kind = OPTION_CHOICE, .environment = "VERBENA_LOG", .choices = "error warn info debug", \
      .help = "messages of the library on stderr: error, warn, info or debug" }, \
    { .name = "adapter", .heading = "Modelled adapter", .argument = "NAME", .default_value = "live", .kind = OPTION_TEXT, \
      .help = "live, or an adapter to model in virtual time (see verbena list adapters)" }, \
    { .name = "set", .argument = "KEY=VALUE", .kind = OPTION_TEXT, \
      .help = "change a parameter of the modelled adapter: bus.rate=4GB/s; separate several with ';'" }, \
    { .name = "fabric-shape", .argument = "SHAPE", .kind = OPTION_TEXT, \
      .help = "switches and cables of the modelled fabric, as fabric.shape: " SHAPE_SYNTAX }, \
    { .name = "faults", .argument = "LIST", .kind = OPTION_TEXT, .environment = "VERBENA_FAULTS", \
      .help = "faults on the modelled links, as probabilities: drop=1e-3,corrupt=0,duplicate=0,reorder=0,flip=0,seed=7" }, \
    { .name = "compute", .argument = "MODE", .kind = OPTION_TEXT, .environment = "VERBENA_COMPUTE", \
      .help = "virtual time of the program between its calls: none, with verbena run what its memcpy() copies (copies), or the processor time it used (measured), times a factor (measured=2)" }, \
    { .name = "stats", .kind = OPTION_FLAG, .environment = "VERBENA_STATS", \
      .help = "at the end, print the utilisation of each part of the modelled adapters; live: how regions were registered, and dropped datagrams" }, \
    { .name = "stats-file", .argument = "FILE", .kind = OPTION_PATH, .writes = true, \
      .environment = "VERBENA_STATS_FILE", \
      .help = "write the statistics of the modelled adapters to FILE, as JSON" }, \
    { .name = "explain", .kind = OPTION_FLAG, .environment = "VERBENA_EXPLAIN", \
      .help = "at the end, print how long a message spent in each stage" }, \
    { .name = "trace", .argument = "FILE", .kind = OPTION_PATH, .writes = true, .environment = "VERBENA_TRACE", \
      .help = "write a trace of the model to FILE, for Perfetto or chrome://tracing" }, \
    { .name = "trace-limit", .argument = "BYTES", .default_value = OUTPUT_LIMIT, .kind = OPTION_NUMBER, \
      .environment = "VERBENA_TRACE_LIMIT", .minimum = OUTPUT_LIMIT_MIN, .maximum = OUTPUT_LIMIT_MAX, \
      .help = "end the trace before its file becomes larger than this" }, \
    { .name = "pcap", .argument = "FILE", .kind = OPTION_PATH, .writes = true, .environment = "VERBENA_PCAP", \
      .help = "write every packet on the modelled links to FILE, for tshark and Wireshark" }, \
    { .name = "pcap-limit", .argument = "BYTES", .default_value = OUTPUT_LIMIT, .kind = OPTION_NUMBER, \
      .environment = "VERBENA_PCAP_LIMIT", .minimum = OUTPUT_LIMIT_MIN, .maximum = OUTPUT_LIMIT_MAX, \
      .help = "end the capture before its file becomes larger than this" }
#define WIRE_ROW \
    { .name = "wire", .argument = "IFACE", .kind = OPTION_TEXT, .environment = "VERBENA_WIRE", \
      .help = "use RoCEv2 over UDP on this network interface, or on one address or network (10.0.0.0/24) of this host, to reach other hosts" }
#define RAIL_ROWS \
    { .name = "policy", .heading = "Rails", .argument = "POLICY", .default_value = RAILS_DEFAULT_POLICY, .kind = OPTION_CHOICE, \
      .choices = RAILS_POLICY_NAMES, \
      .help = "how messages are scheduled over rails: one of " RAILS_POLICY_NAMES }, \
    { .name = "qps", .argument = "N", .default_value = "1", .kind = OPTION_NUMBER, \
      .minimum = 1, .maximum = RAILS_MAX, \
      .help = "queue pairs per port and peer" }, \
    { .name = "ports", .argument = "N", .default_value = "all", \
      .kind = OPTION_NUMBER, .environment = "VERBENA_PORTS", .minimum = 1, .maximum = 4, \
      .help = "ports of each adapter to use; software adapters get this many, live ones 1 by default" }, \
    { .name = "devices", .argument = "N", .default_value = "all", \
      .kind = OPTION_NUMBER, .environment = "VERBENA_DEVICES", .minimum = 1, .maximum = 8, \
      .help = "adapters of each host to use; software hosts get this many, 1 by default" }, \
    { .name = "nodes", .heading = "Hosts", .argument = "N", .default_value = "auto", \
      .kind = OPTION_NUMBER, .environment = "VERBENA_NODES", .minimum = 1, .maximum = FABRIC_NODES_MAX, \
      .help = "software hosts for the ranks; auto: 1, in virtual time one for each rank" }, \
    { .name = "ranks-per-node", .argument = "N", .kind = OPTION_NUMBER, \
      .environment = "VERBENA_RANKS_PER_NODE", .minimum = 1, .maximum = 4096, \
      .help = "ranks per host, in blocks; by default they are spread evenly" }, \
    { .name = "record", .argument = "FILE.goal", .kind = OPTION_PATH, .writes = true, \
      .help = "write what each rank sends, receives and calculates to a schedule, for verbena replay" }, \
    { .name = "fabric", .argument = "NAME", .default_value = "private", .kind = OPTION_NAME, \
      .environment = "VERBENA_FABRIC", \
      .help = "fabric to join; needed only if two of these commands are to communicate" }, \
    WIRE_ROW, \
    MEMORY_ROWS, \
    SHM_DIR_ROW, \
    LOG_AND_MODEL_ROWS
#define PAPERS_ROW \
    { .name = "papers", .argument = "DIR", .kind = OPTION_TEXT, .environment = "VERBENA_PAPERS", \
      .help = "directory with papers of your own, besides the installed ones; separate several with ':'" }
#define JSON_ROW \
    { .name = "json", .heading = "Output", .kind = OPTION_FLAG, .help = "print JSON instead of a table" }

static const struct option_row run_options[] = {
    FABRIC_ROW,
    NODES_ROW,
    { .name = "node", .argument = "K", .default_value = "0", .kind = OPTION_NUMBER,
      .environment = "VERBENA_NODE", .minimum = 0, .maximum = FABRIC_NODES_MAX - 1,
      .help = "host on which the program runs" },
    { .name = "seed", .argument = "N", .kind = OPTION_NUMBER, .environment = "VERBENA_SEED",
      .minimum = 1, .maximum = UINT32_MAX,
      .help = "first LID, GUID, QP number and key of a new fabric; by default random, in virtual time derived from the fabric's name" },
    DEVICES_ROW,
    PORTS_ROW,
    WIRE_ROW,
    MEMORY_ROWS,
    SHM_DIR_ROW,
    CHECK_ROWS,
    LOG_AND_MODEL_ROWS,
    { .name = NULL },
};

static const struct option_row check_options[] = {
    { .name = "runs", .heading = "Search", .argument = "N", .default_value = "100, or until --time", .kind = OPTION_NUMBER,
      .minimum = 1, .maximum = UINT32_MAX, .help = "how often to run the programs" },
    { .name = "time", .argument = "SECONDS", .kind = OPTION_REAL, .help = "start no further run after this time" },
    { .name = "seed", .argument = "N", .default_value = "0", .kind = OPTION_NUMBER, .maximum = UINT32_MAX,
      .help = "seed of the first run, the next has the next number; 0 varies nothing" },
    { .name = "no-errors", .kind = OPTION_FLAG,
      .help = "vary times only: no failing calls or work requests, no lost packets" },
    { .name = "any-order", .kind = OPTION_FLAG,
      .help = "vary which program starts first, too: for programs that wait for each other" },
    { .name = "inject", .argument = "PLAN", .kind = OPTION_TEXT,
      .help = "inject these faults into every run instead of random ones (see verbena run)" },
    { .name = "inject-file", .argument = "FILE", .kind = OPTION_PATH,
      .help = "a plan like that of --inject, one row on each line" },
    { .name = "limit", .argument = "SECONDS", .default_value = "60", .kind = OPTION_NUMBER, .minimum = 1, .maximum = 86400,
      .help = "real time after which a run counts as hanging" },
    { .name = "jobs", .argument = "N", .default_value = "0", .kind = OPTION_NUMBER, .maximum = 64,
      .help = "runs at the same time; 0: two for each core" },
    { .name = "junit", .heading = "Output", .argument = "FILE", .kind = OPTION_PATH, .writes = true,
      .help = "write the verdict of each run to FILE, as JUnit XML" },
    { .name = "report", .argument = "DIRECTORY", .kind = OPTION_PATH,
      .help = "of the failing run, keep a page with a timeline, a trace for Perfetto, and all output" },
    { .name = "adapter", .heading = "Modelled adapter", .argument = "NAME", .default_value = "hdr100", .kind = OPTION_TEXT,
      .help = "adapter to model (see verbena list adapters)" },
    { .name = "set", .argument = "KEY=VALUE", .kind = OPTION_TEXT,
      .help = "change a parameter of the modelled adapter: bus.rate=4GB/s; separate several with ';'" },
    { .name = NULL },
};

static const struct option_row mpirun_options[] = {
    { .name = "ranks", .heading = "Processes", .letter = 'n', .argument = "N", .default_value = "1", .kind = OPTION_NUMBER,
      .minimum = 1, .maximum = FABRIC_PROCESSES_MAX, .help = "number of processes" },
    RAIL_ROWS,
    { .name = "mpirun", .heading = "Processes", .argument = "PROGRAM", .default_value = MPI_LAUNCHER, .kind = OPTION_PATH,
      .help = "program that starts the processes: Open MPI's mpirun, or srun" },
    { .name = "hostfile", .heading = "Hosts", .argument = "FILE", .kind = OPTION_PATH,
      .help = "hosts to start the processes on, as Open MPI reads them: a line 'HOST slots=N' each" },
    { .name = "print", .kind = OPTION_FLAG,
      .help = "print the environment and the command instead of running the command" },
    { .name = NULL },
};

static const struct option_row nas_options[] = { NAS_OPTION_ROWS, RAIL_ROWS, { .name = NULL } };

static const struct option_row goal_options[] = {
    { .name = "ranks", .heading = "Schedule", .letter = 'n', .argument = "N", .default_value = "2", .kind = OPTION_NUMBER,
      .minimum = 2, .maximum = 1 << 20, .help = "number of ranks" },
    { .name = "size", .argument = "BYTES", .kind = OPTION_NUMBER, .maximum = 1ull << 40,
      .help = "bytes; what they count depends on the pattern" },
    { .name = "repeat", .argument = "N", .default_value = "1", .kind = OPTION_NUMBER, .minimum = 1, .maximum = 1 << 20,
      .help = "how often the collective follows itself" },
    { .name = "output", .heading = "Output", .letter = 'o', .argument = "FILE.goal", .default_value = "-",
      .kind = OPTION_PATH, .writes = true, .takes_dash = true,
      .help = "file to write; - is standard output" },
    { .name = NULL },
};

static const struct option_row list_options[] = {
    FABRIC_ROW, NODES_ROW, DEVICES_ROW, PORTS_ROW, SHM_DIR_ROW, PAPERS_ROW, JSON_ROW, { .name = NULL },
};

static const struct option_row doctor_options[] = {
    SHM_DIR_ROW, JSON_ROW, { .name = NULL },
};

static const struct option_row clean_options[] = {
    { .name = "fabric", .heading = "What to remove", .argument = "NAME", .kind = OPTION_NAME,
      .help = "only the segment of this fabric; by default those of all fabrics of this user" },
    SHM_DIR_ROW,
    { .name = "dry-run", .letter = 'n', .kind = OPTION_FLAG, .help = "print what would be removed, and remove nothing" },
    JSON_ROW, { .name = NULL },
};

static const struct option_row compare_options[] = {
    { .name = "threshold", .heading = "Comparison", .argument = "PERCENT",
      .default_value = "2; 0 in virtual time", .kind = OPTION_REAL, .help = "ignore changes up to this" },
    { .name = "fail-if-worse", .kind = OPTION_FLAG,
      .help = "exit with status 3 if any point is worse, with 1 if no change could have been seen" },
    JSON_ROW,
    { .name = "csv", .kind = OPTION_FLAG, .help = "print comma-separated values instead of a table" },
    { .name = NULL },
};

static const struct option_row advise_options[] = {
    { .name = "mca", .heading = "Output", .argument = "FILE", .kind = OPTION_PATH, .writes = true,
      .takes_dash = true,
      .help = "write the resulting parameters to FILE, or to standard output (-), for Open MPI" },
    { .name = "verbose", .kind = OPTION_FLAG,
      .help = "also print which advice could not be given, and why" },
    JSON_ROW, { .name = NULL },
};

static const struct option_row sweep_options[] = {
    { .name = "jobs", .argument = "N", .default_value = "0", .kind = OPTION_NUMBER, .maximum = 64,
      .help = "replays at the same time; 0: one for each core" },
    { .name = "part", .argument = "K/N", .default_value = "1/1", .kind = OPTION_TEXT,
      .help = "only every Nth replay, beginning with the Kth: for several machines, each with an output of its own" },
    { .name = "list", .kind = OPTION_FLAG, .help = "print the replays instead of running them" },
    { .name = "output", .heading = "Output", .letter = 'o', .argument = "FILE.json", .kind = OPTION_PATH, .writes = true,
      .help = "keep the results here, after each replay; what is there already is not replayed again" },
    { .name = "json", .kind = OPTION_FLAG, .help = "print JSON instead of a table" },
    { .name = "csv", .kind = OPTION_FLAG, .help = "print comma-separated values instead of a table" },
    { .name = NULL },
};

static const struct option_row report_options[] = {
    { .name = "output", .heading = "Output", .letter = 'o', .argument = "FILE",
      .default_value = "report.html", .kind = OPTION_PATH, .writes = true, .takes_dash = true,
      .help = "file to write; - is standard output" },
    { .name = NULL },
};

static const struct option_row calibrate_options[] = {
    { .name = "start", .argument = "ADAPTER", .kind = OPTION_TEXT,
      .help = "adapter to start from: what the data do not determine stays as it is there" },
    { .name = "output", .letter = 'o', .argument = "FILE", .kind = OPTION_PATH, .writes = true,
      .help = "write the calibrated adapter to FILE.adapter; with --paper, the errors as JSON to FILE" },
    { .name = "hold-out", .argument = "LIST", .kind = OPTION_TEXT,
      .help = "experiments, or result files, to predict instead of fit, separated by commas" },
    { .name = "fit", .argument = "LIST", .kind = OPTION_TEXT,
      .help = "parameters to fit, or groups of them, separated by commas: bus,hca.engines; default: usual, all that are neither measured directly nor specified" },
    { .name = "page", .argument = "FILE", .kind = OPTION_PATH, .writes = true,
      .help = "write a page with the measured and the modelled curves" },
    { .name = "paper", .argument = "LIST", .kind = OPTION_TEXT,
      .help = "instead of result files: fit the fitted numbers of a paper's adapters to its values, and so that its shapes match, and judge counts, sizes and switches by their neighbours; several papers, separated by commas, may share adapters" },
    { .name = "leave-one-out", .kind = OPTION_FLAG,
      .help = "leave each value of the first paper out of a fit to all others, and print how far it is then; takes up to hours" },
    { .name = "by-curve", .kind = OPTION_FLAG,
      .help = "leave out all values of a figure at once; real runs of each solution tell how far they are" },
    { .name = "rows", .argument = "LIST", .kind = OPTION_TEXT,
      .help = "only these values of the paper, separated by commas" },
    { .name = "refit", .argument = "LIST", .kind = OPTION_TEXT,
      .help = "fit without these values by real runs, and only estimate the others; none: estimate all; default: all are fitted" },
    { .name = "keep-runs", .argument = "DIR", .kind = OPTION_PATH,
      .help = "with --paper: keep the results of runs in DIR, and take those that are there, so that an interrupted command goes on; empty it when the model has changed" },
    PAPERS_ROW,
    { .name = "jobs", .argument = "N", .default_value = "0", .kind = OPTION_NUMBER, .maximum = 256,
      .help = "runs in parallel; 0: one for each core" },
    JSON_ROW, { .name = NULL },
};

static const struct option_row reproduce_options[] = {
    { .name = "quick", .heading = "What to run", .kind = OPTION_FLAG,
      .help = "measure only the points that the papers quote, not whole curves" },
    { .name = "strict", .heading = "Verdict", .kind = OPTION_FLAG,
      .help = "exit with status 3 unless every value matches" },
    { .name = "tolerance", .argument = "PERCENT", .default_value = "5", .kind = OPTION_REAL,
      .help = "largest deviation of a value that matches" },
    { .name = "check-convergence", .kind = OPTION_FLAG,
      .help = "run everything again with five times the warm-up and iterations; exit with status 3 if that moves a value by more than 1%" },
    { .name = "adapter", .heading = "What to run", .argument = "NAME", .kind = OPTION_TEXT,
      .help = "what if: run everything on this adapter too, and compare with the papers' own" },
    { .name = "set", .argument = "KEY=VALUE", .kind = OPTION_TEXT,
      .help = "what if: change a parameter of the adapters: link.rate=2GB/s; separate several with ';'" },
    { .name = "output", .heading = "Output", .letter = 'o', .argument = "DIR",
      .default_value = "reproduction", .kind = OPTION_PATH, .takes_dash = true,
      .help = "directory for results and report; - writes the results as JSON to standard output" },
    { .name = "jobs", .heading = "What to run", .argument = "N", .default_value = "0", .kind = OPTION_NUMBER, .maximum = 256,
      .help = "commands to run in parallel; 0: one for each core" },
    { .name = "limit", .argument = "SECONDS", .default_value = "0", .kind = OPTION_NUMBER,
      .maximum = 86400,
      .help = "stop a command after this time; its values count as not run; 0: no limit" },
    PAPERS_ROW,
    { .name = NULL },
};

static const struct option_row help_options[] = {
    { .name = NULL },
};

const struct command cli_commands[] = {
    { .name = "run", .heading = "Run programs", .operands = "-- PROGRAM [ARGUMENT...]", .run = cli_run,
      .options = run_options, .takes_program = true,
      .summary = "Run any verbs program on software adapters" },
    { .name = "check", .operands = "-- PROGRAM [ARGUMENT...] [::: PROGRAM [ARGUMENT...]]...", .run = cli_check,
      .options = check_options, .takes_program = true,
      .summary = "Search for bugs: run programs in virtual time under many seeds" },
    { .name = "mpirun", .operands = "-- [OPTION-OF-MPIRUN...] PROGRAM [ARGUMENT...]",
      .run = cli_mpirun, .options = mpirun_options, .takes_program = true,
      .summary = "Run an MPI program over several queue pairs, ports and adapters" },
    { .name = "nas", .operands = "KERNEL", .run = cli_nas, .options = nas_options,
      .summary = "Run a NAS kernel under MPI: is, ft, cg, mg or lu" },
    { .name = "replay", .operands = "FILE.goal", .run = cli_replay, .options = replay_rows,
      .summary = "Play a schedule of many ranks on modelled adapters, in one process" },
    { .name = "goal", .operands = "PATTERN", .run = cli_goal, .options = goal_options,
      .summary = "Write the schedule of a collective, for replay" },
    { .name = "sweep", .operands = "FILE", .run = cli_sweep, .options = sweep_options,
      .summary = "Replay collectives in many combinations of ranks, sizes and adapters" },
    { .name = "bench", .heading = "Measure", .operands = "[EXPERIMENT|GROUP|SWEEP...]", .run = cli_bench,
      .options = settings_rows,
      .summary = "Measure a verbs device: the experiments of the suite" },
    { .name = "compare", .operands = "A.json B.json", .run = cli_compare,
      .options = compare_options,
      .summary = "Compare two runs and report what has changed" },
    { .name = "advise", .operands = "FILE.json...", .run = cli_advise,
      .options = advise_options,
      .summary = "Recommend how to use a device, from measured results" },
    { .name = "report", .operands = "FILE.json...", .run = cli_report,
      .options = report_options,
      .summary = "Write a page with charts of one or more runs" },
    { .name = "calibrate", .operands = "[FILE.json...]", .run = cli_calibrate,
      .options = calibrate_options,
      .summary = "Make an adapter file from measured results" },
    { .name = "reproduce", .operands = "[PAPER|ID|EXPERIMENT...]", .run = cli_reproduce,
      .options = reproduce_options,
      .summary = "Run the experiments of the papers on modelled adapters, and compare each value" },
    { .name = "list", .heading = "Look around", .operands = "adapters|devices|experiments|papers",
      .run = cli_list, .options = list_options,
      .summary = "List modelled adapters, devices, experiments, or values of the papers" },
    { .name = "doctor", .operands = "", .run = cli_doctor, .options = doctor_options,
      .summary = "Check what works on this machine, and print remedies" },
    { .name = "clean", .operands = "", .run = cli_clean, .options = clean_options,
      .summary = "Remove what dead processes have left in shared memory" },
    { .name = "help", .operands = "[COMMAND]", .run = cli_help, .options = help_options,
      .summary = "Show the help of a command" },
    { .name = "complete", .operands = "-- WORD...", .run = cli_complete, .options = help_options,
      .takes_program = true, .internal = true, .summary = "Print what the last word can be" },
    { .name = "fill", .operands = "TEMPLATE", .run = cli_fill, .options = help_options,
      .internal = true, .summary = "Fill option rows into the template of a man page" },
    { .name = "bench-rank", .operands = "FD", .run = cli_bench_rank,
      .options = settings_rows, .internal = true,
      .summary = "Run one of the processes of an experiment" },
    { .name = "mpi-bench", .operands = "-- TASK [OPTION...]", .run = cli_mpi_bench,
      .options = mpirun_options, .takes_program = true, .internal = true,
      .summary = "Measure an MPI library (started by experiments of the suite)" },
    { .name = "probe", .operands = "[memory]", .run = cli_probe, .options = help_options,
      .internal = true, .summary = "Print the ports that this process sees, or the memory it takes" },
    { .name = NULL },
};
/* clang-format on */
