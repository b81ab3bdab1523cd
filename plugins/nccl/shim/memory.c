/* NCCL's functions that make memory known to it. What one rank alone may do decides nothing here; a window is made by
 * all ranks of its communicator, whose calls transforms then leave alone. tests/nccl/on_the_bed.py covers this file. */
#include "plugins/nccl/shim/call.h"
#include "plugins/nccl/shim/communicators.h"
#include "plugins/nccl/shim/recorder.h"
#include "plugins/nccl/shim/transforms.h"

#define LIBRARY_OF_CALL(call)                                                                                          \
    const slc_shim_real *own = slc_shim_call_of_nccl(__builtin_return_address(0));                                     \
    if (own) return own->call

static const slc_shim_real *library_of(ncclComm_t comm)
{
    const slc_shim_recorder *recorder = slc_shim_recorder_made();
    const slc_shim_comm *known = recorder && comm ? slc_shim_comm_find(recorder, comm) : NULL;
    return known ? known->real : slc_shim_real_default();
}

ncclResult_t ncclMemAlloc(void **memory, size_t bytes)
{
    LIBRARY_OF_CALL(MemAlloc(memory, bytes));
    return slc_shim_real_for(__builtin_return_address(0))->MemAlloc(memory, bytes);
}

ncclResult_t ncclMemFree(void *memory)
{
    LIBRARY_OF_CALL(MemFree(memory));
    return slc_shim_real_for(__builtin_return_address(0))->MemFree(memory);
}

ncclResult_t ncclCommRegister(const ncclComm_t comm, void *buffer, size_t bytes, void **handle)
{
    LIBRARY_OF_CALL(CommRegister(comm, buffer, bytes, handle));
    return library_of(comm)->CommRegister(comm, buffer, bytes, handle);
}

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle)
{
    LIBRARY_OF_CALL(CommDeregister(comm, handle));
    return library_of(comm)->CommDeregister(comm, handle);
}

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *buffer, size_t bytes, ncclWindow_t *window, int flags)
{
    LIBRARY_OF_CALL(CommWindowRegister(comm, buffer, bytes, window, flags));
    slc_shim_call call = SLC_SHIM_PLAIN_CALL;
    call.operation = SLC_RECORD_WINDOW;
    call.comm = comm;
    call.count = bytes;
    call.send = buffer;
    call.caller = __builtin_return_address(0);
    slc_shim_call_begin(&call);
    const slc_shim_transforms *transforms = call.recorder->transforms;
    if (transforms && call.known) transforms->window_made(call.known);
    return slc_shim_call_end(&call, call.real->CommWindowRegister(comm, buffer, bytes, window, flags));
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window)
{
    LIBRARY_OF_CALL(CommWindowDeregister(comm, window));
    return library_of(comm)->CommWindowDeregister(comm, window);
}

ncclResult_t pncclMemAlloc(void **memory, size_t bytes) __attribute__((alias("ncclMemAlloc")));
ncclResult_t pncclMemFree(void *memory) __attribute__((alias("ncclMemFree")));
ncclResult_t pncclCommRegister(const ncclComm_t comm, void *buffer, size_t bytes, void **handle)
    __attribute__((alias("ncclCommRegister")));
ncclResult_t pncclCommDeregister(const ncclComm_t comm, void *handle) __attribute__((alias("ncclCommDeregister")));
ncclResult_t pncclCommWindowRegister(ncclComm_t comm, void *buffer, size_t bytes, ncclWindow_t *window, int flags)
    __attribute__((alias("ncclCommWindowRegister")));
ncclResult_t pncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window)
    __attribute__((alias("ncclCommWindowDeregister")));
