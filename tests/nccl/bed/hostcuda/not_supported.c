/* Functions of CUDA's runtime that programs import and that nothing on the host's memory can do. Each says so once. A
 * program that binds all its symbols when it is loaded, as Python does, needs them to exist. */
#include <cuda_runtime_api.h>

cudaError_t hostcuda_not_supported(const char *name);

#define NOT_SUPPORTED(name)                                                                                            \
    cudaError_t name(void);                                                                                            \
    cudaError_t name(void)                                                                                             \
    {                                                                                                                  \
        return hostcuda_not_supported(#name);                                                                          \
    }

NOT_SUPPORTED(cudaDeviceGetDefaultMemPool)
NOT_SUPPORTED(cudaDeviceGetGraphMemAttribute)
NOT_SUPPORTED(cudaDeviceSetGraphMemAttribute)
NOT_SUPPORTED(cudaDeviceGetMemPool)
NOT_SUPPORTED(cudaDeviceSetMemPool)
NOT_SUPPORTED(cudaGetSymbolAddress)
NOT_SUPPORTED(cudaGetSymbolSize)
NOT_SUPPORTED(cudaGraphAddNode)
NOT_SUPPORTED(cudaGraphConditionalHandleCreate)
NOT_SUPPORTED(cudaGraphDebugDotPrint)
NOT_SUPPORTED(cudaGraphExecUpdate)
NOT_SUPPORTED(cudaGraphNodeGetDependencies)
NOT_SUPPORTED(cudaIpcCloseMemHandle)
NOT_SUPPORTED(cudaIpcGetEventHandle)
NOT_SUPPORTED(cudaIpcGetMemHandle)
NOT_SUPPORTED(cudaIpcOpenEventHandle)
NOT_SUPPORTED(cudaIpcOpenMemHandle)
NOT_SUPPORTED(cudaKernelSetAttributeForDevice)
NOT_SUPPORTED(cudaLibraryGetGlobal)
NOT_SUPPORTED(cudaLibraryGetKernel)
NOT_SUPPORTED(cudaLibraryGetKernelCount)
NOT_SUPPORTED(cudaLibraryGetManaged)
NOT_SUPPORTED(cudaLibraryGetUnifiedFunction)
NOT_SUPPORTED(cudaLibraryLoadData)
NOT_SUPPORTED(cudaLibraryLoadFromFile)
NOT_SUPPORTED(cudaLibraryUnload)
NOT_SUPPORTED(cudaMallocFromPoolAsync)
NOT_SUPPORTED(cudaMemAdvise)
NOT_SUPPORTED(cudaMemPoolCreate)
NOT_SUPPORTED(cudaMemPoolDestroy)
NOT_SUPPORTED(cudaMemPoolGetAttribute)
NOT_SUPPORTED(cudaMemPoolSetAccess)
NOT_SUPPORTED(cudaMemPoolSetAttribute)
NOT_SUPPORTED(cudaMemPoolTrimTo)
NOT_SUPPORTED(cudaMemPrefetchAsync)
NOT_SUPPORTED(cudaMemcpy2D)
NOT_SUPPORTED(cudaMemcpyFromSymbol)
NOT_SUPPORTED(cudaMemcpyFromSymbolAsync)
NOT_SUPPORTED(cudaMemcpyToSymbol)
NOT_SUPPORTED(cudaMemcpyToSymbolAsync)
NOT_SUPPORTED(cudaStreamBeginCaptureToGraph)
NOT_SUPPORTED(cudaStreamUpdateCaptureDependencies)
