/* `sluice-lab kernels --device cuda`: every kernel of the GPU at the sizes of a training step. */
#pragma once

#include "bench/lab/kernels/gpu_bench.h"

/* True if a row has this name. */
bool slc_gpu_kernels_know(const char *op);
/* The names of the rows that are not in slc_kernel_table, with commas. */
const char *slc_gpu_kernels_others(void);
/* Measures the rows that the bench wants. Errors: MEMORY (of the host); else see slc_gpu_bench_measure. */
sluice_status slc_gpu_kernels_measure(slc_gpu_bench *bench);

#if defined(SLUICE_HAVE_DNNL)
/* The products of GPT-2 124M, under the name gemm. */
sluice_status slc_gpu_products_measure(slc_gpu_bench *bench, sluice_dtype dtype);
#endif
