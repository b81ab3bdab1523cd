/* The limits of a launch, which are the same in the emulation and in tests/nccl/bed/hostcuda. Kernels have numbers of
 * their own. */
#pragma once

#include "tests/cuda_emulated/runtime.h"

struct emulated_shape {
    unsigned x, y, z;
};

/* Errors, kept for cudaGetLastError: cudaErrorInvalidConfiguration (blocks or threads that a GPU does not take),
 * cudaErrorInvalidValue (more shared memory than the kernel may have). */
cudaError_t emulated_check_launch(uint64_t kernel, const emulated_shape &grid, const emulated_shape &block,
                                  size_t shared);

/* cudaFuncAttributeMaxDynamicSharedMemorySize of a kernel. Errors: cudaErrorInvalidValue. */
cudaError_t emulated_ask_shared(uint64_t kernel, int bytes);
