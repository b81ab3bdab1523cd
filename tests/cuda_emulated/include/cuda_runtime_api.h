/* The part of CUDA's runtime that this project calls, for builds without the toolkit: tests/cuda_emulated implements it
 * on the host. If the toolkit is installed, cuda_declarations_test.c proves that these declarations are its own. */
#pragma once

#include <stddef.h>

#define EMULATED_CUDA_CONSTANTS(X)                                                                                     \
    X(cudaStreamNonBlocking, 1)                                                                                        \
    X(cudaEventDefault, 0)                                                                                             \
    X(cudaEventDisableTiming, 2)                                                                                       \
    X(cudaHostAllocDefault, 0)

#define EMULATED_CUDA_ERRORS(X)                                                                                        \
    X(cudaSuccess, 0)                                                                                                  \
    X(cudaErrorInvalidValue, 1)                                                                                        \
    X(cudaErrorMemoryAllocation, 2)                                                                                    \
    X(cudaErrorInvalidConfiguration, 9)                                                                                \
    X(cudaErrorInsufficientDriver, 35)                                                                                 \
    X(cudaErrorNoDevice, 100)                                                                                          \
    X(cudaErrorInvalidDevice, 101)                                                                                     \
    X(cudaErrorInvalidResourceHandle, 400)                                                                             \
    X(cudaErrorNotReady, 600)                                                                                          \
    X(cudaErrorIllegalAddress, 700)                                                                                    \
    X(cudaErrorLaunchFailure, 719)                                                                                     \
    X(cudaErrorNotSupported, 801)

#define EMULATED_CUDA_COPIES(X)                                                                                        \
    X(cudaMemcpyHostToHost, 0)                                                                                         \
    X(cudaMemcpyHostToDevice, 1)                                                                                       \
    X(cudaMemcpyDeviceToHost, 2)                                                                                       \
    X(cudaMemcpyDeviceToDevice, 3)                                                                                     \
    X(cudaMemcpyDefault, 4)

#define EMULATED_CUDA_CAPTURES(X)                                                                                      \
    X(cudaStreamCaptureStatusNone, 0)                                                                                  \
    X(cudaStreamCaptureStatusActive, 1)                                                                                \
    X(cudaStreamCaptureStatusInvalidated, 2)

#define EMULATED_CUDA_ATTRIBUTES(X) X(cudaFuncAttributeMaxDynamicSharedMemorySize, 8)

#if defined(__cplusplus)
extern "C" {
#endif

#if !defined(EMULATED_CUDA_TYPES_GIVEN)
#define EMULATED_CUDA 1
#define EMULATED_CUDA_ENUMERATOR(name, value) name = value,
/* clang-format off: each list of enumerators is a macro */
typedef enum cudaError { EMULATED_CUDA_ERRORS(EMULATED_CUDA_ENUMERATOR) } cudaError_t;
enum cudaMemcpyKind { EMULATED_CUDA_COPIES(EMULATED_CUDA_ENUMERATOR) };
enum cudaStreamCaptureStatus { EMULATED_CUDA_CAPTURES(EMULATED_CUDA_ENUMERATOR) };
enum cudaFuncAttribute { EMULATED_CUDA_ATTRIBUTES(EMULATED_CUDA_ENUMERATOR) };
enum { EMULATED_CUDA_CONSTANTS(EMULATED_CUDA_ENUMERATOR) };
/* clang-format on */
#undef EMULATED_CUDA_ENUMERATOR
typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef void (*cudaHostFn_t)(void *argument);

/* This struct has the members of the toolkit's that we read. */
struct cudaDeviceProp {
    char name[256];
    size_t totalGlobalMem;
    int major, minor;
    int multiProcessorCount;
    int maxThreadsPerMultiProcessor;
};
struct cudaFuncAttributes {
    size_t sharedSizeBytes, localSizeBytes;
    int numRegs;
};
#endif

cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device);
cudaError_t cudaMemGetInfo(size_t *free, size_t *total);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest);

cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
const char *cudaGetErrorString(cudaError_t error);

cudaError_t cudaMalloc(void **at, size_t bytes);
cudaError_t cudaFree(void *at);
cudaError_t cudaHostAlloc(void **at, size_t bytes, unsigned int flags);
cudaError_t cudaFreeHost(void *at);

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags, int priority);
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *argument);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemsetAsync(void *at, int value, size_t bytes, cudaStream_t stream);

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t begin, cudaEvent_t end);

cudaError_t cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute attribute, int value);
/* These two functions tell what nvcc made of a kernel; in emulation they return cudaErrorNotSupported. */
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *kernel);
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *kernel, int threads, size_t shared);

#if defined(__cplusplus)
}
#endif
