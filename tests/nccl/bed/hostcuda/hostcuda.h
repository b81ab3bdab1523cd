/* CUDA's runtime and driver over the host's memory: libcudart.so.13 and libcuda.so.1, for programs that are not built
 * with this project. A device's memory is the host's; a stream is a thread with a queue; kernels do not run, but a
 * kernel may have a form for the host, which runs in its place.
 *
 * Environment: HOSTCUDA_DEVICES is the number of devices (8), HOSTCUDA_MEMORY the bytes of each (4 GiB),
 * HOSTCUDA_KERNELS the paths of libraries, separated by colons, that are loaded when a program first launches or looks
 * for a kernel: their constructors register kernels. SLUICE_EMULATED_SEED delays streams, as in the emulation, and
 * SLUICE_EMULATED_LOADED and SLUICE_EMULATED_PATIENCE say what a kernel's first launch beside a collective means. */
#pragma once

#include <stddef.h>

#if defined(__cplusplus)
extern "C" {
#endif

/* One launch, as the host's form of a kernel sees it. */
typedef struct {
    const char *name; /* as the program's compiler wrote it, mangled in C++ */
    unsigned grid[3], block[3];
    size_t shared_bytes;
    void **arguments; /* copies made when the kernel was launched; each is aligned to 16 bytes */
} hostcuda_launch;

/* Runs a whole launch, in the thread of its stream. */
typedef void hostcuda_kernel(const hostcuda_launch *launch);

/* Makes `kernel` the host's form of all kernels of this name, or, if the name begins with '*', of all kernels whose
 * (mangled) names contain the rest of it. `argument_bytes` are the sizes of its arguments, ended by 0. Name and sizes
 * are kept, not copied. May be called at any time, from any thread. */
void hostcuda_register_kernel(const char *name, hostcuda_kernel *kernel, const size_t *argument_bytes);

#if defined(__cplusplus)
}
#endif
