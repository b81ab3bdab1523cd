/* Rules that all kernels share.
 *
 * A kernel is a function of a stream: it may return before its work is done. On the host it runs at once, with
 * stream->threads OpenMP threads, and is deterministic for a fixed thread count. Arrays are row-major and contiguous
 * unless said otherwise. Every backward kernel ADDS to the gradients of parameters (dgamma, dbeta, dbias, dtable) and
 * STORES gradients of activations (dx) unless its contract says otherwise. It sums what its call brings to an element
 * from zero, whatever is there, and adds that sum once: so a rank that adds up M micro-batches ends in the bits of M
 * ranks with one each.
 *
 * Types (sluice/dtype.h): `void` arrays have the call's `dtype`, activations and parameters alike; gradients of
 * parameters have its `gradient`. Every kernel computes in fp32 and rounds once, when it stores. Results of more than
 * 16 MiB that are 64-byte aligned may be stored past the cache.
 *
 * Arguments: an operation with more than a few takes one struct, declared in NAME.h, which every form of it reads: the
 * host's loops, the GPU's kernel and the plain loop of the tests (_ref), for which each `void` array holds double
 * whatever the types say. A member that is not given is 0 or NULL, and means what the contract says for that. Arrays
 * are the caller's; pointers are read until the work is done.
 *
 * Forms: a fast host kernel is in NAME_cpu.c, which is compiled once for each instruction set with SLC_ISA(name) giving
 * the function's suffix; the GPU's is in NAME_cuda.cu, with the suffix _cuda; NAME.c picks one at run time
 * (dispatch.h). All instruction sets give equal bits, except in products of few rows (gemm/gemm_few.h). */
#pragma once

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

/* C's linkage, for what both languages see. */
#if defined(__cplusplus)
#define SLC_C_LINKAGE extern "C"
#else
#define SLC_C_LINKAGE extern
#endif

/* Declares name_cuda, the GPU's form of a kernel: it takes what the kernel takes. */
#if defined(__cplusplus)
#define SLC_DEVICE_DECLARE(name) SLC_C_LINKAGE decltype(name) name##_cuda
#else
#define SLC_DEVICE_DECLARE(name) SLC_C_LINKAGE __typeof__(name) name##_cuda
#endif
