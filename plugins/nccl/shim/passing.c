/* NCCL's functions that are passed on and not recorded: questions, memory, operators and the device interface.
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

/* nccl##name and its twin, passed on to `library`. */
#define PASS(result, name, parameters, arguments, library)                                                             \
    result nccl##name parameters                                                                                       \
    {                                                                                                                  \
        const slc_shim_real *own = slc_shim_call_of_nccl(__builtin_return_address(0));                                 \
        return (own ? own : library)->name arguments;                                                                  \
    }                                                                                                                  \
    result pnccl##name parameters __attribute__((alias("nccl" #name)));
PASS(ncclResult_t, GetVersion, (int *version), (version), slc_shim_real_for(__builtin_return_address(0)))
PASS(slc_nccl_text, GetErrorString, (ncclResult_t result), (result), slc_shim_real_for(__builtin_return_address(0)))
PASS(slc_nccl_text, GetLastError, (ncclComm_t comm), (comm), library_of(comm))
PASS(void, ResetDebugInit, (void), (), slc_shim_real_for(__builtin_return_address(0)))
PASS(ncclResult_t, GetUniqueId, (ncclUniqueId * id), (id), slc_shim_real_for(__builtin_return_address(0)))
PASS(ncclResult_t, CommCount, (const ncclComm_t comm, int *count), (comm, count), library_of(comm))
PASS(ncclResult_t, CommCuDevice, (const ncclComm_t comm, int *device), (comm, device), library_of(comm))
PASS(ncclResult_t, CommUserRank, (const ncclComm_t comm, int *rank), (comm, rank), library_of(comm))
PASS(ncclResult_t, RedOpCreatePreMulSum,
     (ncclRedOp_t * op, void *scalar, ncclDataType_t type, ncclScalarResidence_t residence, ncclComm_t comm),
     (op, scalar, type, residence, comm), library_of(comm))
PASS(ncclResult_t, DevCommCreate, (ncclComm_t comm, const ncclDevCommRequirements_t *requirements, ncclDevComm_t *out),
     (comm, requirements, out), library_of(comm))
PASS(ncclResult_t, DevCommDestroy, (ncclComm_t comm, const ncclDevComm_t *device_comm), (comm, device_comm),
     library_of(comm))
PASS(ncclTeam_t, TeamWorld, (ncclComm_t comm), (comm), library_of(comm))
PASS(ncclTeam_t, TeamLsa, (ncclComm_t comm), (comm), library_of(comm))
PASS(ncclTeam_t, TeamRail, (ncclComm_t comm), (comm), library_of(comm))
PASS(int, TeamRankToWorld, (ncclComm_t comm, ncclTeam_t team, int rank), (comm, team, rank), library_of(comm))
PASS(int, TeamRankToLsa, (ncclComm_t comm, ncclTeam_t team, int rank), (comm, team, rank), library_of(comm))
PASS(ncclResult_t, LsaBarrierCreateRequirement,
     (ncclTeam_t team, int barriers, ncclLsaBarrierHandle_t *out, ncclDevResourceRequirements_t *requirements),
     (team, barriers, out, requirements), slc_shim_real_for(__builtin_return_address(0)))
PASS(ncclResult_t, GinBarrierCreateRequirement,
     (ncclComm_t comm, ncclTeam_t team, int barriers, ncclGinBarrierHandle_t *out,
      ncclDevResourceRequirements_t *requirements),
     (comm, team, barriers, out, requirements), library_of(comm))
PASS(int, LLA2ACalcSlots, (int max_elements, int max_element_bytes), (max_elements, max_element_bytes),
     slc_shim_real_for(__builtin_return_address(0)))
PASS(ncclResult_t, LLA2ACreateRequirement,
     (int blocks, int slots, ncclLLA2AHandle_t *out, ncclDevResourceRequirements_t *requirements),
     (blocks, slots, out, requirements), slc_shim_real_for(__builtin_return_address(0)))

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
ncclResult_t pncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm) __attribute__((alias("ncclRedOpDestroy")));

void ncclResetDebugInitInternal(void)
{
    const slc_shim_real *own = slc_shim_call_of_nccl(__builtin_return_address(0));
    (own ? own : slc_shim_real_default())->ResetDebugInitInternal();
}
