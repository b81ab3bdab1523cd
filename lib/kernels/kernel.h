/* What all kernels share.
 *
 * A kernel is a function of a stream: it may return before its work is done. On the host it runs at once, with
 * stream->threads OpenMP threads, and is deterministic for a fixed thread count. Arrays are fp32, row-major, contiguous
 * unless said otherwise. Every backward kernel ADDS to the gradients of parameters (dgamma, dbeta, dbias, dtable) and
 * STORES gradients of activations (dx) unless its contract says otherwise.
 *
 * Instruction sets: a fast host kernel lives in NAME_cpu.c, which is compiled once for each instruction set with
 * SLC_ISA(name) giving the function's suffix; NAME.c picks at run time. All give equal bits. */
#ifndef SLC_KERNEL_H
#define SLC_KERNEL_H

#include "lib/device/device.h"

#include <sluice/status.h>
#include <stddef.h>
#include <stdint.h>

#endif
