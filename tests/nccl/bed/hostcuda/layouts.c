/* Compiled twice: LAYOUTS names the list, and the first <cuda_runtime_api.h> that the compiler finds is what it tells
 * of. The lists of members are ours both times. */
#include <cuda_runtime_api.h>

#include "tests/nccl/bed/hostcuda/layouts.h"

#if !defined(HOSTCUDA_PROPERTIES)
#define HOSTCUDA_TYPES_GIVEN 1
#include "tests/nccl/bed/hostcuda/include/cuda_runtime_api.h"
#endif

#define MEMBER(type, member) {#type "." #member, offsetof(type, member), sizeof((type *)0)->member},
#define WHOLE(type) {#type, 0, sizeof(type)},
#define OF_DEVICE(type, member, count) MEMBER(struct cudaDeviceProp, member)
#define OF_FUNCTION(type, member, count) MEMBER(struct cudaFuncAttributes, member)
#define OF_POINTER(type, member, count) MEMBER(struct cudaPointerAttributes, member)

const layout LAYOUTS[] = {
    WHOLE(struct cudaDeviceProp)        /**/
    WHOLE(struct cudaFuncAttributes)    /**/
    WHOLE(struct cudaPointerAttributes) /**/
    WHOLE(cudaLaunchConfig_t)           /**/
    WHOLE(dim3)                         /**/
    MEMBER(cudaLaunchConfig_t, blockDim) MEMBER(cudaLaunchConfig_t, dynamicSmemBytes) MEMBER(cudaLaunchConfig_t, stream)
        MEMBER(cudaLaunchConfig_t, numAttrs) HOSTCUDA_PROPERTIES(OF_DEVICE) HOSTCUDA_FUNCTION_PROPERTIES(OF_FUNCTION)
            HOSTCUDA_POINTER_PROPERTIES(OF_POINTER){NULL, 0, 0},
};
