/* Private to tests/hostnccl: CUDA's runtime, as much of it as a small NCCL calls; in the names and numbers of CUDA 13,
 * so that no package of NVIDIA's is needed. */
#ifndef HOSTNCCL_RUNTIME_H
#define HOSTNCCL_RUNTIME_H

#pragma GCC visibility push(default)
#include "plugins/nccl_shim/nccl_abi.h"
#pragma GCC visibility pop

typedef int hostnccl_cuda_error; /* cudaError_t; 0: success */
typedef struct CUevent_st *hostnccl_event;

enum { HOSTNCCL_CAPTURE_ACTIVE = 1, HOSTNCCL_EVENT_NO_TIMES = 2 };

#pragma GCC visibility push(default)
hostnccl_cuda_error cudaGetDeviceCount(int *count);
hostnccl_cuda_error cudaGetDevice(int *device);
hostnccl_cuda_error cudaSetDevice(int device);
hostnccl_cuda_error cudaMalloc(void **memory, size_t bytes);
hostnccl_cuda_error cudaFree(void *memory);
hostnccl_cuda_error cudaStreamIsCapturing(cudaStream_t stream, int *status);
hostnccl_cuda_error cudaLaunchHostFunc(cudaStream_t stream, void (*function)(void *), void *argument);
hostnccl_cuda_error cudaEventCreateWithFlags(hostnccl_event *event, unsigned flags);
hostnccl_cuda_error cudaEventRecord(hostnccl_event event, cudaStream_t stream);
hostnccl_cuda_error cudaStreamWaitEvent(cudaStream_t stream, hostnccl_event event, unsigned flags);
hostnccl_cuda_error cudaEventDestroy(hostnccl_event event);
const char *cudaGetErrorString(hostnccl_cuda_error error);
#pragma GCC visibility pop

#endif
