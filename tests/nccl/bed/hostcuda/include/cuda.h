/* The part of CUDA 13's driver that the host's CUDA implements (tests/nccl/bed/hostcuda), with the numbers of the real
 * one. If the toolkit is installed, declarations_test proves that these declarations are its own. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define HOSTCUDA_RESULTS(X)                                                                                            \
    X(CUDA_SUCCESS, 0, "no error")                                                                                     \
    X(CUDA_ERROR_INVALID_VALUE, 1, "invalid argument")                                                                 \
    X(CUDA_ERROR_OUT_OF_MEMORY, 2, "out of memory")                                                                    \
    X(CUDA_ERROR_NOT_INITIALIZED, 3, "initialization error")                                                           \
    X(CUDA_ERROR_DEINITIALIZED, 4, "driver shutting down")                                                             \
    X(CUDA_ERROR_NO_DEVICE, 100, "no CUDA-capable device is detected")                                                 \
    X(CUDA_ERROR_INVALID_DEVICE, 101, "invalid device ordinal")                                                        \
    X(CUDA_ERROR_INVALID_IMAGE, 200, "device kernel image is invalid")                                                 \
    X(CUDA_ERROR_INVALID_CONTEXT, 201, "invalid device context")                                                       \
    X(CUDA_ERROR_INVALID_HANDLE, 400, "invalid resource handle")                                                       \
    X(CUDA_ERROR_ILLEGAL_STATE, 401, "the operation cannot be performed in the present state")                         \
    X(CUDA_ERROR_NOT_FOUND, 500, "named symbol not found")                                                             \
    X(CUDA_ERROR_NOT_READY, 600, "device not ready")                                                                   \
    X(CUDA_ERROR_ILLEGAL_ADDRESS, 700, "an illegal memory access was encountered")                                     \
    X(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, 704, "peer access is already enabled")                                   \
    X(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, 705, "peer access has not been enabled")                                     \
    X(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, 712, "part or all of the requested memory range is already mapped")   \
    X(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, 713, "pointer does not correspond to a registered memory region")         \
    X(CUDA_ERROR_LAUNCH_FAILED, 719, "unspecified launch failure")                                                     \
    X(CUDA_ERROR_NOT_PERMITTED, 800, "operation not permitted")                                                        \
    X(CUDA_ERROR_NOT_SUPPORTED, 801, "operation not supported")                                                        \
    X(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 900, "operation not permitted when stream is capturing")                  \
    X(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, 901, "operation failed due to a previous error during capture")           \
    X(CUDA_ERROR_STREAM_CAPTURE_MERGE, 902, "operation would result in a merge of separate capture sequences")         \
    X(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, 903, "capture was not ended in the same stream as it began")                \
    X(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, 904, "capturing stream has unjoined work")                                   \
    X(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, 905, "dependency created on uncaptured work in another stream")             \
    X(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, 906,                                                                         \
      "operation would make the legacy stream depend on a capturing blocking stream")                                  \
    X(CUDA_ERROR_CAPTURED_EVENT, 907, "operation not permitted on an event last recorded in a capturing stream")       \
    X(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, 908,                                                                     \
      "attempt to terminate a thread-local capture sequence from another thread")                                      \
    X(CUDA_ERROR_UNKNOWN, 999, "unknown error")

#define HOSTCUDA_DRIVER_CONSTANTS(X)                                                                                   \
    X(CU_STREAM_DEFAULT, 0)                                                                                            \
    X(CU_STREAM_NON_BLOCKING, 1)                                                                                       \
    X(CU_EVENT_DEFAULT, 0)                                                                                             \
    X(CU_EVENT_BLOCKING_SYNC, 1)                                                                                       \
    X(CU_EVENT_DISABLE_TIMING, 2)                                                                                      \
    X(CU_STREAM_WRITE_VALUE_DEFAULT, 0)                                                                                \
    X(CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER, 1)                                                                      \
    X(CU_STREAM_CAPTURE_STATUS_NONE, 0)                                                                                \
    X(CU_STREAM_CAPTURE_STATUS_ACTIVE, 1)                                                                              \
    X(CU_STREAM_CAPTURE_STATUS_INVALIDATED, 2)                                                                         \
    X(CU_MEMORYTYPE_HOST, 1)                                                                                           \
    X(CU_MEMORYTYPE_DEVICE, 2)                                                                                         \
    X(CU_POINTER_ATTRIBUTE_CONTEXT, 1)                                                                                 \
    X(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 2)                                                                             \
    X(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, 3)                                                                          \
    X(CU_POINTER_ATTRIBUTE_HOST_POINTER, 4)                                                                            \
    X(CU_POINTER_ATTRIBUTE_IS_MANAGED, 8)                                                                              \
    X(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 9)                                                                          \
    X(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, 11)                                                                       \
    X(CU_POINTER_ATTRIBUTE_RANGE_SIZE, 12)                                                                             \
    X(CU_GET_PROC_ADDRESS_SUCCESS, 0)                                                                                  \
    X(CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, 1)                                                                         \
    X(CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT, 2)                                                                   \
    X(CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1, 94)                                                        \
    X(CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1, 93)

#if defined(__cplusplus)
extern "C" {
#endif

#if !defined(HOSTCUDA_TYPES_GIVEN)
#define HOSTCUDA_RESULT_ENUMERATOR(name, value, text) name = value,
#define HOSTCUDA_DRIVER_ENUMERATOR(name, value) name = value,
/* clang-format off: each list is a macro */
typedef enum cudaError_enum { HOSTCUDA_RESULTS(HOSTCUDA_RESULT_ENUMERATOR) } CUresult;
enum { HOSTCUDA_DRIVER_CONSTANTS(HOSTCUDA_DRIVER_ENUMERATOR) };
/* clang-format on */
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef uint32_t cuuint32_t;
typedef uint64_t cuuint64_t;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphEdgeData_st CUgraphEdgeData;
typedef unsigned CUdevice_attribute;
typedef unsigned CUpointer_attribute;
typedef unsigned CUfunction_attribute;
typedef unsigned CUstreamCaptureStatus;
typedef unsigned CUstreamCaptureMode;
typedef unsigned CUdriverProcAddressQueryResult;
typedef void (*CUhostFn)(void *argument);
#if !defined(HOSTCUDA_UUID_GIVEN)
#define HOSTCUDA_UUID_GIVEN 1
struct CUuuid_st {
    char bytes[16];
};
#endif
typedef struct CUuuid_st CUuuid;
/* Programs get the newest version of a function under its name, as with the real header. */
#define cuCtxDestroy cuCtxDestroy_v2
#define cuCtxPopCurrent cuCtxPopCurrent_v2
#define cuCtxPushCurrent cuCtxPushCurrent_v2
#define cuDeviceGetUuid cuDeviceGetUuid_v2
#define cuDevicePrimaryCtxRelease cuDevicePrimaryCtxRelease_v2
#define cuDevicePrimaryCtxSetFlags cuDevicePrimaryCtxSetFlags_v2
#define cuDeviceTotalMem cuDeviceTotalMem_v2
#define cuEventDestroy cuEventDestroy_v2
#define cuEventElapsedTime cuEventElapsedTime_v2
#define cuGetProcAddress cuGetProcAddress_v2
#define cuMemAlloc cuMemAlloc_v2
#define cuMemAllocHost cuMemAllocHost_v2
#define cuMemFree cuMemFree_v2
#define cuMemGetAddressRange cuMemGetAddressRange_v2
#define cuMemGetInfo cuMemGetInfo_v2
#define cuMemHostGetDevicePointer cuMemHostGetDevicePointer_v2
#define cuMemHostRegister cuMemHostRegister_v2
#define cuMemcpyDtoD cuMemcpyDtoD_v2
#define cuMemcpyDtoDAsync cuMemcpyDtoDAsync_v2
#define cuMemcpyDtoH cuMemcpyDtoH_v2
#define cuMemcpyDtoHAsync cuMemcpyDtoHAsync_v2
#define cuMemcpyHtoD cuMemcpyHtoD_v2
#define cuMemcpyHtoDAsync cuMemcpyHtoDAsync_v2
#define cuMemsetD8 cuMemsetD8_v2
#define cuStreamDestroy cuStreamDestroy_v2
#define cuStreamGetCaptureInfo cuStreamGetCaptureInfo_v3
#define cuStreamWaitValue32 cuStreamWaitValue32_v2
#define cuStreamWriteValue32 cuStreamWriteValue32_v2
#define cuStreamWriteValue64 cuStreamWriteValue64_v2
#endif

/* ---- Devices and contexts ---- */
CUresult cuInit(unsigned flags);
CUresult cuDriverGetVersion(int *version);
CUresult cuGetErrorName(CUresult error, const char **name);
CUresult cuGetErrorString(CUresult error, const char **text);
CUresult cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags,
                          CUdriverProcAddressQueryResult *result);
CUresult cuDeviceGet(CUdevice *device, int ordinal);
CUresult cuDeviceGetCount(int *count);
CUresult cuDeviceGetName(char *name, int bytes, CUdevice device);
CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device);
CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device);
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device);
CUresult cuDeviceGetPCIBusId(char *id, int bytes, CUdevice device);
CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *id);
CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer);
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
CUresult cuDevicePrimaryCtxRelease(CUdevice device);
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active);
CUresult cuCtxGetCurrent(CUcontext *context);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuCtxPushCurrent(CUcontext context);
CUresult cuCtxPopCurrent(CUcontext *context);
CUresult cuCtxGetDevice(CUdevice *device);
CUresult cuCtxSynchronize(void);
CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest);

/* ---- Streams and events ---- */
CUresult cuStreamCreate(CUstream *stream, unsigned flags);
CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority);
CUresult cuStreamDestroy(CUstream stream);
CUresult cuStreamSynchronize(CUstream stream);
CUresult cuStreamQuery(CUstream stream);
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags);
CUresult cuStreamGetCtx(CUstream stream, CUcontext *context);
CUresult cuStreamGetFlags(CUstream stream, unsigned *flags);
CUresult cuStreamGetPriority(CUstream stream, int *priority);
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status);
CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                                const CUgraphNode **dependencies, const CUgraphEdgeData **edges, size_t *count);
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode);
CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned flags);
CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr at, cuuint64_t value, unsigned flags);
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *argument);
CUresult cuEventCreate(CUevent *event, unsigned flags);
CUresult cuEventDestroy(CUevent event);
CUresult cuEventRecord(CUevent event, CUstream stream);
CUresult cuEventQuery(CUevent event);
CUresult cuEventSynchronize(CUevent event);
CUresult cuEventElapsedTime(float *milliseconds, CUevent begin, CUevent end);

/* ---- Memory ---- */
CUresult cuMemGetInfo(size_t *free, size_t *total);
CUresult cuMemAlloc(CUdeviceptr *at, size_t bytes);
CUresult cuMemFree(CUdeviceptr at);
CUresult cuMemAllocHost(void **at, size_t bytes);
CUresult cuMemHostAlloc(void **at, size_t bytes, unsigned flags);
CUresult cuMemFreeHost(void *at);
CUresult cuMemHostRegister(void *at, size_t bytes, unsigned flags);
CUresult cuMemHostUnregister(void *at);
CUresult cuMemHostGetDevicePointer(CUdeviceptr *device, void *host, unsigned flags);
CUresult cuMemGetAddressRange(CUdeviceptr *begin, size_t *bytes, CUdeviceptr at);
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream);
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream);
CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t bytes);
CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t bytes);
CUresult cuMemsetD8(CUdeviceptr at, unsigned char value, size_t bytes);
CUresult cuMemsetD8Async(CUdeviceptr at, unsigned char value, size_t bytes, CUstream stream);
CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr at);
CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute *attributes, void **values, CUdeviceptr at);

/* ---- Kernels ---- */
/* An image is a fat binary, a cubin or PTX, none of which is looked into, or the text "hostcuda", which only the host's
 * driver accepts. */
CUresult cuModuleLoadData(CUmodule *module, const void *image);
CUresult cuModuleUnload(CUmodule module);
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name); /* one that is registered */
CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void **arguments,
                        void **extra);

#if defined(__cplusplus)
}
#endif
