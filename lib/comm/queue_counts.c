/* lib/comm/world/world_test.c and lib/comm/channel/channel_test.c cover this file. */
#include "lib/comm/queue_counts.h"

void slc_queue_counts_wait(slc_queue_counts *counts, uint32_t index, _Atomic uint64_t *waiter, uint64_t thread)
{
    if (slc_gate_passed(&counts->completed, index)) return;
    atomic_store(&counts->wanted, index);
    atomic_store(waiter, thread);
    atomic_fetch_add(&counts->waiting, 1);
    slc_gate_wait(&counts->completed, index, UINT64_MAX);
    atomic_fetch_sub(&counts->waiting, 1);
}

sluice_status slc_queue_counts_result(const slc_queue_counts *counts, uint32_t index, slc_failure *failure)
{
    const uint32_t finished = atomic_load_explicit(&counts->finished, memory_order_acquire);
    return (int32_t)(finished - index) >= 0 ? SLUICE_OK : slc_failure_get(failure);
}

bool slc_queue_counts_awaited(const slc_queue_counts *counts)
{
    const uint32_t wanted = atomic_load(&counts->wanted);
    return atomic_load(&counts->waiting) && !slc_gate_passed(&counts->completed, wanted);
}

void slc_queue_counts_give_up(slc_queue_counts *counts)
{
    slc_gate_post(&counts->completed, atomic_load(&counts->submitted) + SLC_FAR_BEYOND);
}
