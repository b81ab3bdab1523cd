/* Every number of NCCL's interface by its name: values, sizes and offsets, as the declarations included before this
 * header have them. */
#pragma once

typedef struct {
    const char *name;
    long long value;
} abi_number;

#define VALUE(name) {#name, (long long)(name)},
#define SIZE(type) {"sizeof " #type, (long long)sizeof(type)},
#define AT(type, member) {#type "." #member, (long long)offsetof(type, member)},

/* The formatter comes to no end with this list. */
/* clang-format off */
#define ABI_NUMBERS \
    VALUE(NCCL_VERSION_CODE) VALUE(NCCL_UNIQUE_ID_BYTES) VALUE(NCCL_CONFIG_UNDEF_INT) VALUE(NCCL_SPLIT_NOCOLOR) \
    VALUE(NCCL_UNDEF_FLOAT) VALUE(NCCL_WIN_DEFAULT) VALUE(NCCL_WIN_COLL_SYMMETRIC) \
    VALUE(NCCL_WIN_REQUIRED_ALIGNMENT) VALUE(NCCL_CTA_POLICY_DEFAULT) VALUE(NCCL_CTA_POLICY_EFFICIENCY) \
    VALUE(NCCL_CTA_POLICY_ZERO) VALUE(NCCL_SHRINK_DEFAULT) VALUE(NCCL_SHRINK_ABORT) VALUE(NCCL_REVOKE_DEFAULT) \
    VALUE(ncclSuccess) VALUE(ncclUnhandledCudaError) VALUE(ncclSystemError) VALUE(ncclInternalError) \
    VALUE(ncclInvalidArgument) VALUE(ncclInvalidUsage) VALUE(ncclRemoteError) VALUE(ncclInProgress) \
    VALUE(ncclNumResults) VALUE(ncclSum) VALUE(ncclProd) VALUE(ncclMax) VALUE(ncclMin) VALUE(ncclAvg) \
    VALUE(ncclNumOps) VALUE(ncclMaxRedOp) VALUE(ncclInt8) VALUE(ncclChar) VALUE(ncclUint8) VALUE(ncclInt32) \
    VALUE(ncclInt) VALUE(ncclUint32) VALUE(ncclInt64) VALUE(ncclUint64) VALUE(ncclFloat16) VALUE(ncclHalf) \
    VALUE(ncclFloat32) VALUE(ncclFloat) VALUE(ncclFloat64) VALUE(ncclDouble) VALUE(ncclBfloat16) \
    VALUE(ncclFloat8e4m3) VALUE(ncclFloat8e5m2) VALUE(ncclNumTypes) VALUE(ncclScalarDevice) \
    VALUE(ncclScalarHostImmediate) \
    SIZE(ncclResult_t) \
    SIZE(ncclRedOp_t) \
    SIZE(ncclDataType_t) \
    SIZE(ncclScalarResidence_t) \
    SIZE(ncclUniqueId) \
    SIZE(ncclComm_t) \
    SIZE(ncclWindow_t) \
    SIZE(ncclConfig_t) AT(ncclConfig_t, size) AT(ncclConfig_t, magic) AT(ncclConfig_t, version) \
    AT(ncclConfig_t, blocking) AT(ncclConfig_t, cgaClusterSize) AT(ncclConfig_t, minCTAs) \
    AT(ncclConfig_t, maxCTAs) AT(ncclConfig_t, netName) AT(ncclConfig_t, splitShare) \
    AT(ncclConfig_t, trafficClass) AT(ncclConfig_t, commName) AT(ncclConfig_t, collnetEnable) \
    AT(ncclConfig_t, CTAPolicy) AT(ncclConfig_t, shrinkShare) AT(ncclConfig_t, nvlsCTAs) \
    AT(ncclConfig_t, nChannelsPerNetPeer) AT(ncclConfig_t, nvlinkCentricSched) \
    SIZE(ncclSimInfo_t) AT(ncclSimInfo_t, size) AT(ncclSimInfo_t, magic) AT(ncclSimInfo_t, version) \
    AT(ncclSimInfo_t, estimatedTime) \
    SIZE(ncclTeam_t) AT(ncclTeam_t, nRanks) AT(ncclTeam_t, rank) AT(ncclTeam_t, stride) \
    SIZE(ncclDevResourceRequirements_t) AT(ncclDevResourceRequirements_t, next) \
    AT(ncclDevResourceRequirements_t, bufferSize) AT(ncclDevResourceRequirements_t, bufferAlign) \
    AT(ncclDevResourceRequirements_t, outBufferHandle) AT(ncclDevResourceRequirements_t, ginSignalCount) \
    AT(ncclDevResourceRequirements_t, ginCounterCount) AT(ncclDevResourceRequirements_t, outGinSignalStart) \
    AT(ncclDevResourceRequirements_t, outGinCounterStart) \
    SIZE(ncclTeamRequirements_t) AT(ncclTeamRequirements_t, next) AT(ncclTeamRequirements_t, team) \
    AT(ncclTeamRequirements_t, multimem) AT(ncclTeamRequirements_t, outMultimemHandle) \
    SIZE(ncclDevCommRequirements_t) AT(ncclDevCommRequirements_t, resourceRequirementsList) \
    AT(ncclDevCommRequirements_t, teamRequirementsList) AT(ncclDevCommRequirements_t, lsaMultimem) \
    AT(ncclDevCommRequirements_t, barrierCount) AT(ncclDevCommRequirements_t, lsaBarrierCount) \
    AT(ncclDevCommRequirements_t, railGinBarrierCount) AT(ncclDevCommRequirements_t, lsaLLA2ABlockCount) \
    AT(ncclDevCommRequirements_t, lsaLLA2ASlotCount) AT(ncclDevCommRequirements_t, ginForceEnable) \
    AT(ncclDevCommRequirements_t, ginContextCount) AT(ncclDevCommRequirements_t, ginSignalCount) \
    AT(ncclDevCommRequirements_t, ginCounterCount) \
    SIZE(ncclLsaBarrierHandle_t) AT(ncclLsaBarrierHandle_t, bufHandle) AT(ncclLsaBarrierHandle_t, nBarriers) \
    SIZE(ncclGinBarrierHandle_t) AT(ncclGinBarrierHandle_t, signal0) AT(ncclGinBarrierHandle_t, bufHandle) \
    SIZE(ncclLLA2AHandle_t) AT(ncclLLA2AHandle_t, bufHandle) AT(ncclLLA2AHandle_t, nSlots)
/* clang-format on */

/* A configuration and a simulation's answer as their initializers make them. */
typedef struct {
    unsigned char config[sizeof(ncclConfig_t)], info[sizeof(ncclSimInfo_t)];
} abi_initial;

extern const abi_number abi_theirs[];
extern const size_t abi_theirs_count;
void abi_theirs_initial(abi_initial *out);
