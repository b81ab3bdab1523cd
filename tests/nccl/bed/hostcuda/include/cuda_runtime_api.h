/* The part of CUDA 13's runtime that the host's CUDA implements (tests/nccl/bed/hostcuda), with the layouts and numbers
 * of the real one, so that programs compiled against either run on both. If the toolkit is installed,
 * declarations_test proves that these declarations are its own. */
#pragma once

#include <stddef.h>

/* Name, number, text. */
#define HOSTCUDA_ERRORS(X)                                                                                             \
    X(cudaSuccess, 0, "no error")                                                                                      \
    X(cudaErrorInvalidValue, 1, "invalid argument")                                                                    \
    X(cudaErrorMemoryAllocation, 2, "out of memory")                                                                   \
    X(cudaErrorInitializationError, 3, "initialization error")                                                         \
    X(cudaErrorCudartUnloading, 4, "driver shutting down")                                                             \
    X(cudaErrorInvalidConfiguration, 9, "invalid configuration argument")                                              \
    X(cudaErrorInvalidSymbol, 13, "invalid device symbol")                                                             \
    X(cudaErrorInvalidMemcpyDirection, 21, "invalid copy direction for memcpy")                                        \
    X(cudaErrorInsufficientDriver, 35, "CUDA driver version is insufficient for CUDA runtime version")                 \
    X(cudaErrorInvalidDeviceFunction, 98, "invalid device function")                                                   \
    X(cudaErrorNoDevice, 100, "no CUDA-capable device is detected")                                                    \
    X(cudaErrorInvalidDevice, 101, "invalid device ordinal")                                                           \
    X(cudaErrorInvalidKernelImage, 200, "device kernel image is invalid")                                              \
    X(cudaErrorDeviceUninitialized, 201, "invalid device context")                                                     \
    X(cudaErrorPeerAccessUnsupported, 217, "peer access is not supported between these two devices")                   \
    X(cudaErrorOperatingSystem, 304, "OS call failed or operation not supported on this OS")                           \
    X(cudaErrorInvalidResourceHandle, 400, "invalid resource handle")                                                  \
    X(cudaErrorIllegalState, 401, "the operation cannot be performed in the present state")                            \
    X(cudaErrorSymbolNotFound, 500, "named symbol not found")                                                          \
    X(cudaErrorNotReady, 600, "device not ready")                                                                      \
    X(cudaErrorIllegalAddress, 700, "an illegal memory access was encountered")                                        \
    X(cudaErrorPeerAccessAlreadyEnabled, 704, "peer access is already enabled")                                        \
    X(cudaErrorPeerAccessNotEnabled, 705, "peer access has not been enabled")                                          \
    X(cudaErrorHostMemoryAlreadyRegistered, 712, "part or all of the requested memory range is already mapped")        \
    X(cudaErrorHostMemoryNotRegistered, 713, "pointer does not correspond to a registered memory region")              \
    X(cudaErrorLaunchFailure, 719, "unspecified launch failure")                                                       \
    X(cudaErrorNotPermitted, 800, "operation not permitted")                                                           \
    X(cudaErrorNotSupported, 801, "operation not supported")                                                           \
    X(cudaErrorStreamCaptureUnsupported, 900, "operation not permitted when stream is capturing")                      \
    X(cudaErrorStreamCaptureInvalidated, 901, "operation failed due to a previous error during capture")               \
    X(cudaErrorStreamCaptureMerge, 902, "operation would result in a merge of separate capture sequences")             \
    X(cudaErrorStreamCaptureUnmatched, 903, "capture was not ended in the same stream as it began")                    \
    X(cudaErrorStreamCaptureUnjoined, 904, "capturing stream has unjoined work")                                       \
    X(cudaErrorStreamCaptureIsolation, 905, "dependency created on uncaptured work in another stream")                 \
    X(cudaErrorStreamCaptureImplicit, 906,                                                                             \
      "operation would make the legacy stream depend on a capturing blocking stream")                                  \
    X(cudaErrorCapturedEvent, 907, "operation not permitted on an event last recorded in a capturing stream")          \
    X(cudaErrorStreamCaptureWrongThread, 908,                                                                          \
      "attempt to terminate a thread-local capture sequence from another thread")                                      \
    X(cudaErrorUnknown, 999, "unknown error")

#define HOSTCUDA_CONSTANTS(X)                                                                                          \
    X(cudaStreamDefault, 0)                                                                                            \
    X(cudaStreamNonBlocking, 1)                                                                                        \
    X(cudaEventDefault, 0)                                                                                             \
    X(cudaEventBlockingSync, 1)                                                                                        \
    X(cudaEventDisableTiming, 2)                                                                                       \
    X(cudaEventInterprocess, 4)                                                                                        \
    X(cudaEventRecordDefault, 0)                                                                                       \
    X(cudaEventRecordExternal, 1)                                                                                      \
    X(cudaEventWaitDefault, 0)                                                                                         \
    X(cudaEventWaitExternal, 1)                                                                                        \
    X(cudaHostAllocDefault, 0)                                                                                         \
    X(cudaHostAllocPortable, 1)                                                                                        \
    X(cudaHostAllocMapped, 2)                                                                                          \
    X(cudaHostRegisterDefault, 0)                                                                                      \
    X(cudaHostRegisterPortable, 1)                                                                                     \
    X(cudaHostRegisterMapped, 2)                                                                                       \
    X(cudaMemAttachGlobal, 1)                                                                                          \
    X(cudaGraphUserObjectMove, 1)

#define HOSTCUDA_COPIES(X)                                                                                             \
    X(cudaMemcpyHostToHost, 0)                                                                                         \
    X(cudaMemcpyHostToDevice, 1)                                                                                       \
    X(cudaMemcpyDeviceToHost, 2)                                                                                       \
    X(cudaMemcpyDeviceToDevice, 3)                                                                                     \
    X(cudaMemcpyDefault, 4)

#define HOSTCUDA_MEMORY_TYPES(X)                                                                                       \
    X(cudaMemoryTypeUnregistered, 0)                                                                                   \
    X(cudaMemoryTypeHost, 1)                                                                                           \
    X(cudaMemoryTypeDevice, 2)                                                                                         \
    X(cudaMemoryTypeManaged, 3)

#define HOSTCUDA_CAPTURE_STATUSES(X)                                                                                   \
    X(cudaStreamCaptureStatusNone, 0)                                                                                  \
    X(cudaStreamCaptureStatusActive, 1)                                                                                \
    X(cudaStreamCaptureStatusInvalidated, 2)

#define HOSTCUDA_CAPTURE_MODES(X)                                                                                      \
    X(cudaStreamCaptureModeGlobal, 0)                                                                                  \
    X(cudaStreamCaptureModeThreadLocal, 1)                                                                             \
    X(cudaStreamCaptureModeRelaxed, 2)

#define HOSTCUDA_ENTRY_POINTS(X)                                                                                       \
    X(cudaDriverEntryPointSuccess, 0)                                                                                  \
    X(cudaDriverEntryPointSymbolNotFound, 1)                                                                           \
    X(cudaDriverEntryPointVersionNotSufficent, 2)

#define HOSTCUDA_FUNCTION_ATTRIBUTES(X)                                                                                \
    X(cudaFuncAttributeMaxDynamicSharedMemorySize, 8)                                                                  \
    X(cudaFuncAttributePreferredSharedMemoryCarveout, 9)

/* The device's attributes that are not zero here, or are often asked for. */
#define HOSTCUDA_DEVICE_ATTRIBUTES(X)                                                                                  \
    X(cudaDevAttrMaxThreadsPerBlock, 1)                                                                                \
    X(cudaDevAttrMaxBlockDimX, 2)                                                                                      \
    X(cudaDevAttrMaxBlockDimY, 3)                                                                                      \
    X(cudaDevAttrMaxBlockDimZ, 4)                                                                                      \
    X(cudaDevAttrMaxGridDimX, 5)                                                                                       \
    X(cudaDevAttrMaxGridDimY, 6)                                                                                       \
    X(cudaDevAttrMaxGridDimZ, 7)                                                                                       \
    X(cudaDevAttrMaxSharedMemoryPerBlock, 8)                                                                           \
    X(cudaDevAttrTotalConstantMemory, 9)                                                                               \
    X(cudaDevAttrWarpSize, 10)                                                                                         \
    X(cudaDevAttrMaxPitch, 11)                                                                                         \
    X(cudaDevAttrMaxRegistersPerBlock, 12)                                                                             \
    X(cudaDevAttrClockRate, 13)                                                                                        \
    X(cudaDevAttrTextureAlignment, 14)                                                                                 \
    X(cudaDevAttrMultiProcessorCount, 16)                                                                              \
    X(cudaDevAttrCanMapHostMemory, 19)                                                                                 \
    X(cudaDevAttrConcurrentKernels, 31)                                                                                \
    X(cudaDevAttrPciBusId, 33)                                                                                         \
    X(cudaDevAttrPciDeviceId, 34)                                                                                      \
    X(cudaDevAttrMemoryClockRate, 36)                                                                                  \
    X(cudaDevAttrGlobalMemoryBusWidth, 37)                                                                             \
    X(cudaDevAttrL2CacheSize, 38)                                                                                      \
    X(cudaDevAttrMaxThreadsPerMultiProcessor, 39)                                                                      \
    X(cudaDevAttrAsyncEngineCount, 40)                                                                                 \
    X(cudaDevAttrUnifiedAddressing, 41)                                                                                \
    X(cudaDevAttrPciDomainId, 50)                                                                                      \
    X(cudaDevAttrTexturePitchAlignment, 51)                                                                            \
    X(cudaDevAttrComputeCapabilityMajor, 75)                                                                           \
    X(cudaDevAttrComputeCapabilityMinor, 76)                                                                           \
    X(cudaDevAttrStreamPrioritiesSupported, 78)                                                                        \
    X(cudaDevAttrMaxSharedMemoryPerMultiprocessor, 81)                                                                 \
    X(cudaDevAttrMaxRegistersPerMultiprocessor, 82)                                                                    \
    X(cudaDevAttrManagedMemory, 83)                                                                                    \
    X(cudaDevAttrCanUseHostPointerForRegisteredMem, 91)                                                                \
    X(cudaDevAttrMaxSharedMemoryPerBlockOptin, 97)                                                                     \
    X(cudaDevAttrHostRegisterSupported, 99)                                                                            \
    X(cudaDevAttrMaxBlocksPerMultiprocessor, 106)                                                                      \
    X(cudaDevAttrReservedSharedMemoryPerBlock, 111)

/* The members of cudaDeviceProp: type, name, and how many of them. */
#define HOSTCUDA_PROPERTIES(X)                                                                                         \
    X(char, name, [256])                                                                                               \
    X(cudaUUID_t, uuid, )                                                                                              \
    X(char, luid, [8])                                                                                                 \
    X(unsigned, luidDeviceNodeMask, )                                                                                  \
    X(size_t, totalGlobalMem, )                                                                                        \
    X(size_t, sharedMemPerBlock, )                                                                                     \
    X(int, regsPerBlock, )                                                                                             \
    X(int, warpSize, )                                                                                                 \
    X(size_t, memPitch, )                                                                                              \
    X(int, maxThreadsPerBlock, )                                                                                       \
    X(int, maxThreadsDim, [3])                                                                                         \
    X(int, maxGridSize, [3])                                                                                           \
    X(size_t, totalConstMem, )                                                                                         \
    X(int, major, )                                                                                                    \
    X(int, minor, )                                                                                                    \
    X(size_t, textureAlignment, )                                                                                      \
    X(size_t, texturePitchAlignment, )                                                                                 \
    X(int, multiProcessorCount, )                                                                                      \
    X(int, integrated, )                                                                                               \
    X(int, canMapHostMemory, )                                                                                         \
    X(int, maxTexture1D, )                                                                                             \
    X(int, maxTexture1DMipmap, )                                                                                       \
    X(int, maxTexture2D, [2])                                                                                          \
    X(int, maxTexture2DMipmap, [2])                                                                                    \
    X(int, maxTexture2DLinear, [3])                                                                                    \
    X(int, maxTexture2DGather, [2])                                                                                    \
    X(int, maxTexture3D, [3])                                                                                          \
    X(int, maxTexture3DAlt, [3])                                                                                       \
    X(int, maxTextureCubemap, )                                                                                        \
    X(int, maxTexture1DLayered, [2])                                                                                   \
    X(int, maxTexture2DLayered, [3])                                                                                   \
    X(int, maxTextureCubemapLayered, [2])                                                                              \
    X(int, maxSurface1D, )                                                                                             \
    X(int, maxSurface2D, [2])                                                                                          \
    X(int, maxSurface3D, [3])                                                                                          \
    X(int, maxSurface1DLayered, [2])                                                                                   \
    X(int, maxSurface2DLayered, [3])                                                                                   \
    X(int, maxSurfaceCubemap, )                                                                                        \
    X(int, maxSurfaceCubemapLayered, [2])                                                                              \
    X(size_t, surfaceAlignment, )                                                                                      \
    X(int, concurrentKernels, )                                                                                        \
    X(int, ECCEnabled, )                                                                                               \
    X(int, pciBusID, )                                                                                                 \
    X(int, pciDeviceID, )                                                                                              \
    X(int, pciDomainID, )                                                                                              \
    X(int, tccDriver, )                                                                                                \
    X(int, asyncEngineCount, )                                                                                         \
    X(int, unifiedAddressing, )                                                                                        \
    X(int, memoryBusWidth, )                                                                                           \
    X(int, l2CacheSize, )                                                                                              \
    X(int, persistingL2CacheMaxSize, )                                                                                 \
    X(int, maxThreadsPerMultiProcessor, )                                                                              \
    X(int, streamPrioritiesSupported, )                                                                                \
    X(int, globalL1CacheSupported, )                                                                                   \
    X(int, localL1CacheSupported, )                                                                                    \
    X(size_t, sharedMemPerMultiprocessor, )                                                                            \
    X(int, regsPerMultiprocessor, )                                                                                    \
    X(int, managedMemory, )                                                                                            \
    X(int, isMultiGpuBoard, )                                                                                          \
    X(int, multiGpuBoardGroupID, )                                                                                     \
    X(int, hostNativeAtomicSupported, )                                                                                \
    X(int, pageableMemoryAccess, )                                                                                     \
    X(int, concurrentManagedAccess, )                                                                                  \
    X(int, computePreemptionSupported, )                                                                               \
    X(int, canUseHostPointerForRegisteredMem, )                                                                        \
    X(int, cooperativeLaunch, )                                                                                        \
    X(size_t, sharedMemPerBlockOptin, )                                                                                \
    X(int, pageableMemoryAccessUsesHostPageTables, )                                                                   \
    X(int, directManagedMemAccessFromHost, )                                                                           \
    X(int, maxBlocksPerMultiProcessor, )                                                                               \
    X(int, accessPolicyMaxWindowSize, )                                                                                \
    X(size_t, reservedSharedMemPerBlock, )                                                                             \
    X(int, hostRegisterSupported, )                                                                                    \
    X(int, sparseCudaArraySupported, )                                                                                 \
    X(int, hostRegisterReadOnlySupported, )                                                                            \
    X(int, timelineSemaphoreInteropSupported, )                                                                        \
    X(int, memoryPoolsSupported, )                                                                                     \
    X(int, gpuDirectRDMASupported, )                                                                                   \
    X(unsigned, gpuDirectRDMAFlushWritesOptions, )                                                                     \
    X(int, gpuDirectRDMAWritesOrdering, )                                                                              \
    X(unsigned, memoryPoolSupportedHandleTypes, )                                                                      \
    X(int, deferredMappingCudaArraySupported, )                                                                        \
    X(int, ipcEventSupported, )                                                                                        \
    X(int, clusterLaunch, )                                                                                            \
    X(int, unifiedFunctionPointers, )                                                                                  \
    X(int, deviceNumaConfig, )                                                                                         \
    X(int, deviceNumaId, )                                                                                             \
    X(int, mpsEnabled, )                                                                                               \
    X(int, hostNumaId, )                                                                                               \
    X(unsigned, gpuPciDeviceID, )                                                                                      \
    X(unsigned, gpuPciSubsystemID, )                                                                                   \
    X(int, hostNumaMultinodeIpcSupported, )                                                                            \
    X(int, reserved, [56])

#define HOSTCUDA_FUNCTION_PROPERTIES(X)                                                                                \
    X(size_t, sharedSizeBytes, )                                                                                       \
    X(size_t, constSizeBytes, )                                                                                        \
    X(size_t, localSizeBytes, )                                                                                        \
    X(int, maxThreadsPerBlock, )                                                                                       \
    X(int, numRegs, )                                                                                                  \
    X(int, ptxVersion, )                                                                                               \
    X(int, binaryVersion, )                                                                                            \
    X(int, cacheModeCA, )                                                                                              \
    X(int, maxDynamicSharedSizeBytes, )                                                                                \
    X(int, preferredShmemCarveout, )                                                                                   \
    X(int, clusterDimMustBeSet, )                                                                                      \
    X(int, requiredClusterWidth, )                                                                                     \
    X(int, requiredClusterHeight, )                                                                                    \
    X(int, requiredClusterDepth, )                                                                                     \
    X(int, clusterSchedulingPolicyPreference, )                                                                        \
    X(int, nonPortableClusterSizeAllowed, )                                                                            \
    X(int, reserved, [16])

#define HOSTCUDA_POINTER_PROPERTIES(X)                                                                                 \
    X(enum cudaMemoryType, type, )                                                                                     \
    X(int, device, )                                                                                                   \
    X(void *, devicePointer, )                                                                                         \
    X(void *, hostPointer, )                                                                                           \
    X(long, reserved, [8])

#if defined(__cplusplus)
extern "C" {
#endif

#if !defined(HOSTCUDA_TYPES_GIVEN)
#define HOSTCUDA 1
#define HOSTCUDA_ENUMERATOR(name, value) name = value,
#define HOSTCUDA_ERROR_ENUMERATOR(name, value, text) name = value,
#define HOSTCUDA_MEMBER(type, name, count) type name count;
#if !defined(HOSTCUDA_UUID_GIVEN)
#define HOSTCUDA_UUID_GIVEN 1
struct CUuuid_st {
    char bytes[16];
};
#endif
typedef struct CUuuid_st cudaUUID_t;
/* clang-format off: each list is a macro */
typedef enum cudaError { HOSTCUDA_ERRORS(HOSTCUDA_ERROR_ENUMERATOR) } cudaError_t;
enum { HOSTCUDA_CONSTANTS(HOSTCUDA_ENUMERATOR) };
enum cudaMemcpyKind { HOSTCUDA_COPIES(HOSTCUDA_ENUMERATOR) };
enum cudaMemoryType { HOSTCUDA_MEMORY_TYPES(HOSTCUDA_ENUMERATOR) };
enum cudaStreamCaptureStatus { HOSTCUDA_CAPTURE_STATUSES(HOSTCUDA_ENUMERATOR) };
enum cudaStreamCaptureMode { HOSTCUDA_CAPTURE_MODES(HOSTCUDA_ENUMERATOR) };
enum cudaDriverEntryPointQueryResult { HOSTCUDA_ENTRY_POINTS(HOSTCUDA_ENUMERATOR) };
enum cudaFuncAttribute { HOSTCUDA_FUNCTION_ATTRIBUTES(HOSTCUDA_ENUMERATOR) };
enum cudaDeviceAttr { HOSTCUDA_DEVICE_ATTRIBUTES(HOSTCUDA_ENUMERATOR) };
struct cudaDeviceProp {
    HOSTCUDA_PROPERTIES(HOSTCUDA_MEMBER)
};
struct cudaFuncAttributes {
    HOSTCUDA_FUNCTION_PROPERTIES(HOSTCUDA_MEMBER)
};
struct cudaPointerAttributes {
    HOSTCUDA_POINTER_PROPERTIES(HOSTCUDA_MEMBER)
};
/* clang-format on */
typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;
typedef struct CUgraphNode_st *cudaGraphNode_t;
typedef struct CUkern_st *cudaKernel_t;
typedef struct CUuserObject_st *cudaUserObject_t;
typedef struct cudaGraphEdgeData_st cudaGraphEdgeData;
typedef void (*cudaHostFn_t)(void *argument);
typedef void (*cudaStreamCallback_t)(cudaStream_t stream, cudaError_t status, void *argument);
typedef struct dim3 {
    unsigned x, y, z;
} dim3;
typedef struct cudaLaunchConfig_st {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    struct cudaLaunchAttribute_st *attrs;
    unsigned numAttrs;
} cudaLaunchConfig_t;
#define cudaStreamLegacy ((cudaStream_t)0x1)
#define cudaStreamPerThread ((cudaStream_t)0x2)
#endif

/* ---- Devices ---- */
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaDeviceReset(void);
cudaError_t cudaSetDeviceFlags(unsigned flags);
cudaError_t cudaGetDeviceFlags(unsigned *flags);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device);
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device);
cudaError_t cudaDeviceGetPCIBusId(char *id, int bytes, int device);
cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *id);
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest);
cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer);
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags);
cudaError_t cudaDeviceDisablePeerAccess(int peer);
cudaError_t cudaMemGetInfo(size_t *free, size_t *total);
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *result);
cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned version,
                                             unsigned long long flags, enum cudaDriverEntryPointQueryResult *result);
cudaError_t cudaProfilerStart(void);
cudaError_t cudaProfilerStop(void);

/* ---- Memory ---- */
cudaError_t cudaMalloc(void **at, size_t bytes);
cudaError_t cudaMallocManaged(void **at, size_t bytes, unsigned flags);
cudaError_t cudaMallocAsync(void **at, size_t bytes, cudaStream_t stream);
cudaError_t cudaFree(void *at);
cudaError_t cudaFreeAsync(void *at, cudaStream_t stream);
cudaError_t cudaMallocHost(void **at, size_t bytes);
cudaError_t cudaHostAlloc(void **at, size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void *at);
cudaError_t cudaHostRegister(void *at, size_t bytes, unsigned flags);
cudaError_t cudaHostUnregister(void *at);
cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned flags);
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *at);
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes);
cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                                cudaStream_t stream);
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemset(void *at, int value, size_t bytes);
cudaError_t cudaMemsetAsync(void *at, int value, size_t bytes, cudaStream_t stream);

/* ---- Streams and events ---- */
cudaError_t cudaStreamCreate(cudaStream_t *stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority);
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned *flags);
cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *device);
cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long *id);
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void *argument, unsigned flags);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *argument);
cudaError_t cudaEventCreate(cudaEvent_t *event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t begin, cudaEvent_t end);

/* ---- Capture and graphs ---- */
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status);
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
                                     cudaGraph_t *graph, const cudaGraphNode_t **dependencies,
                                     const cudaGraphEdgeData **edges, size_t *count);
cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode);
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count);
cudaError_t cudaUserObjectCreate(cudaUserObject_t *object, void *argument, cudaHostFn_t destroy, unsigned references,
                                 unsigned flags);
cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned count);
cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned count);
cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count, unsigned flags);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *instance, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *instance, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphUpload(cudaGraphExec_t instance, cudaStream_t stream);
cudaError_t cudaGraphLaunch(cudaGraphExec_t instance, cudaStream_t stream);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t instance);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);

/* ---- Kernels ---- */
cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
                             cudaStream_t stream);
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function, void **arguments);
cudaError_t cudaLaunchCooperativeKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
                                        cudaStream_t stream);
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *function);
cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute attribute, int value);
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function, int threads,
                                                          size_t shared);
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *function, int threads,
                                                                   size_t shared, unsigned flags);

#if defined(__cplusplus)
}
#endif
