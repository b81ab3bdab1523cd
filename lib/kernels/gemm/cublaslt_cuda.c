/* A library of CUDA 13 can be opened even if the driver is older; its first call then fails. So the driver is asked
 * first, and a machine that has both 13 and 12 gets what it can run. tests/cuda_emulated/cublaslt_folders_test.c covers
 * this file. */
#include "lib/kernels/gemm/cublaslt_cuda.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

void *slc_gemm_open_cublaslt(const char *folder, int driver)
{
    static const struct {
        const char *name;
        int needs;
    } libraries[] = {{"libcublasLt.so.13", 13000}, {"libcublasLt.so.12", 12000}};
    void *library = NULL;
    for (size_t i = 0; !library && i < sizeof libraries / sizeof *libraries; i++) {
        char path[4096];
        if (driver && driver < libraries[i].needs) continue;
        snprintf(path, sizeof path, "%s%s%s", folder, *folder ? "/" : "", libraries[i].name);
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    return library;
}
