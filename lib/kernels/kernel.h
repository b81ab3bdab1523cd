/* Rules that all kernels share.
 *
 * A kernel is a function of a stream: it may return before its work is done. On the host it runs at once, with
 * stream->threads OpenMP threads, and is deterministic for a fixed thread count. Arrays are row-major and contiguous
 * unless said otherwise. Every backward kernel ADDS to the gradients of parameters (dgamma, dbeta, dbias, dtable) and
 * STORES gradients of activations (dx) unless its contract says otherwise.
 *
 * Types (sluice/dtype.h): `void` arrays have the call's `dtype`, activations and parameters alike; gradients of
 * parameters have its `gradient`. Every kernel computes in fp32 and rounds once, when it stores. Results of more than
 * 16 MiB that are 64-byte aligned may be stored past the cache.
 *
 * Instruction sets: a fast host kernel is in NAME_cpu.c, which is compiled once for each instruction set with
 * SLC_ISA(name) giving the function's suffix; NAME.c picks one at run time. All give equal bits. */
#ifndef SLC_KERNEL_H
#define SLC_KERNEL_H

#include "lib/device/device.h"

#include <sluice/dtype.h>
#include <sluice/status.h>
#include <stddef.h>
#include <stdint.h>

/* Marks a function of a header that the host's kernels and the GPU's share. */
#if defined(__CUDACC__)
#define SLC_HOST_AND_GPU __host__ __device__
#else
#define SLC_HOST_AND_GPU
#endif

#endif
