/* Finds the version of cublasLt that a process can use. Private to lib/kernels/gemm. */
#pragma once

/* Opens libcublasLt of a folder, or with "" of the loader's path: the newest that a driver which knows CUDA versions up
 * to `driver` runs, as cudaDriverGetVersion gives them; 0: any. NULL: there is none. The caller has what dlopen gave.
 */
void *slc_gemm_open_cublaslt(const char *folder, int driver);
