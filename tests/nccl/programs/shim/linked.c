/* A program that is linked to NCCL, for shim_test.c. */
#include "tests/nccl/programs/shim/echo_nccl.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int module_calls(int all_reduces);

/* The tests' NCCL lacks this function. */
extern __typeof__(ncclCommRevoke) ncclCommRevoke __attribute__((weak));

/* A program that asks for what its NCCL has must not hear of what it lacks. */
static int ask_for_all(void)
{
    void *there = dlsym(RTLD_DEFAULT, "ncclAllReduce"), *twin = dlsym(RTLD_DEFAULT, "pncclAllReduce");
    if (!there || !twin || dlsym(RTLD_DEFAULT, "ncclAllReduce") != there) return 1;
    dlerror();
    if (dlsym(RTLD_DEFAULT, "ncclCommRevoke") || !dlerror()) return 2;
    if (dlsym(RTLD_DEFAULT, "pncclCommRevoke") || dlsym(RTLD_DEFAULT, "ncclNoSuchFunction")) return 3;
    return dlsym(RTLD_DEFAULT, "strlen") ? 0 : 4;
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "asked")) return ask_for_all();
    if (argc > 1 && !strcmp(argv[1], "missing")) return ncclCommRevoke(NULL, 0) == ncclInternalError ? 0 : 1;
    if (argc > 1 && !strcmp(argv[1], "none")) {
        int version;
        ncclUniqueId id;
        if (ncclGetVersion(&version) != ncclSystemError || ncclGetUniqueId(&id) != ncclSystemError) return 1;
        return ncclGroupStart() == ncclSystemError ? 0 : 1;
    }
    return module_calls(3);
}
