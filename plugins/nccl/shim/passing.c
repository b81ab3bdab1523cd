/* NCCL's functions that are passed on and not recorded: questions, memory, operators and the device interface. The
 * making of a window is here too, and is recorded. No decision here depends on what one rank alone may do.
 * tests/nccl/on_the_bed.py covers this file. */
#include "plugins/nccl/shim/call.h"
#include "plugins/nccl/shim/communicators.h"
#include "plugins/nccl/shim/recorder.h"
#include "plugins/nccl/shim/transforms.h"

static const slc_shim_real *library_of(ncclComm_t comm)
{
    const slc_shim_recorder *recorder = slc_shim_recorder_made();
    const slc_shim_comm *known = recorder && comm ? slc_shim_comm_find(recorder, comm) : NULL;
    return known ? known->real : slc_shim_real_default();
}

#define PASS(result, name, parameters, arguments, library)                                                             \
    result nccl##name parameters                                                                                       \
    {                                                                                                                  \
        const slc_shim_real *own = slc_shim_call_of_nccl(__builtin_return_address(0));                                 \
        return (own ? own : library)->name arguments;                                                                  \
    }                                                                                                                  \
    SLC_SHIM_TWIN(name);
#define PASS_PLAIN(result, name, parameters, arguments)                                                                \
    PASS(result, name, parameters, arguments, slc_shim_real_for(__builtin_return_address(0)))
#define PASS_OF_COMM(result, name, parameters, arguments) PASS(result, name, parameters, arguments, library_of(comm))
SLC_NCCL_PLAIN(PASS_PLAIN)
SLC_NCCL_OF_COMM(PASS_OF_COMM)

/* A window is made by all ranks of its communicator, whose calls transforms then leave alone. */
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *buffer, size_t bytes, ncclWindow_t *window, int flags)
{
    const slc_shim_real *own = slc_shim_call_of_nccl(__builtin_return_address(0));
    if (own) return own->CommWindowRegister(comm, buffer, bytes, window, flags);
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
SLC_SHIM_TWIN(CommWindowRegister);

/* Calls that use the operator may be held until the end of the thread's group; then its destruction is too. */
ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm)
{
    const slc_shim_real *own = slc_shim_call_of_nccl(__builtin_return_address(0)),
                        *library = own ? own : library_of(comm);
    slc_shim_recorder *recorder = own ? NULL : slc_shim_recorder_made();
    ncclResult_t result;
    if (recorder && recorder->transforms &&
        recorder->transforms->redop_destroyed(slc_shim_thread_get(recorder), library, op, comm, &result))
        return result;
    return library->RedOpDestroy(op, comm);
}
SLC_SHIM_TWIN(RedOpDestroy);

void ncclResetDebugInitInternal(void)
{
    const slc_shim_real *own = slc_shim_call_of_nccl(__builtin_return_address(0));
    (own ? own : slc_shim_real_default())->ResetDebugInitInternal();
}
