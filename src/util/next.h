#ifndef UTIL_NEXT_H
#define UTIL_NEXT_H

#include <dlfcn.h>

/* The definition of a call that would have been used without this library. */
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
