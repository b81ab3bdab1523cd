/* NCCL 2.28.9's binary interface, declared by ourselves, so that the shim, the small NCCL of the tests and the programs
 * that use them can be built without any package of NVIDIA's. If the build finds nccl.h, nccl_abi_test proves each
 * number, each layout and each prototype equal to it.
 *
 * If nccl.h or cuda_runtime.h was included before it, this header takes NCCL's types from them and only declares the
 * functions again, which the compiler refuses if they differ. SLC_NCCL_FUNCTIONS(X, Y) is the list of all exports: X
 * for those that have a twin beginning with p, Y for the one that has none. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct CUstream_st *cudaStream_t;
typedef const char *slc_nccl_text; /* a result's type in one word, for lists */

#ifndef NCCL_H_
#define NCCL_MAJOR 2
#define NCCL_MINOR 28
#define NCCL_PATCH 9
#define NCCL_VERSION_CODE 22809

typedef struct ncclComm *ncclComm_t;
typedef struct ncclWindow_vidmem *ncclWindow_t;
#define NCCL_COMM_NULL NULL

#define NCCL_UNIQUE_ID_BYTES 128
typedef struct {
    char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

typedef enum {
    ncclSuccess,
    ncclUnhandledCudaError,
    ncclSystemError,
    ncclInternalError,
    ncclInvalidArgument,
    ncclInvalidUsage,
    ncclRemoteError,
    ncclInProgress,
    ncclNumResults
} ncclResult_t;

#define NCCL_CONFIG_UNDEF_INT INT_MIN
#define NCCL_CONFIG_UNDEF_PTR NULL
#define NCCL_SPLIT_NOCOLOR -1
#define NCCL_UNDEF_FLOAT -1.0f
#define NCCL_WIN_DEFAULT 0x00
#define NCCL_WIN_COLL_SYMMETRIC 0x01
#define NCCL_WIN_REQUIRED_ALIGNMENT 4096
#define NCCL_CTA_POLICY_DEFAULT 0x00
#define NCCL_CTA_POLICY_EFFICIENCY 0x01
#define NCCL_CTA_POLICY_ZERO 0x02
#define NCCL_SHRINK_DEFAULT 0x00
#define NCCL_SHRINK_ABORT 0x01
#define NCCL_REVOKE_DEFAULT 0x00

/* The configuration with which a communicator is made. `size` says which of the later members a caller of another
 * version knows. */
typedef struct ncclConfig_v22800 {
    size_t size;
    unsigned int magic, version;
    int blocking, cgaClusterSize, minCTAs, maxCTAs;
    const char *netName;
    int splitShare, trafficClass;
    const char *commName;
    int collnetEnable, CTAPolicy, shrinkShare, nvlsCTAs, nChannelsPerNetPeer, nvlinkCentricSched;
} ncclConfig_t;

#define NCCL_CONFIG_MAGIC 0xcafebeef
#define NCCL_CONFIG_INITIALIZER                                                                                        \
    {                                                                                                                  \
        .size = sizeof(ncclConfig_t), .magic = NCCL_CONFIG_MAGIC, .version = NCCL_VERSION_CODE,                        \
        .blocking = NCCL_CONFIG_UNDEF_INT, .cgaClusterSize = NCCL_CONFIG_UNDEF_INT, .minCTAs = NCCL_CONFIG_UNDEF_INT,  \
        .maxCTAs = NCCL_CONFIG_UNDEF_INT, .splitShare = NCCL_CONFIG_UNDEF_INT, .trafficClass = NCCL_CONFIG_UNDEF_INT,  \
        .collnetEnable = NCCL_CONFIG_UNDEF_INT, .CTAPolicy = NCCL_CONFIG_UNDEF_INT,                                    \
        .shrinkShare = NCCL_CONFIG_UNDEF_INT, .nvlsCTAs = NCCL_CONFIG_UNDEF_INT,                                       \
        .nChannelsPerNetPeer = NCCL_CONFIG_UNDEF_INT, .nvlinkCentricSched = NCCL_CONFIG_UNDEF_INT                      \
    }

typedef struct ncclSimInfo_v22200 {
    size_t size;
    unsigned int magic, version;
    float estimatedTime;
} ncclSimInfo_t;

#define NCCL_SIM_INFO_MAGIC 0x74685283
#define NCCL_SIM_INFO_INITIALIZER                                                                                      \
    {                                                                                                                  \
        .size = sizeof(ncclSimInfo_t), .magic = NCCL_SIM_INFO_MAGIC, .version = NCCL_VERSION_CODE,                     \
        .estimatedTime = NCCL_UNDEF_FLOAT                                                                              \
    }

typedef enum {
    ncclSum,
    ncclProd,
    ncclMax,
    ncclMin,
    ncclAvg,
    ncclNumOps, /* the first number of an operator that a program makes */
    ncclMaxRedOp = INT_MAX
} ncclRedOp_t;

typedef enum {
    ncclInt8 = 0,
    ncclChar = 0,
    ncclUint8 = 1,
    ncclInt32 = 2,
    ncclInt = 2,
    ncclUint32 = 3,
    ncclInt64 = 4,
    ncclUint64 = 5,
    ncclFloat16 = 6,
    ncclHalf = 6,
    ncclFloat32 = 7,
    ncclFloat = 7,
    ncclFloat64 = 8,
    ncclDouble = 8,
    ncclBfloat16 = 9,
    ncclFloat8e4m3 = 10,
    ncclFloat8e5m2 = 11,
    ncclNumTypes = 12
} ncclDataType_t;

typedef enum { ncclScalarDevice, ncclScalarHostImmediate } ncclScalarResidence_t;
#endif

/* Host code calls these parts of the device interface; a program's device communicator is passed through untouched. */
#ifndef _NCCL_DEVICE_CORE_H_
typedef struct ncclDevComm ncclDevComm_t;
typedef uint32_t ncclDevResourceHandle_t;
typedef uint32_t ncclGinSignal_t;
typedef uint32_t ncclGinCounter_t;
typedef struct ncclMultimemHandle ncclMultimemHandle_t;

typedef struct ncclTeam {
    int nRanks, rank, stride;
} ncclTeam_t;

typedef struct ncclDevResourceRequirements {
    struct ncclDevResourceRequirements *next;
    size_t bufferSize, bufferAlign;
    ncclDevResourceHandle_t *outBufferHandle;
    int ginSignalCount, ginCounterCount;
    ncclGinSignal_t *outGinSignalStart;
    ncclGinCounter_t *outGinCounterStart;
} ncclDevResourceRequirements_t;

typedef struct ncclTeamRequirements {
    struct ncclTeamRequirements *next;
    ncclTeam_t team;
    bool multimem;
    ncclMultimemHandle_t *outMultimemHandle;
} ncclTeamRequirements_t;

typedef struct ncclDevCommRequirements {
    ncclDevResourceRequirements_t *resourceRequirementsList;
    ncclTeamRequirements_t *teamRequirementsList;
    bool lsaMultimem;
    int barrierCount, lsaBarrierCount, railGinBarrierCount;
    int lsaLLA2ABlockCount, lsaLLA2ASlotCount;
    bool ginForceEnable;
    int ginContextCount, ginSignalCount, ginCounterCount;
} ncclDevCommRequirements_t;

typedef struct ncclLsaBarrierHandle {
    ncclDevResourceHandle_t bufHandle;
    int nBarriers;
} ncclLsaBarrierHandle_t;

typedef struct ncclGinBarrierHandle {
    ncclGinSignal_t signal0;
    ncclDevResourceHandle_t bufHandle;
} ncclGinBarrierHandle_t;

typedef struct ncclLLA2AHandle {
    ncclDevResourceHandle_t bufHandle;
    uint32_t nSlots;
} ncclLLA2AHandle_t;
#endif

/* Lists of exports, each X(result, name without its prefix, (parameters), (arguments)). These are about no communicator
 * and move nothing. */
#define SLC_NCCL_PLAIN(X)                                                                                              \
    X(ncclResult_t, GetVersion, (int *version), (version))                                                             \
    X(slc_nccl_text, GetErrorString, (ncclResult_t result), (result))                                                  \
    X(void, ResetDebugInit, (void), ())                                                                                \
    X(ncclResult_t, GetUniqueId, (ncclUniqueId * id), (id))                                                            \
    X(ncclResult_t, MemAlloc, (void **memory, size_t bytes), (memory, bytes))                                          \
    X(ncclResult_t, MemFree, (void *memory), (memory))                                                                 \
    X(ncclResult_t, LsaBarrierCreateRequirement,                                                                       \
      (ncclTeam_t team, int barriers, ncclLsaBarrierHandle_t *out, ncclDevResourceRequirements_t *requirements),       \
      (team, barriers, out, requirements))                                                                             \
    X(int, LLA2ACalcSlots, (int max_elements, int max_element_bytes), (max_elements, max_element_bytes))               \
    X(ncclResult_t, LLA2ACreateRequirement,                                                                            \
      (int blocks, int slots, ncclLLA2AHandle_t *out, ncclDevResourceRequirements_t *requirements),                    \
      (blocks, slots, out, requirements))

/* The functions that ask a communicator, `comm`, or make something known to it. */
#define SLC_NCCL_OF_COMM(X)                                                                                            \
    X(slc_nccl_text, GetLastError, (ncclComm_t comm), (comm))                                                          \
    X(ncclResult_t, CommCount, (const ncclComm_t comm, int *count), (comm, count))                                     \
    X(ncclResult_t, CommCuDevice, (const ncclComm_t comm, int *device), (comm, device))                                \
    X(ncclResult_t, CommUserRank, (const ncclComm_t comm, int *rank), (comm, rank))                                    \
    X(ncclResult_t, CommRegister, (const ncclComm_t comm, void *buffer, size_t bytes, void **handle),                  \
      (comm, buffer, bytes, handle))                                                                                   \
    X(ncclResult_t, CommDeregister, (const ncclComm_t comm, void *handle), (comm, handle))                             \
    X(ncclResult_t, CommWindowDeregister, (ncclComm_t comm, ncclWindow_t window), (comm, window))                      \
    X(ncclResult_t, RedOpCreatePreMulSum,                                                                              \
      (ncclRedOp_t * op, void *scalar, ncclDataType_t type, ncclScalarResidence_t residence, ncclComm_t comm),         \
      (op, scalar, type, residence, comm))                                                                             \
    X(ncclResult_t, DevCommCreate,                                                                                     \
      (ncclComm_t comm, const ncclDevCommRequirements_t *requirements, ncclDevComm_t *out), (comm, requirements, out)) \
    X(ncclResult_t, DevCommDestroy, (ncclComm_t comm, const ncclDevComm_t *device_comm), (comm, device_comm))          \
    X(ncclTeam_t, TeamWorld, (ncclComm_t comm), (comm))                                                                \
    X(ncclTeam_t, TeamLsa, (ncclComm_t comm), (comm))                                                                  \
    X(ncclTeam_t, TeamRail, (ncclComm_t comm), (comm))                                                                 \
    X(int, TeamRankToWorld, (ncclComm_t comm, ncclTeam_t team, int rank), (comm, team, rank))                          \
    X(int, TeamRankToLsa, (ncclComm_t comm, ncclTeam_t team, int rank), (comm, team, rank))                            \
    X(ncclResult_t, GinBarrierCreateRequirement,                                                                       \
      (ncclComm_t comm, ncclTeam_t team, int barriers, ncclGinBarrierHandle_t *out,                                    \
       ncclDevResourceRequirements_t *requirements),                                                                   \
      (comm, team, barriers, out, requirements))

/* The functions that make communicators and end them. */
#define SLC_NCCL_LIFETIME(X)                                                                                           \
    X(ncclResult_t, CommInitRank, (ncclComm_t * comm, int nranks, ncclUniqueId id, int rank),                          \
      (comm, nranks, id, rank))                                                                                        \
    X(ncclResult_t, CommInitRankConfig,                                                                                \
      (ncclComm_t * comm, int nranks, ncclUniqueId id, int rank, ncclConfig_t *config),                                \
      (comm, nranks, id, rank, config))                                                                                \
    X(ncclResult_t, CommInitRankScalable,                                                                              \
      (ncclComm_t * comm, int nranks, int rank, int id_count, ncclUniqueId *ids, ncclConfig_t *config),                \
      (comm, nranks, rank, id_count, ids, config))                                                                     \
    X(ncclResult_t, CommInitAll, (ncclComm_t * comms, int count, const int *devices), (comms, count, devices))         \
    X(ncclResult_t, CommSplit, (ncclComm_t comm, int color, int key, ncclComm_t *out, ncclConfig_t *config),           \
      (comm, color, key, out, config))                                                                                 \
    X(ncclResult_t, CommShrink,                                                                                        \
      (ncclComm_t comm, int *excluded, int excluded_count, ncclComm_t *out, ncclConfig_t *config, int flags),          \
      (comm, excluded, excluded_count, out, config, flags))                                                            \
    X(ncclResult_t, CommFinalize, (ncclComm_t comm), (comm))                                                           \
    X(ncclResult_t, CommDestroy, (ncclComm_t comm), (comm))                                                            \
    X(ncclResult_t, CommAbort, (ncclComm_t comm), (comm))                                                              \
    X(ncclResult_t, CommRevoke, (ncclComm_t comm, int flags), (comm, flags))                                           \
    X(ncclResult_t, CommGetAsyncError, (ncclComm_t comm, ncclResult_t * error), (comm, error))

#define SLC_NCCL_BUFFERS const void *send, void *receive, size_t count, ncclDataType_t type
#define SLC_NCCL_WHERE ncclComm_t comm, cudaStream_t stream
/* The functions that move data. */
#define SLC_NCCL_OPERATIONS(X)                                                                                         \
    X(ncclResult_t, AllReduce, (SLC_NCCL_BUFFERS, ncclRedOp_t op, SLC_NCCL_WHERE),                                     \
      (send, receive, count, type, op, comm, stream))                                                                  \
    X(ncclResult_t, ReduceScatter, (SLC_NCCL_BUFFERS, ncclRedOp_t op, SLC_NCCL_WHERE),                                 \
      (send, receive, count, type, op, comm, stream))                                                                  \
    X(ncclResult_t, AllGather, (SLC_NCCL_BUFFERS, SLC_NCCL_WHERE), (send, receive, count, type, comm, stream))         \
    X(ncclResult_t, Reduce, (SLC_NCCL_BUFFERS, ncclRedOp_t op, int root, SLC_NCCL_WHERE),                              \
      (send, receive, count, type, op, root, comm, stream))                                                            \
    X(ncclResult_t, Bcast, (void *buffer, size_t count, ncclDataType_t type, int root, SLC_NCCL_WHERE),                \
      (buffer, count, type, root, comm, stream))                                                                       \
    X(ncclResult_t, Broadcast, (SLC_NCCL_BUFFERS, int root, SLC_NCCL_WHERE),                                           \
      (send, receive, count, type, root, comm, stream))                                                                \
    X(ncclResult_t, AlltoAll, (SLC_NCCL_BUFFERS, SLC_NCCL_WHERE), (send, receive, count, type, comm, stream))          \
    X(ncclResult_t, Gather, (SLC_NCCL_BUFFERS, int root, SLC_NCCL_WHERE),                                              \
      (send, receive, count, type, root, comm, stream))                                                                \
    X(ncclResult_t, Scatter, (SLC_NCCL_BUFFERS, int root, SLC_NCCL_WHERE),                                             \
      (send, receive, count, type, root, comm, stream))                                                                \
    X(ncclResult_t, Send, (const void *send, size_t count, ncclDataType_t type, int peer, SLC_NCCL_WHERE),             \
      (send, count, type, peer, comm, stream))                                                                         \
    X(ncclResult_t, Recv, (void *receive, size_t count, ncclDataType_t type, int peer, SLC_NCCL_WHERE),                \
      (receive, count, type, peer, comm, stream))

/* The others, which no list treats alike. */
#define SLC_NCCL_OTHERS(X)                                                                                             \
    X(ncclResult_t, CommWindowRegister,                                                                                \
      (ncclComm_t comm, void *buffer, size_t bytes, ncclWindow_t *window, int flags),                                  \
      (comm, buffer, bytes, window, flags))                                                                            \
    X(ncclResult_t, RedOpDestroy, (ncclRedOp_t op, ncclComm_t comm), (op, comm))                                       \
    X(ncclResult_t, GroupStart, (void), ())                                                                            \
    X(ncclResult_t, GroupEnd, (void), ())                                                                              \
    X(ncclResult_t, GroupSimulateEnd, (ncclSimInfo_t * info), (info))

#define SLC_NCCL_FUNCTIONS(X, Y)                                                                                       \
    SLC_NCCL_PLAIN(X)                                                                                                  \
    SLC_NCCL_OF_COMM(X)                                                                                                \
    SLC_NCCL_LIFETIME(X) SLC_NCCL_OPERATIONS(X) SLC_NCCL_OTHERS(X) Y(void, ResetDebugInitInternal, (void), ())

#define SLC_NCCL_DECLARE(result, name, parameters, arguments)                                                          \
    result nccl##name parameters;                                                                                      \
    result pnccl##name parameters;
#define SLC_NCCL_DECLARE_ONE(result, name, parameters, arguments) result nccl##name parameters;

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)
SLC_NCCL_FUNCTIONS(SLC_NCCL_DECLARE, SLC_NCCL_DECLARE_ONE)
#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#undef SLC_NCCL_DECLARE
#undef SLC_NCCL_DECLARE_ONE
