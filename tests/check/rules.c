/* SPDX-License-Identifier: BSD-2-Clause */
/* Breaks one rule that no adapter notices: rules CASE. */
#include "bed.h"

static struct bed bed;

static void poll_both(void)
{
    for (int i = 0; i < 2; i++)
        BED_NEED(bed_poll(&bed).status == IBV_WC_SUCCESS);
}

static void reuse_too_early(void)
{
    BED_NEED(!bed_receive(&bed, 1, 512, 3));
    BED_NEED(!bed_send(&bed, 0, 512, 4));
    bed.memory[100]++;
    poll_both();
    bed_free(&bed);
}

static void reuse_in_time(void)
{
    for (int i = 0; i < 100; i++) {
        BED_NEED(!bed_receive(&bed, 1, 512, 3));
        BED_NEED(!bed_send(&bed, 0, 512, 4));
        poll_both();
        bed.memory[100]++;
    }
    bed_free(&bed);
}

static void deregister_too_early(void)
{
    BED_NEED(!bed_receive(&bed, 1, 512, 3));
    BED_NEED(!bed_send(&bed, 0, 512, 4));
    BED_NEED(!ibv_dereg_mr(bed.mr));
}

static void leak(void)
{
    BED_NEED(!ibv_destroy_qp(bed.qp[0]) && !ibv_destroy_qp(bed.qp[1]));
    BED_NEED(!ibv_destroy_cq(bed.cq));
    ibv_close_device(bed.context);
}

static void post_after_destroy(void)
{
    BED_NEED(!ibv_destroy_qp(bed.qp[0]));
    bed_send(&bed, 0, 512, 4);
}

static void destroy_twice(void)
{
    BED_NEED(!ibv_destroy_qp(bed.qp[0]));
    ibv_destroy_qp(bed.qp[0]);
}

static void poll_after_destroy(void)
{
    struct ibv_wc wc;

    BED_NEED(!ibv_destroy_qp(bed.qp[0]) && !ibv_destroy_qp(bed.qp[1]));
    BED_NEED(!ibv_destroy_cq(bed.cq));
    ibv_poll_cq(bed.cq, 1, &wc);
}

static const struct bed_case cases[] = {
    { "reuse-too-early", reuse_too_early },
    { "reuse-in-time", reuse_in_time },
    { "deregister-too-early", deregister_too_early },
    { "leak", leak },
    { "post-after-destroy", post_after_destroy },
    { "destroy-twice", destroy_twice },
    { "poll-after-destroy", poll_after_destroy },
    { NULL, NULL },
};

int main(int count, char **words)
{
    const struct bed_case *chosen = bed_choose(cases, count, words);

    bed_make(&bed);
    chosen->run();
    return 0;
}
