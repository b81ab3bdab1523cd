/* The seam between the device cuda and its kernels. Private to lib/device and lib/kernels. Usable from C and from CUDA
 * C++. */
#pragma once

#include "lib/device/device.h"

/* True if a stream's kernels run on the GPU. It is a constant in builds without the device, so that calls of kernels
 * which do not exist there vanish. */
#define SLC_ON_CUDA(stream) (SLUICE_CUDA && slc_device_get_kind((stream)->device) == SLC_DEVICE_CUDA)

#if SLUICE_CUDA
#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Makes the stream's GPU the current one of this thread, which launches need, and returns the runtime's stream. */
cudaStream_t slc_cuda_stream(const sluice_stream *stream);
/* A grid of our own kernels. */
typedef struct {
    const void *kernel;
    uint64_t blocks;
    uint32_t threads; /* of a block */
    size_t shared_bytes;
} slc_cuda_grid;
/* Keeps a grid that this thread launches next, for slc_cuda_launched to tell who watches. */
void slc_cuda_note_grid(const slc_cuda_grid *grid);
/* Says whether the launch before it was accepted, and with SLUICE_CUDA_CHECK whether the kernel did its work. Errors:
 * SYSTEM, named after the kernel. */
sluice_status slc_cuda_launched(const sluice_stream *stream, const char *kernel);
/* Turns what a call of the runtime returned into a status. Errors: MEMORY, SYSTEM. */
sluice_status slc_cuda_status(cudaError_t error, const char *what);
/* Blocks of 256 threads that keep every multiprocessor busy: what a kernel that strides over its elements starts. */
uint32_t slc_cuda_blocks(const sluice_stream *stream);

#ifdef __cplusplus
}
#endif
#endif
