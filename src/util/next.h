/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UTIL_NEXT_H
#define UTIL_NEXT_H

#include <dlfcn.h>

/* The function that a call would reach if this library were not preloaded. */
#define NEXT(name)                                                            \
    ({                                                                        \
        static __typeof__(&name) next_;                                       \
        __typeof__(&name) found_ = __atomic_load_n(&next_, __ATOMIC_RELAXED); \
        if (!found_) {                                                        \
            found_ = (__typeof__(&name))dlsym(RTLD_NEXT, #name);              \
            __atomic_store_n(&next_, found_, __ATOMIC_RELAXED);               \
        }                                                                     \
        found_;                                                               \
    })

#endif
