/* Private to tests/nccl/bed/hostnccl: errors as NCCL tells them. */
#pragma once

#include "plugins/nccl/nccl_abi.h"
#include <cuda_runtime_api.h>

/* Keeps the text for ncclGetLastError, prints it if NCCL_DEBUG is set, and returns `result`. */
__attribute__((format(printf, 2, 3))) ncclResult_t hostnccl_error(ncclResult_t result, const char *format, ...);

ncclResult_t hostnccl_cuda_failed(const char *call, cudaError_t error);
