/* The NCCL libraries of the process to which calls are passed on. Private to plugins/nccl/shim. Any thread; nothing is
 * ever freed, so a pointer stays good. */
#pragma once

#include "plugins/nccl/nccl_abi.h"
#include <stdbool.h>

enum { SLC_SHIM_MOST_LIBRARIES = 16 };

/* One library. Each function is callable: one that the library lacks says so in a line and returns
 * ncclInternalError. */
typedef struct slc_shim_real {
#define SLC_SHIM_NCCL_MEMBER(result, name, parameters, arguments) result(*name) parameters;
    SLC_NCCL_FUNCTIONS(SLC_SHIM_NCCL_MEMBER, SLC_SHIM_NCCL_MEMBER)
#undef SLC_SHIM_NCCL_MEMBER
    const char *path;     /* "" if none was found: then each function returns ncclSystemError */
    uintptr_t begin, end; /* where it is loaded */
    unsigned number;      /* of the libraries found, below SLC_SHIM_MOST_LIBRARIES */
} slc_shim_real;

/* The library for calls without a communicator: SLUICE_SHIM_NCCL, else the first one loaded whose file is called
 * libnccl.so*, else the one that a dlsym was asked of, else libnccl.so.2 as the loader finds it. Never NULL. */
const slc_shim_real *slc_shim_real_default(void);

/* The library for a call without a communicator that comes from this address. It is the default one, unless several are
 * loaded: then the one that the caller's module is linked to, and for a module that is linked to none the one that a
 * dlsym was asked of last. */
const slc_shim_real *slc_shim_real_for(const void *caller);

/* The library in whose code the address lies; NULL if it lies in none that was used so far. */
const slc_shim_real *slc_shim_real_at(const void *address);

/* The library with this number, which slc_shim_real_default or slc_shim_real_at gave before. */
const slc_shim_real *slc_shim_real_numbered(unsigned number);

/* Returns true if the library that a call from this address goes to has the function `name`, which begins with nccl or
 * pnccl. It is also true for names that are not NCCL's, and while no library is loaded, because none is opened to find
 * out. */
bool slc_shim_real_has(const void *caller, const char *name);

/* Remembers that a program got this function of NCCL's by dlsym. */
void slc_shim_real_asked(const void *function);

/* Returns true if the function is the shim's own. A library that is another name of the shim must not be called by it.
 */
bool slc_shim_is_ours(const void *function);
