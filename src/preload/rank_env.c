/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/rank_env.h"

__attribute__((constructor)) static void set_rank_env(void)
{
    rank_env_set();
}
