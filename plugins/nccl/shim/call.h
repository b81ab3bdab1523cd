/* One call on a communicator, from its arrival to its return: recorded, measured, changed by a transform if one is
 * asked for, passed on. Private to plugins/nccl/shim. */
#pragma once

#include "plugins/nccl/shim/state.h"

/* The twin of ncclNAME, which nccl_abi.h declares too. */
#define SLC_SHIM_TWIN(name) extern __typeof__(nccl##name) pnccl##name __attribute__((alias("nccl" #name)))

/* Returns the NCCL library that makes this call itself; NULL: the program makes it. A call is NCCL's own if it arrives
 * from NCCL's code, or while this thread is inside a call of ours; it then passes unrecorded. */
static inline const slc_shim_real *slc_shim_call_of_nccl(const void *caller)
{
    const slc_shim_real *inside = slc_shim_this_thread()->inside;
    return __builtin_expect(inside != NULL, 0) ? inside : slc_shim_real_at(caller);
}

/* Begins the thread's groups in a library that its group has not used yet. */
void slc_shim_call_join_groups(slc_shim_thread *thread, const slc_shim_real *real);

/* Writes the entry of a call whose recorder, thread and communicator are known, and counts it on its communicator. */
void slc_shim_call_record(slc_shim_call *call);

/* Finds the call's communicator and library, writes its entry, counts it on its communicator, and begins the thread's
 * groups in its library if that is another one than the default. Until slc_shim_call_end what arrives in this thread is
 * NCCL's own. */
void slc_shim_call_begin(slc_shim_call *call);

/* Notes what the call returned. */
ncclResult_t slc_shim_call_end(slc_shim_call *call, ncclResult_t result);
