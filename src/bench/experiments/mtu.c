/* What smaller packets cost. */
#include "variants.h"

static int run(struct bench *bench)
{
    struct variants variants = { .bench = bench };

    for (int mtu = IBV_MTU_256; mtu <= (int)bench->adapter->port_attributes.active_mtu; mtu++) {
        struct flow_spec *spec = variants_add(&variants, "mtu %u", mtu_bytes(mtu));

        spec->mtu = mtu_bytes(mtu);
    }
    return variants_measure(&variants);
}

const struct experiment experiment_mtu = {
    .name = "mtu",
    .group = "attributes",
    .title = "What do smaller packets cost?",
    .source = "MIBA section 5.2.5 and figure 10",
    .options = "--sizes 2..1M --iterations 1000",
    .quick = "--sizes 256,4K,64K --iterations 200 --repetitions 3",
    .ranks = 2,
    .run = run,
};
