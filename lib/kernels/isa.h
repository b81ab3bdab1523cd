/* Chooses the instruction set of the fast host kernels. NAME_cpu.c is compiled once for each; NAME.c picks one with
 * SLC_ISA_PICK. The set is chosen once: the best that the processor has, or the one that SLUICE_KERNELS_ISA names
 * (baseline, avx2, avx512). All sets give equal bits, but for products of few rows (gemm/gemm_few.h). Any
 * thread may call. */
#pragma once

#include <sluice/status.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum { SLC_ISA_BASELINE, SLC_ISA_AVX2, SLC_ISA_AVX512, SLC_ISA_COUNT } slc_isa;

slc_isa slc_isa_level(void);           /* the set in use */
bool slc_isa_available(slc_isa isa);   /* it is compiled in, and this processor has it */
const char *slc_isa_name(slc_isa isa); /* "baseline", "avx2", "avx512" */
/* Returns true if SLUICE_KERNELS_ISA names a set that this processor has; *isa is that set then. */
bool slc_isa_is_set(slc_isa *isa);
/* Makes later kernels use `isa`, for tests. Errors: UNSUPPORTED. */
sluice_status slc_isa_force(slc_isa isa);

/* A fast kernel works on items first..last-1. `part` numbers this range among those of one call (host.h). */
typedef void slc_range_kernel(const void *args, uint32_t part, uint64_t first, uint64_t last);

#define SLC_ISA_PASTE_(name, suffix) name##suffix
#define SLC_ISA_PASTE(name, suffix) SLC_ISA_PASTE_(name, suffix)
/* The name that a kernel has in the file that is being compiled. */
#define SLC_ISA(name) SLC_ISA_PASTE(name, SLC_ISA_SUFFIX)

#if defined(__x86_64__)
#define SLC_ISA_DECLARE(name) extern slc_range_kernel name##_baseline, name##_avx2, name##_avx512
#define SLC_ISA_PICK(name)                                                                                             \
    (slc_isa_level() == SLC_ISA_AVX512 ? name##_avx512                                                                 \
     : slc_isa_level() == SLC_ISA_AVX2 ? name##_avx2                                                                   \
                                       : name##_baseline)
#else
#define SLC_ISA_DECLARE(name) extern slc_range_kernel name##_baseline
#define SLC_ISA_PICK(name) (name##_baseline)
#endif
