/* SPDX-License-Identifier: BSD-2-Clause */
#include "calibrate/control.h"

#include "results/threshold.h"

#include <math.h>
#include <string.h>

/* How the time of a call depends on the x of its curve. */
enum amount {
    AMOUNT_NONE,
    AMOUNT_X,     /* entries, or requests of a call */
    AMOUNT_REST,  /* requests of a call after the first */
    AMOUNT_BOTH,  /* a QP has two queues of this depth */
    AMOUNT_PAGES, /* pages of a region of x bytes, up to host.reg_mr_knee */
};

/* time = calls * base + amount(x) * each; a key that is NULL has no part in it. */
static const struct control_row {
    const char *experiment, *series; /* the curve's name or the word it begins with */
    double calls;
    const char *base;
    enum amount amount;
    const char *each;
    bool alone; /* no other experiment times this call */
} control_rows[] = {
    { "post-send", "send", 1, "host.post_send", AMOUNT_REST, "host.post_next_send" },
    { "post-recv", "send", 0, NULL, AMOUNT_X, "host.post_recv" },
    { "poll-hit", "send", 0, NULL, AMOUNT_X, "host.poll_hit" },
    { "poll-empty", "empty", 1, "host.poll_empty", AMOUNT_NONE, NULL },
    { "qp-create", "create", 1, "host.create_qp", AMOUNT_BOTH, "host.create_qp_entry", true },
    { "qp-connect", "connect", 3, "host.modify_qp", AMOUNT_NONE, NULL, true },
    { "qp-destroy", "unconnected", 1, "host.destroy_qp", AMOUNT_NONE, NULL, true },
    { "qp-destroy", "connected", 1, "host.destroy_connected_qp", AMOUNT_NONE, NULL, true },
    { "cq-create", "create", 1, "host.create_cq", AMOUNT_X, "host.create_cq_entry", true },
    { "cq-destroy", "destroy", 1, "host.destroy_cq", AMOUNT_X, "host.destroy_cq_entry", true },
    { "srq-create", "create", 1, "host.create_srq", AMOUNT_NONE, NULL, true },
    { "srq-create", "destroy", 1, "host.destroy_srq", AMOUNT_NONE, NULL, true },
    { "mr-reg", "register", 1, "host.reg_mr", AMOUNT_PAGES, "host.reg_mr_page" },
    { "mr-dereg", "deregister", 1, "host.dereg_mr", AMOUNT_PAGES, "host.dereg_mr_page" },
    { "pd", "allocate", 1, "host.alloc_pd", AMOUNT_NONE, NULL, true },
    { "ah", "create", 1, "host.create_ah", AMOUNT_NONE, NULL, true },
};

static double amount_of(const struct control_row *row, const struct keys *keys, double x)
{
    switch (row->amount) {
    case AMOUNT_X:
        return x;
    case AMOUNT_REST:
        return x - 1;
    case AMOUNT_BOTH:
        return 2 * x;
    case AMOUNT_PAGES:
        return ceil(x / keys->start.host.page_size);
    default:
        return 0;
    }
}

static bool has_series(const struct control_row *row, const struct series *series)
{
    size_t length = strlen(row->series);

    return !strncmp(series->name, row->series, length) &&
           (!series->name[length] || series->name[length] == ' ');
}

/* Beyond the knee the model has a price that the line does not know. */
static bool in_range(const struct control_row *row, const struct keys *keys, double amount)
{
    return row->amount != AMOUNT_PAGES || strcmp(row->experiment, "mr-reg") ||
           amount <= keys->start.host.reg_mr_knee;
}

/* Sums of the normal equations, each point divided by its value. */
struct line {
    double cc, ca, aa, c, a;
    unsigned int count;
};

static void add_curve(const struct control_row *row, const struct keys *keys,
                      const struct series *series, struct line *line)
{
    for (unsigned int i = 0; i < series->count; i++) {
        double amount = amount_of(row, keys, series->points[i].x), ns;
        double calls = row->base ? row->calls : 0;

        if (!threshold_convert_unit(series->points[i].y.median, series->unit, "ns", &ns) ||
            !(ns > 0) || !in_range(row, keys, amount))
            continue;
        amount = row->each ? amount / ns : 0;
        calls /= ns;
        line->cc += calls * calls;
        line->ca += calls * amount;
        line->aa += amount * amount;
        line->c += calls;
        line->a += amount;
        line->count++;
    }
}

/* The costs that minimise the relative errors; none is negative. */
static void solve(const struct line *line, double *base, double *each)
{
    double determinant = line->cc * line->aa - line->ca * line->ca;

    *base = line->cc > 0 ? line->c / line->cc : 0;
    *each = line->aa > 0 ? line->a / line->aa : 0;
    if (!(line->cc > 0) || !(line->aa > 0))
        return;
    if (determinant > 1e-9 * line->cc * line->aa) {
        double b = (line->c * line->aa - line->a * line->ca) / determinant;
        double e = (line->a * line->cc - line->c * line->ca) / determinant;

        if (b >= 0 && e >= 0) {
            *base = b;
            *each = e;
            return;
        }
        if (b < 0) {
            *base = 0;
            return;
        }
    }
    *each = 0;
}

static unsigned int set_measured(struct keys *keys, const char *name, double value,
                                 const struct control_row *row, unsigned int points)
{
    struct key *key = name ? keys_find(keys, name) : NULL;

    if (!key)
        return 0;
    key->value = keys_valid(key, value);
    key->variation = KEY_FIXED;
    key->origin = KEY_MEASURED;
    snprintf(key->note, sizeof(key->note), "%s, %u point%s", row->experiment, points,
             points == 1 ? "" : "s");
    return 1;
}

/* Least squares would move it by what is left of the noise. */
static void leave_undetermined(struct keys *keys, const char *name)
{
    struct key *key = name ? keys_find(keys, name) : NULL;

    if (!key || key->variation != KEY_SMOOTH)
        return;
    key->variation = KEY_FIXED;
    key->origin = KEY_UNDETERMINED;
}

unsigned int control_apply(const struct data *data, struct keys *keys)
{
    unsigned int count = 0;

    for (size_t i = 0; i < sizeof(control_rows) / sizeof(*control_rows); i++) {
        const struct control_row *row = &control_rows[i];
        struct line line = { 0 };
        double base, each;

        for (unsigned int k = 0; k < data->experiment_count; k++) {
            const struct data_experiment *entry = &data->experiments[k];

            if (entry->role != DATA_CONTROL || strcmp(entry->result->name, row->experiment))
                continue;
            for (unsigned int s = 0; s < entry->result->count; s++) {
                if (has_series(row, &entry->result->series[s]))
                    add_curve(row, keys, &entry->result->series[s], &line);
            }
        }
        if (!line.count)
            continue;
        solve(&line, &base, &each);
        count += set_measured(keys, row->base, base, row, line.count);
        /* One point cannot tell the part that grows from the part that does not. */
        if (!row->base || (line.count > 1 && line.aa > 0))
            count += set_measured(keys, row->each, each, row, line.count);
    }
    for (size_t i = 0; i < sizeof(control_rows) / sizeof(*control_rows); i++) {
        if (control_rows[i].alone) {
            leave_undetermined(keys, control_rows[i].base);
            leave_undetermined(keys, control_rows[i].each);
        }
    }
    return count;
}

const char *control_experiment_of(const char *key)
{
    for (size_t i = 0; i < sizeof(control_rows) / sizeof(*control_rows); i++) {
        const struct control_row *row = &control_rows[i];

        if ((row->base && !strcmp(row->base, key)) || (row->each && !strcmp(row->each, key)))
            return row->experiment;
    }
    return NULL;
}
