/* A program that is linked to NCCL, for shim_test.c. */
#include "tests/nccl/programs/shim/echo_nccl.h"

#include <stdio.h>
#include <string.h>

int module_calls(int all_reduces);

/* The tests' NCCL lacks this one. */
extern __typeof__(ncclCommRevoke) ncclCommRevoke __attribute__((weak));

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "missing")) return ncclCommRevoke(NULL, 0) == ncclInternalError ? 0 : 1;
    if (argc > 1 && !strcmp(argv[1], "none")) {
        int version;
        ncclUniqueId id;
        if (ncclGetVersion(&version) != ncclSystemError || ncclGetUniqueId(&id) != ncclSystemError) return 1;
        return ncclGroupStart() == ncclSystemError ? 0 : 1;
    }
    return module_calls(3);
}
