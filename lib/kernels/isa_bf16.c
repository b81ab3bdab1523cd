/* Asks the processor once. lib/kernels/gemm/gemm_test.c covers this file. */
#include "lib/kernels/isa_bf16.h"

#include "lib/kernels/isa.h"

#include <stdatomic.h>

static _Atomic int has_bf16 = -1; /* -1: nobody has asked yet */

static bool find_bf16(void)
{
#if defined(__x86_64__)
    slc_isa set;
    return __builtin_cpu_supports("avx512bf16") && !slc_isa_is_set(&set);
#else
    return false;
#endif
}

bool slc_isa_has_bf16(void)
{
    int has = atomic_load_explicit(&has_bf16, memory_order_relaxed);
    if (has < 0) atomic_store(&has_bf16, has = find_bf16());
    return has && slc_isa_level() == SLC_ISA_AVX512;
}

void slc_isa_hold_back_bf16(bool without)
{
    atomic_store(&has_bf16, without ? 0 : -1);
}
