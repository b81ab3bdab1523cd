/* The device interface, which needs kernels, and the names that NCCL 2.30 has in addition, which programs built against
 * it must find: all of them say that they are not there. */
#include "tests/nccl/bed/hostnccl/comm.h"

#include <stdatomic.h>
#include <stdio.h>

static ncclResult_t not_supported(const char *name, _Atomic int *told)
{
    if (!atomic_exchange(told, 1)) fprintf(stderr, "hostnccl: %s is not supported\n", name);
    return hostnccl_error(ncclInvalidUsage, "%s is not supported over the host's memory", name);
}

#define NOT_SUPPORTED(name)                                                                                            \
    {                                                                                                                  \
        static _Atomic int told;                                                                                       \
        return not_supported(#name, &told);                                                                            \
    }

ncclResult_t ncclDevCommCreate(ncclComm_t comm, const ncclDevCommRequirements_t *requirements, ncclDevComm_t *out)
{
    (void)comm, (void)requirements, (void)out;
    NOT_SUPPORTED(ncclDevCommCreate)
}
HOSTNCCL_EXPORT(ncclDevCommCreate);

ncclResult_t ncclDevCommDestroy(ncclComm_t comm, const ncclDevComm_t *device_comm)
{
    (void)comm, (void)device_comm;
    NOT_SUPPORTED(ncclDevCommDestroy)
}
HOSTNCCL_EXPORT(ncclDevCommDestroy);

ncclResult_t ncclLsaBarrierCreateRequirement(ncclTeam_t team, int barriers, ncclLsaBarrierHandle_t *out,
                                             ncclDevResourceRequirements_t *requirements)
{
    (void)team, (void)barriers, (void)out, (void)requirements;
    NOT_SUPPORTED(ncclLsaBarrierCreateRequirement)
}
HOSTNCCL_EXPORT(ncclLsaBarrierCreateRequirement);

ncclResult_t ncclGinBarrierCreateRequirement(ncclComm_t comm, ncclTeam_t team, int barriers,
                                             ncclGinBarrierHandle_t *out, ncclDevResourceRequirements_t *requirements)
{
    (void)comm, (void)team, (void)barriers, (void)out, (void)requirements;
    NOT_SUPPORTED(ncclGinBarrierCreateRequirement)
}
HOSTNCCL_EXPORT(ncclGinBarrierCreateRequirement);

ncclResult_t ncclLLA2ACreateRequirement(int blocks, int slots, ncclLLA2AHandle_t *out,
                                        ncclDevResourceRequirements_t *requirements)
{
    (void)blocks, (void)slots, (void)out, (void)requirements;
    NOT_SUPPORTED(ncclLLA2ACreateRequirement)
}
HOSTNCCL_EXPORT(ncclLLA2ACreateRequirement);

/* Slots are 8 bytes. */
int ncclLLA2ACalcSlots(int max_elements, int max_element_bytes)
{
    return max_elements * ((max_element_bytes + 7) / 8);
}
HOSTNCCL_EXPORT(ncclLLA2ACalcSlots);

/* All ranks are on one host: the team that shares memory is all of them, and a rank's rail is the rank alone. */
ncclTeam_t ncclTeamWorld(ncclComm_t comm)
{
    return (ncclTeam_t){.nRanks = comm->size, .rank = comm->rank, .stride = 1};
}
HOSTNCCL_EXPORT(ncclTeamWorld);

ncclTeam_t ncclTeamLsa(ncclComm_t comm)
{
    return ncclTeamWorld(comm);
}
HOSTNCCL_EXPORT(ncclTeamLsa);

ncclTeam_t ncclTeamRail(ncclComm_t comm)
{
    return (ncclTeam_t){.nRanks = 1, .rank = 0, .stride = comm->size};
}
HOSTNCCL_EXPORT(ncclTeamRail);

static int world_rank(ncclComm_t comm, ncclTeam_t team, int rank)
{
    return comm->rank + (rank - team.rank) * team.stride;
}

int ncclTeamRankToWorld(ncclComm_t comm, ncclTeam_t team, int rank)
{
    return world_rank(comm, team, rank);
}
HOSTNCCL_EXPORT(ncclTeamRankToWorld);

int ncclTeamRankToLsa(ncclComm_t comm, ncclTeam_t team, int rank)
{
    return world_rank(comm, team, rank);
}
HOSTNCCL_EXPORT(ncclTeamRankToLsa);

/* The parameters of these functions do not matter: the caller cleans up what it passed. */
#define LATER(name)                                                                                                    \
    __attribute__((visibility("default"))) ncclResult_t name(void);                                                    \
    __attribute__((visibility("default"))) ncclResult_t p##name(void);                                                 \
    ncclResult_t name(void) NOT_SUPPORTED(name) HOSTNCCL_EXPORT(name);

LATER(ncclCommGetUniqueId)
LATER(ncclCommGrow)
LATER(ncclCommMemStats)
LATER(ncclCommQueryProperties)
LATER(ncclCommResume)
LATER(ncclCommSuspend)
LATER(ncclGetLsaDevicePointer)
LATER(ncclGetLsaMultimemDevicePointer)
LATER(ncclGetMultimemDevicePointer)
LATER(ncclGetPeerDevicePointer)
LATER(ncclGinInboxA2ACreateRequirement)
LATER(ncclGinOutboxCreateRequirement)
LATER(ncclParamBind)
LATER(ncclParamDumpAll)
LATER(ncclParamGet)
LATER(ncclParamGetAllParameterKeys)
LATER(ncclParamGetI16)
LATER(ncclParamGetI32)
LATER(ncclParamGetI64)
LATER(ncclParamGetI8)
LATER(ncclParamGetParameter)
LATER(ncclParamGetStr)
LATER(ncclParamGetU16)
LATER(ncclParamGetU32)
LATER(ncclParamGetU64)
LATER(ncclParamGetU8)
LATER(ncclPutSignal)
LATER(ncclSignal)
LATER(ncclWaitSignal)
LATER(ncclWinGetUserPtr)
