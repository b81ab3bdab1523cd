/* shim_test.c covers this file. */
#include "plugins/nccl/shim/entry.h"

void slc_shim_entry_mark(slc_shim_recorder *recorder, uint64_t entry, unsigned flags)
{
    slc_record_entry *there = &recorder->entries[entry & recorder->entry_mask];
    if (__atomic_load_n(&there->sequence, __ATOMIC_ACQUIRE) == (uint32_t)(entry + 1))
        __atomic_fetch_or(&there->group_flags, (uint32_t)flags << 24, __ATOMIC_RELAXED);
}

void slc_shim_entry_failed(slc_shim_recorder *recorder, uint64_t entry)
{
    slc_shim_entry_mark(recorder, entry, SLC_RECORD_FAILED);
    atomic_store_explicit(&recorder->fault, true, memory_order_relaxed);
}
