/* An address belongs to a module until the loader loads or unloads one, so the answers are kept.
 * shim_test.c covers this file. */
#include "plugins/nccl/shim/callers.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

/* Finds or makes the row of the module that is loaded at this address. The path is compared too, because another module
 * may be there after one was unloaded. Two threads may make two rows of one module; readers go by the path. */
static unsigned module_row(slc_shim_recorder *recorder, const Dl_info *info)
{
    uint64_t base = (uint64_t)(uintptr_t)info->dli_fbase;
    const char *path = info->dli_fname ? info->dli_fname : "";
    size_t length = strlen(path), room = sizeof recorder->modules->path;
    if (length >= room) path += length - (room - 1); /* its end says more */
    unsigned count = __atomic_load_n(&recorder->header->modules, __ATOMIC_ACQUIRE);
    for (unsigned i = 0; i < count && i < SLC_RECORD_MODULES; i++)
        if (__atomic_load_n(&recorder->modules[i].base, __ATOMIC_ACQUIRE) == base &&
            !strcmp(recorder->modules[i].path, path))
            return i;
    do {
        if (count >= SLC_RECORD_MODULES) return SLC_RECORD_NO_MODULE;
    } while (!__atomic_compare_exchange_n(&recorder->header->modules, &count, count + 1, false, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE));
    slc_record_module *row = &recorder->modules[count];
    memcpy(row->path, path, strlen(path) + 1);
    __atomic_store_n(&row->base, base, __ATOMIC_RELEASE);
    return count;
}

static int count_loads(struct dl_phdr_info *info, size_t bytes, void *out)
{
    (void)bytes;
    *(unsigned long long *)out = info->dlpi_adds + info->dlpi_subs;
    return 1;
}

/* Forgets which addresses lie in which module if the loader has loaded or unloaded something. */
static void check_callers(slc_shim_recorder *recorder, int64_t now_ns)
{
    unsigned long long loads = 0;
    atomic_store_explicit(&recorder->callers_checked_ns, now_ns, memory_order_relaxed);
    dl_iterate_phdr(count_loads, &loads);
    if (atomic_exchange(&recorder->loads, loads) == loads) return;
    for (size_t i = 0; i < SLC_SHIM_CALLER_CACHE; i++)
        atomic_store_explicit(&recorder->callers[i], 0, memory_order_relaxed);
}

uint64_t slc_shim_module_caller(slc_shim_recorder *recorder, const void *address, int64_t now_ns)
{
    enum { CHECKS_NS = 1000000000 };
    uint64_t low = (uint64_t)(uintptr_t)address & SLC_RECORD_LOW48;
    if (!low) return (uint64_t)SLC_RECORD_NO_MODULE << 48;
    if (now_ns - atomic_load_explicit(&recorder->callers_checked_ns, memory_order_relaxed) > CHECKS_NS)
        check_callers(recorder, now_ns);
    _Atomic uint64_t *place = &recorder->callers[(low ^ low >> 10) % SLC_SHIM_CALLER_CACHE];
    uint64_t cached = atomic_load_explicit(place, memory_order_acquire); /* the address, above it the row */
    if ((cached & SLC_RECORD_LOW48) != low) {
        Dl_info info;
        unsigned row = dladdr(address, &info) ? module_row(recorder, &info) : SLC_RECORD_NO_MODULE;
        cached = low | (uint64_t)row << 48;
        atomic_store_explicit(place, cached, memory_order_release);
    }
    unsigned row = (unsigned)(cached >> 48);
    uint64_t offset = row == SLC_RECORD_NO_MODULE ? low : low - recorder->modules[row].base;
    return (offset & SLC_RECORD_LOW48) | (uint64_t)row << 48;
}
