/* Finds libc's dlsym. On processors and C libraries for which the shim does not cover dlsym, that is dlsym itself.
 * Sanitizers ask for functions
 * while they start, so this file is compiled without them. plugins/nccl/shim/shim_test.c covers this file. */
#include "plugins/nccl/shim/library/real_dlsym.h"

#include <dlfcn.h>
#include <stdatomic.h>

#if defined(__x86_64__)
#define OLD_LIBDL "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define OLD_LIBDL "GLIBC_2.17"
#endif

slc_shim_dlsym slc_shim_libc_dlsym(void)
{
#ifdef OLD_LIBDL
    static _Atomic(slc_shim_dlsym) found;
    slc_shim_dlsym function = atomic_load_explicit(&found, memory_order_relaxed);
    if (function) return function;
    void *symbol = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    if (!symbol) symbol = dlvsym(RTLD_NEXT, "dlsym", OLD_LIBDL);
    *(void **)&function = symbol;
    atomic_store_explicit(&found, function, memory_order_relaxed);
    return function;
#else
    return dlsym;
#endif
}

void *slc_shim_real_dlsym(void *handle, const char *name)
{
    return slc_shim_libc_dlsym()(handle, name);
}
