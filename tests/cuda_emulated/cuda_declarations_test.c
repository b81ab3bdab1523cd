/* Compiled where the toolkit is: its headers come first, then ours without their types, so that the compiler itself
 * refuses a function that is declared differently; and each constant that ours define must have the toolkit's value. */
#include <cublasLt.h>
#include <cuda_runtime_api.h>

#define EMULATED_CUDA_TYPES_GIVEN 1
#define EMULATED_CUBLASLT_TYPES_GIVEN 1
#include "tests/cuda_emulated/include/cublasLt.h"
#include "tests/cuda_emulated/include/cuda_runtime_api.h"

#define SAME_VALUE(name, value) _Static_assert((int)(name) == (value), #name);
EMULATED_CUDA_CONSTANTS(SAME_VALUE)
EMULATED_CUDA_ERRORS(SAME_VALUE)
EMULATED_CUDA_COPIES(SAME_VALUE)
EMULATED_CUDA_CAPTURES(SAME_VALUE)
EMULATED_CUDA_ATTRIBUTES(SAME_VALUE)
#define SAME_VALUE_OF_TYPE(type, name, value) SAME_VALUE(name, value)
EMULATED_CUBLASLT_CONSTANTS(SAME_VALUE_OF_TYPE)

int main(void)
{
    return 0;
}
