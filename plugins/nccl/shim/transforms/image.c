/* The kernels' image. A build without nvcc has none: CUDA's driver then refuses the text that stands here, while the
 * tests' CUDA (tests/nccl/bed/hostcuda) takes any image and finds kernels by their names.
 * tests/nccl/on_the_bed.py covers this file. */
#include "plugins/nccl/shim/transforms/device.h"

#if defined(SHIM_IMAGE)
__asm__(".section .rodata\n"
        ".balign 16\n"
        ".globl slc_shim_image\n"
        ".hidden slc_shim_image\n"
        ".type slc_shim_image, @object\n"
        "slc_shim_image:\n"
        ".incbin \"" SHIM_IMAGE "\"\n"
        ".size slc_shim_image, . - slc_shim_image\n"
        ".previous\n");
#else
const char slc_shim_image[] = "// This build of libsluice_nccl.so has no kernels: it was made without nvcc.\n";
#endif
