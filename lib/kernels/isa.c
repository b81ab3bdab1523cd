/* Asks the processor once what it has. If SLUICE_KERNELS_ISA names a set that it lacks, a warning is logged and the
 * best set is used. tests/command/info_test.sh covers this file. */
#include "lib/kernels/isa.h"

#include "lib/base/log.h"
#include "lib/base/status.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static _Atomic int chosen = -1;

const char *slc_isa_name(slc_isa isa)
{
    static const char *const names[SLC_ISA_COUNT] = {"baseline", "avx2", "avx512"};
    return isa < SLC_ISA_COUNT ? names[isa] : "unknown";
}

bool slc_isa_available(slc_isa isa)
{
#if defined(__x86_64__)
    if (isa == SLC_ISA_AVX512)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("fma");
    if (isa == SLC_ISA_AVX2) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
    return isa == SLC_ISA_BASELINE;
}

bool slc_isa_is_set(slc_isa *isa)
{
    const char *wish = getenv("SLUICE_KERNELS_ISA");
    for (*isa = SLC_ISA_BASELINE; wish && *isa < SLC_ISA_COUNT; ++*isa)
        if (!strcmp(wish, slc_isa_name(*isa)) && slc_isa_available(*isa)) return true;
    return false;
}

static slc_isa choose(void)
{
    slc_isa set, best = SLC_ISA_COUNT - 1;
    while (!slc_isa_available(best)) best--;
    if (slc_isa_is_set(&set)) return set;

    const char *wish = getenv("SLUICE_KERNELS_ISA");
    if (!wish || !*wish) return best;
    slc_log(SLC_LOG_WARN, "SLUICE_KERNELS_ISA=%s: not one of baseline, avx2, avx512 that this processor has; using %s",
            wish, slc_isa_name(best));
    return best;
}

slc_isa slc_isa_level(void)
{
    int level = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (level < 0) {
        int unset = -1;
        level = (int)choose();
        if (!atomic_compare_exchange_strong(&chosen, &unset, level)) level = unset;
    }
    return (slc_isa)level;
}

sluice_status slc_isa_force(slc_isa isa)
{
    if (!slc_isa_available(isa))
        return slc_error(SLUICE_ERR_UNSUPPORTED, "kernels: this processor or build has no %s", slc_isa_name(isa));
    atomic_store(&chosen, (int)isa);
    return SLUICE_OK;
}
