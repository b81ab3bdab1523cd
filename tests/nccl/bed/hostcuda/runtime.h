/* The files of the host's CUDA share this. It also says what the driver, libcuda.so.1, asks of the runtime,
 * libcudart.so.13, which holds everything. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <cuda_runtime_api.h>

#include "tests/nccl/bed/hostcuda/hostcuda.h"

extern "C" {

/* The current device of this thread, or -1 if it has none: what the driver calls no current context. */
int hostcuda_current_device(void);
void hostcuda_set_current_device(int device);

/* Sets the error that the runtime keeps for this thread; returns what it was. Calls of the driver leave it alone. */
cudaError_t hostcuda_exchange_last_error(cudaError_t error);

/* The kernel of a name; NULL, with a line on standard error the first time, if nobody registered one. It lives for
 * ever. */
typedef struct hostcuda_function hostcuda_function;
const hostcuda_function *hostcuda_find_kernel(const char *name);
cudaError_t hostcuda_launch_kernel(const hostcuda_function *function, dim3 grid, dim3 block, size_t shared,
                                   cudaStream_t stream, void **arguments);

/* Writes the low `bytes` (4 or 8) of a value, in the stream's order, for other threads and processes to see. */
cudaError_t hostcuda_write_value(cudaStream_t stream, void *at, uint64_t value, int bytes);

/* The allocation that a byte lies in: its first byte and its size. */
cudaError_t hostcuda_find_allocation(const void *at, void **begin, size_t *bytes);

/* Prints once for each name that nothing here does this; returns cudaErrorNotSupported. */
cudaError_t hostcuda_not_supported(const char *name);
}
