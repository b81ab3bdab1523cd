/* Finds the form of a kernel for its stream's device. The kernel's own function, in NAME.c, refuses wrong arguments for
 * all devices; a new device adds a suffix here. Private to lib/kernels. */
#pragma once

#include "lib/device/cuda.h"
#include "lib/kernels/host.h"

/* Gives slc_NAME_cuda for a stream of the GPU, else the function NAME_host of the same file. Builds without the device
 * cuda refer to the latter only. */
#define SLC_DEVICE_PICK(stream, name) (SLC_ON_CUDA(stream) ? slc_##name##_cuda : name##_host)

/* Runs a kernel with these arguments after its stream, and gives its status. NAME_host returns nothing, and is called
 * only for streams of the host. */
#define SLC_DEVICE_RUN(stream, name, ...)                                                                              \
    (SLC_ON_CUDA(stream)                                                                                               \
         ? slc_##name##_cuda(stream, __VA_ARGS__)                                                                      \
         : __extension__(slc_host_check(stream, #name) ?: (name##_host(stream, __VA_ARGS__), SLUICE_OK)))
