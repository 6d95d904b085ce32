/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/settings.h"
#include "rails/rails.h"
#include "util/fabric_limits.h"
#include "util/output_limit.h"

#include <stdio.h>
#include <string.h>

const char *const operation_names[OPERATION_COUNT] = { "send", "write",     "write-imm",
                                                       "read", "fetch-add", "compare-swap" };
const char *const wait_names[WAIT_COUNT] = { "poll", "memory", "block", "spin-block" };
const char *const transport_names[TRANSPORT_COUNT] = { "rc", "uc", "ud", "xrc" };

#define AT(field) .offset = offsetof(struct settings, field)
#define LIST_MAX (1ull << 40)

/* clang-format off */
const struct option_row settings_rows[] = {
    { .name = "device", .heading = "Device", .argument = "NAME", .kind = OPTION_NAME, AT(device),
      .tags = SETTING_HOST | SETTING_OWN,
      .help = "verbs device to measure; default: the first real one, or else the built-in software adapter" },
    { .name = "adapter", .argument = "NAME", .default_value = "live", .kind = OPTION_TEXT, AT(adapter),
      .tags = SETTING_HOST | SETTING_OWN | SETTING_RUN,
      .help = "measure the built-in software adapter, live or as the model NAME (see verbena list adapters), even if there are real devices" },
    { .name = "set", .heading = "Modelled adapter", .argument = "KEY=VALUE", .kind = OPTION_TEXT, AT(set),
      .tags = SETTING_HOST | SETTING_OWN | SETTING_RUN,
      .help = "change a parameter of the modelled adapter: bus.rate=4GB/s; separate several with ';'" },
    { .name = "faults", .argument = "LIST", .kind = OPTION_TEXT, .environment = "VERBENA_FAULTS", AT(faults),
      .tags = SETTING_HOST | SETTING_OWN | SETTING_RUN,
      .help = "faults to inject between modelled adapters: drop=1e-3,corrupt=0,duplicate=0,reorder=0,flip=0,seed=7" },
    { .name = "compute", .argument = "WAY", .kind = OPTION_TEXT, .environment = "VERBENA_COMPUTE", AT(compute),
      .tags = SETTING_HOST | SETTING_OWN | SETTING_RUN,
      .help = "the virtual time that computation between calls takes: none, the CPU time it used (measured), or a multiple of that (measured=2)" },
    { .name = "stats", .kind = OPTION_FLAG, .environment = "VERBENA_STATS", AT(stats),
      .tags = SETTING_HOST | SETTING_OWN | SETTING_RUN,
      .help = "print at the end how busy each part of the modelled adapters was; live: how registered memory was accessed" },
    { .name = "stats-file", .argument = "FILE", .kind = OPTION_PATH, .writes = true, .environment = "VERBENA_STATS_FILE", AT(stats_file),
      .tags = SETTING_HOST | SETTING_OWN | SETTING_RUN,
      .help = "write the statistics of the modelled adapters to FILE as JSON" },
    { .name = "explain", .kind = OPTION_FLAG, .environment = "VERBENA_EXPLAIN", AT(explain),
      .tags = SETTING_HOST | SETTING_OWN | SETTING_RUN,
      .help = "print at the end how long each stage of a message took" },
    { .name = "trace", .argument = "FILE", .kind = OPTION_PATH, .writes = true, .environment = "VERBENA_TRACE", AT(trace),
      .tags = SETTING_HOST | SETTING_OWN | SETTING_RUN,
      .help = "write a Chrome trace of the model, for Perfetto" },
    { .name = "trace-limit", .argument = "BYTES", .default_value = OUTPUT_LIMIT, .kind = OPTION_NUMBER,
      .environment = "VERBENA_TRACE_LIMIT", .minimum = OUTPUT_LIMIT_MIN, .maximum = OUTPUT_LIMIT_MAX, AT(trace_limit),
      .tags = SETTING_HOST | SETTING_OWN | SETTING_RUN,
      .help = "end the trace before its file becomes larger than this" },
    { .name = "pcap", .argument = "FILE", .kind = OPTION_PATH, .writes = true, .environment = "VERBENA_PCAP", AT(pcap),
      .tags = SETTING_HOST | SETTING_OWN | SETTING_RUN,
      .help = "capture every packet on the modelled links, for tshark and Wireshark" },
    { .name = "pcap-limit", .argument = "BYTES", .default_value = OUTPUT_LIMIT, .kind = OPTION_NUMBER,
      .environment = "VERBENA_PCAP_LIMIT", .minimum = OUTPUT_LIMIT_MIN, .maximum = OUTPUT_LIMIT_MAX, AT(pcap_limit),
      .tags = SETTING_HOST | SETTING_OWN | SETTING_RUN,
      .help = "end the capture before its file becomes larger than this" },
    { .name = "output", .heading = "Results", .argument = "FILE", .kind = OPTION_PATH, .writes = true, .takes_dash = true, .letter = 'o', AT(output),
      .tags = SETTING_OWN | SETTING_RUN,
      .help = "write the results to FILE.json or FILE.csv, or as JSON to standard output (-)" },
    { .name = "quick", .heading = "Repetitions and time", .kind = OPTION_FLAG, AT(quick),
      .tags = SETTING_RUN,
      .help = "use few sizes and iterations, for an overview" },
    { .name = "fail-if", .heading = "Results", .argument = "EXPRESSION", .kind = OPTION_TEXT, AT(fail_if),
      .tags = SETTING_OWN | SETTING_RUN,
      .help = "exit with status 3 if any point meets the condition: 'latency.p99>10us', 'bw[64K]<5000MB/s'; separate several with ';'" },
    { .name = "listen", .heading = "Two hosts", .kind = OPTION_FLAG, AT(listen),
      .tags = SETTING_HOST | SETTING_OWN | SETTING_RUN,
      .help = "serve another host that measures with this one, until interrupted" },
    { .name = "connect", .argument = "HOST", .kind = OPTION_TEXT, AT(connect),
      .tags = SETTING_OWN | SETTING_RUN,
      .help = "measure with the host that runs 'verbena bench --listen'" },
    { .name = "tcp-port", .argument = "N", .default_value = BENCH_TCP_PORT, .kind = OPTION_NUMBER,
      .minimum = 1, .maximum = 65535, AT(tcp_port),
      .tags = SETTING_HOST | SETTING_OWN | SETTING_RUN,
      .help = "TCP port of --listen and --connect" },
    { .name = "timeout", .heading = "Repetitions and time", .argument = "S", .default_value = "30", .kind = OPTION_NUMBER, .minimum = 1,
      .maximum = 86400, AT(timeout),
      .tags = SETTING_HOST,
      .help = "give up after this many seconds without progress, not counting time without a core" },
    { .name = "pin", .heading = "Device", .argument = "HOW", .default_value = "auto", .kind = OPTION_CHOICE,
      .choices = "auto none", AT(pin),
      .tags = SETTING_HOST | SETTING_OWN,
      .help = "bind each process to its own core near the device (auto), or to none" },
    { .name = "connect-by", .heading = "Messages", .argument = "HOW", .default_value = "address", .kind = OPTION_CHOICE,
      .choices = "address rdma_cm", AT(connect_by),
      .help = "connect queue pairs by exchanging addresses, or with the connection manager" },
    { .name = "port", .heading = "Device", .argument = "N", .default_value = "1", .kind = OPTION_NUMBER, .minimum = 1,
      .maximum = 254, AT(port), .tags = SETTING_HOST | SETTING_OWN,
      .help = "port of the device" },
    { .name = "gid-index", .argument = "N", .default_value = "65535", .kind = OPTION_NUMBER,
      .maximum = GID_INDEX_AUTO, AT(gid_index),
      .tags = SETTING_HOST | SETTING_OWN,
      .help = "GID index of the port; 65535: choose by link layer and GID type" },
    { .name = "seed", .heading = "Messages", .argument = "N", .default_value = "1", .kind = OPTION_NUMBER,
      .maximum = UINT32_MAX, AT(seed), .help = "seed of random choices" },
    { .name = "verify", .kind = OPTION_FLAG, AT(verify),
      .help = "verify every payload; measured times then include the verification" },

    { .name = "iterations", .heading = "Repetitions and time", .argument = "N", .default_value = "1000", .kind = OPTION_NUMBER,
      .minimum = 1, .maximum = 1 << 30, AT(iterations), .help = "measured iterations per point" },
    { .name = "warmup", .argument = "N", .default_value = "100", .kind = OPTION_NUMBER,
      .maximum = 1 << 30, AT(warmup), .help = "iterations before the measured ones" },
    { .name = "repetitions", .argument = "N", .default_value = "5", .kind = OPTION_NUMBER,
      .minimum = 1, .maximum = 10000, AT(repetitions),
      .help = "repetitions of a point whose sample is a whole run, such as bandwidth" },
    { .name = "rounds", .argument = "N", .default_value = "1", .kind = OPTION_NUMBER, .minimum = 1,
      .maximum = 1000, AT(rounds), .tags = SETTING_RUN,
      .help = "measure everything this many times, each time anew, and keep the median of each in the file: 'verbena compare' needs 4 to tell a change from noise" },
    { .name = "tolerance", .argument = "PERCENT", .default_value = "0", .kind = OPTION_REAL,
      AT(tolerance), .help = "measure until the confidence interval of the median is this narrow" },
    { .name = "cap", .argument = "S", .default_value = "10", .kind = OPTION_REAL, AT(cap),
      .help = "time limit per point with --tolerance, in seconds" },
    { .name = "trim", .argument = "PERCENT", .default_value = "0", .kind = OPTION_REAL, .maximum = 50,
      AT(trim),
      .help = "share of the slowest samples to drop" },
    { .name = "refine", .argument = "PERCENT", .default_value = "0", .kind = OPTION_REAL, .maximum = 100,
      AT(refine),
      .help = "where a curve over a count has a step, add points until neighbours are this close; 0: never" },

    { .name = "sizes", .heading = "Messages", .argument = "LIST", .default_value = "2..4M", .kind = OPTION_NUMBERS,
      .maximum = 1ull << 31, AT(sizes), .help = "message sizes" },
    { .name = "ops", .argument = "LIST", .default_value = "send", .kind = OPTION_CHOICES,
      .choices = "send write write-imm read fetch-add compare-swap", AT(operations),
      .help = "operations: send, write, write-imm, read, fetch-add, compare-swap" },
    { .name = "wait", .argument = "LIST", .default_value = "poll", .kind = OPTION_CHOICES,
      .choices = "poll memory block spin-block", AT(waits),
      .help = "how to wait: poll, memory, block, spin-block" },
    { .name = "style", .argument = "LIST", .default_value = "refill", .kind = OPTION_CHOICES,
      .choices = "refill reply", AT(styles),
      .help = "stream style: refill half of the window at a time, or wait for a reply after each window" },
    { .name = "transport", .argument = "NAME", .default_value = "rc", .kind = OPTION_CHOICE,
      .choices = "rc uc ud xrc", AT(transport), .help = "transport service" },
    { .name = "window", .argument = "N", .default_value = "64", .kind = OPTION_NUMBER, .minimum = 1,
      .maximum = 8192, AT(window), .help = "messages in flight" },
    { .name = "inline", .argument = "BYTES", .default_value = "0", .kind = OPTION_NUMBER,
      .maximum = 4096, AT(inline_limit),
      .help = "send messages up to this size inline" },
    { .name = "depth", .argument = "N", .default_value = "512", .kind = OPTION_NUMBER, .minimum = 1,
      .maximum = 32768, AT(depth), .help = "depth of queues that the experiment does not vary" },
    { .name = "signal", .argument = "N", .default_value = "1", .kind = OPTION_NUMBER, .minimum = 1,
      .maximum = 4096, AT(signal), .help = "signal every N-th send" },
    { .name = "spin", .argument = "US", .default_value = "20", .kind = OPTION_NUMBER,
      .maximum = 1000000, AT(spin), .help = "time to poll before blocking (spin-block), in us" },
    { .name = "mtu", .argument = "BYTES", .default_value = "0", .kind = OPTION_NUMBER,
      .choices = "0 256 512 1024 2048 4096", AT(mtu), .help = "path MTU; 0: the port's" },
    { .name = "sl", .argument = "N", .default_value = "0", .kind = OPTION_NUMBER, .maximum = 15,
      AT(sl), .help = "service level" },
    { .name = "stripe", .argument = "BYTES", .default_value = "8K", .kind = OPTION_NUMBER,
      .maximum = 1ull << 31, AT(stripe),
      .help = "split larger messages into stripes, one for each port" },

    { .name = "qps", .heading = "What experiments vary", .argument = "LIST", .default_value = "1", .kind = OPTION_NUMBERS, .minimum = 1,
      .maximum = 65536, AT(qps), .help = "numbers of queue pairs or connections" },
    { .name = "depths", .argument = "LIST", .default_value = "16..4K", .kind = OPTION_NUMBERS,
      .minimum = 1, .maximum = 1 << 20, AT(depths), .help = "queue depths" },
    { .name = "windows", .argument = "LIST", .default_value = "1..256", .kind = OPTION_NUMBERS,
      .minimum = 1, .maximum = 8192, AT(windows), .help = "window sizes" },
    { .name = "batches", .argument = "LIST", .default_value = "1..16", .kind = OPTION_NUMBERS,
      .minimum = 1, .maximum = BATCH_MAX, AT(batches),
      .help = "work requests per call, or consecutive calls" },
    { .name = "segments", .argument = "LIST", .default_value = "1..16", .kind = OPTION_NUMBERS,
      .minimum = 1, .maximum = 1024, AT(segments), .help = "scatter/gather entries per message" },
    { .name = "reuse", .argument = "LIST", .default_value = "0..100:25", .kind = OPTION_NUMBERS,
      .maximum = 100, AT(reuse), .help = "percentages of buffer reuse" },
    { .name = "regions", .argument = "LIST", .default_value = "1..256", .kind = OPTION_NUMBERS,
      .minimum = 1, .maximum = 65536, AT(regions), .help = "numbers of memory regions" },
    { .name = "nodes", .argument = "LIST", .default_value = "0..6:1", .kind = OPTION_NUMBERS,
      .maximum = FABRIC_NODES_MAX - 1, AT(nodes), .help = "numbers of additional nodes" },
    { .name = "threads", .argument = "LIST", .default_value = "1..4", .kind = OPTION_NUMBERS,
      .minimum = 1, .maximum = 256, AT(threads), .help = "numbers of threads" },
    { .name = "strides", .argument = "LIST", .default_value = "1..64", .kind = OPTION_NUMBERS,
      .minimum = 1, .maximum = 65536, AT(strides), .help = "strides, in elements of 8 bytes" },
    { .name = "blocks", .argument = "LIST", .default_value = "8..4K", .kind = OPTION_NUMBERS,
      .minimum = 1, .maximum = 1 << 20, AT(blocks), .help = "sizes of scattered blocks" },
    { .name = "offsets", .argument = "LIST", .default_value = "0,1,2,4..64", .kind = OPTION_NUMBERS,
      .maximum = 4096, AT(offsets), .help = "offsets from a page boundary" },
    { .name = "intervals", .argument = "LIST", .default_value = "1..64", .kind = OPTION_NUMBERS,
      .minimum = 1, .maximum = 4096, AT(intervals), .help = "signalled intervals" },
    { .name = "levels", .argument = "LIST", .default_value = "0..7:1", .kind = OPTION_NUMBERS,
      .maximum = 15, AT(levels), .help = "service levels" },
    { .name = "work", .argument = "LIST", .default_value = "0..95:5,96..100:1", .kind = OPTION_NUMBERS,
      .maximum = 100, AT(work), .help = "percentages of the time spent on computation" },

    { .name = "policies", .heading = "MPI", .argument = "LIST", .default_value = "adaptive", .kind = OPTION_CHOICES,
      .choices = RAILS_POLICY_NAMES, AT(policies),
      .help = "rail policies of MPI messages: " RAILS_POLICY_NAMES },
    { .name = "mca", .argument = "LIST", .kind = OPTION_TEXT, AT(mca),
      .help = "parameters of Open MPI: coll_tuned_use_dynamic_rules=1; separate several with ';'" },
    { .name = "ranks", .argument = "N", .default_value = "2", .kind = OPTION_NUMBER, .minimum = 2,
      .maximum = FABRIC_PROCESSES_MAX, AT(ranks), .help = "MPI processes" },
    { .name = "ranks-per-node", .argument = "N", .default_value = "1", .kind = OPTION_NUMBER,
      .minimum = 1, .maximum = FABRIC_PROCESSES_MAX, AT(ranks_per_node), .help = "MPI processes on one host" },
    { .name = "ports", .argument = "N", .default_value = "1", .kind = OPTION_NUMBER, .minimum = 1,
      .maximum = 4, AT(ports), .help = "ports per adapter that MPI and swarm use" },
    { .name = "devices", .argument = "N", .default_value = "1", .kind = OPTION_NUMBER, .minimum = 1,
      .maximum = 8, AT(devices), .help = "software adapters per host that MPI uses" },

    { .name = "fabric", .heading = "Device", .argument = "NAME", .kind = OPTION_NAME, .environment = "VERBENA_FABRIC",
      AT(fabric), .tags = SETTING_HOST | SETTING_OWN | SETTING_RUN,
      .help = "fabric of the software adapter; default: a private one" },
    { .name = "wire", .argument = "IFACE", .kind = OPTION_TEXT, .environment = "VERBENA_WIRE",
      AT(wire), .tags = SETTING_HOST | SETTING_OWN | SETTING_RUN,
      .help = "measure RoCEv2 over UDP on this network interface, or on one address or network (10.0.0.0/24) of this host" },
    { .name = "shm-dir", .argument = "DIR", .default_value = "/dev/shm", .kind = OPTION_PATH,
      .environment = "VERBENA_SHM_DIR", AT(shm_dir),
      .tags = SETTING_HOST | SETTING_OWN | SETTING_RUN,
      .help = "directory of the software adapter's shared memory segment" },
    { .name = NULL },
};
/* clang-format on */

void settings_init(struct settings *settings)
{
    char error[256];

    memset(settings, 0, sizeof(*settings));
    for (const struct option_row *row = settings_rows; row->name; row++) {
        if (row->default_value)
            option_store(row, row->default_value, settings, error, sizeof(error));
    }
}

const struct option_row *settings_row_of(const char *word)
{
    if (strncmp(word, "--", 2))
        return NULL;
    return option_find(settings_rows, word + 2, strcspn(word + 2, "= \t\r\n"));
}

int settings_read(struct settings *settings, char *const *words, int count, char *error,
                  size_t size)
{
    for (int i = 0; i < count; i++) {
        const struct option_row *row = settings_row_of(words[i]);
        const char *equals = strchr(words[i], '='), *value = "1";

        if (strncmp(words[i], "--", 2)) {
            snprintf(error, size, "'%s' is not an option", words[i]);
            return -1;
        }
        if (!row) {
            option_unknown(settings_rows, 0, words[i], error, size);
            return -1;
        }
        if (equals && row->kind == OPTION_FLAG) {
            snprintf(error, size, "--%s takes no value", row->name);
            return -1;
        }
        if (equals) {
            value = equals + 1;
        } else if (row->kind != OPTION_FLAG) {
            if (++i == count) {
                snprintf(error, size, "--%s needs a value", row->name);
                return -1;
            }
            value = words[i];
        }
        if (option_store(row, value, settings, error, size))
            return -1;
    }
    return 0;
}
