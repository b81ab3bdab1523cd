/* The driver, libcuda.so.1: each function is the runtime's under another name, with contexts in the place of current
 * devices. The runtime holds all state, so a program may use both. A device has one context, its primary one. */
#include "tests/nccl/bed/hostcuda/runtime.h"

#include <atomic>
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <string>
#include <vector>

enum { DEVICES_MOST = 64 };

struct CUctx_st {
    std::atomic<int> references{0};
};
static CUctx_st contexts[DEVICES_MOST];

/* While an object of this type lives, the runtime's last error of this thread stays what it was. */
struct last_error_kept {
    cudaError_t before = hostcuda_exchange_last_error(cudaSuccess);
    ~last_error_kept()
    {
        hostcuda_exchange_last_error(before);
    }
};

/* The runtime's errors have the driver's numbers but for those of launches. */
static CUresult driver_result(cudaError_t error)
{
    if (error == cudaErrorInvalidConfiguration || error == cudaErrorInvalidMemcpyDirection)
        return CUDA_ERROR_INVALID_VALUE;
    return (CUresult)error;
}

static CUcontext context_of(int device)
{
    return device < 0 ? NULL : &contexts[device];
}

static int device_of(CUcontext context)
{
    return context ? (int)(context - contexts) : -1;
}

static CUresult check_device(CUdevice device)
{
    int count = 0;
    if (cudaGetDeviceCount(&count)) return CUDA_ERROR_NO_DEVICE;
    return device >= 0 && device < count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

/* Calls of the runtime that would choose device 0 for a thread that has none; the driver refuses them. */
#define IN_CONTEXT(call) (hostcuda_current_device() < 0 ? CUDA_ERROR_INVALID_CONTEXT : driver_result(call))
/* The real driver exports a function under its older names too; if they take the same arguments, so does this one.
 */
#define ALSO(older, name) __asm__(".globl " older "\n.type " older ", %function\n.set " older ", " name)

/* ---- The driver itself ---- */

CUresult cuInit(unsigned flags)
{
    int count;
    if (flags) return CUDA_ERROR_INVALID_VALUE;
    if (cudaGetDeviceCount(&count)) return CUDA_ERROR_NO_DEVICE;
    return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
    return driver_result(cudaDriverGetVersion(version));
}

CUresult cuGetErrorName(CUresult error, const char **name)
{
#define NAME(result, number, text)                                                                                     \
    case result: *name = #result; return CUDA_SUCCESS;
    switch (error) {
        HOSTCUDA_RESULTS(NAME)
    }
    *name = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **string)
{
#define TEXT(result, number, text)                                                                                     \
    case result: *string = text; return CUDA_SUCCESS;
    switch (error) {
        HOSTCUDA_RESULTS(TEXT)
    }
    *string = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}

/* The newest version of a function that a program of this CUDA version knows. Functions of which only one version
 * exists here, and names that end in a version, are found as they are. */
static const struct {
    const char *name, *symbol;
    int since;
} versions[] = {
    {"cuCtxDestroy", "cuCtxDestroy_v2", 4000},
    {"cuCtxPopCurrent", "cuCtxPopCurrent_v2", 4000},
    {"cuCtxPushCurrent", "cuCtxPushCurrent_v2", 4000},
    {"cuDeviceTotalMem", "cuDeviceTotalMem_v2", 3020},
    {"cuGetProcAddress", "cuGetProcAddress_v2", 12000},
    {"cuMemAlloc", "cuMemAlloc_v2", 3020},
    {"cuMemAllocHost", "cuMemAllocHost_v2", 3020},
    {"cuMemFree", "cuMemFree_v2", 3020},
    {"cuMemGetAddressRange", "cuMemGetAddressRange_v2", 3020},
    {"cuMemGetInfo", "cuMemGetInfo_v2", 3020},
    {"cuMemHostGetDevicePointer", "cuMemHostGetDevicePointer_v2", 3020},
    {"cuMemcpyDtoDAsync", "cuMemcpyDtoDAsync_v2", 3020},
    {"cuMemcpyDtoH", "cuMemcpyDtoH_v2", 3020},
    {"cuMemcpyDtoHAsync", "cuMemcpyDtoHAsync_v2", 3020},
    {"cuMemcpyHtoD", "cuMemcpyHtoD_v2", 3020},
    {"cuMemcpyHtoDAsync", "cuMemcpyHtoDAsync_v2", 3020},
    {"cuMemsetD8", "cuMemsetD8_v2", 3020},
    {"cuStreamGetCaptureInfo", "cuStreamGetCaptureInfo_v3", 12030},
    {"cuStreamGetCaptureInfo", "cuStreamGetCaptureInfo_v2", 11030},
};

CUresult cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t,
                          CUdriverProcAddressQueryResult *result)
{
    const char *name = symbol;
    bool has_versions = false;
    if (!symbol || !function) return CUDA_ERROR_INVALID_VALUE;
    for (auto &v : versions) {
        if (strcmp(v.name, symbol)) continue;
        has_versions = true;
        if (version < v.since || name != symbol) continue;
        name = v.symbol;
    }
    const bool too_old = has_versions && name == symbol;
    static void *const self = [] {
        Dl_info here;
        return dladdr((void *)context_of, &here) ? dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD) : NULL;
    }();
    *function = too_old || strncmp(name, "cu", 2) || !strncmp(name, "cuda", 4) ? NULL : dlsym(self, name);
    if (result)
        *result = *function ? CU_GET_PROC_ADDRESS_SUCCESS
                  : too_old ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                            : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/* The first version of cuGetProcAddress, which programs older than CUDA 12 call. */
#undef cuGetProcAddress
extern "C" CUresult cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags)
{
    return cuGetProcAddress_v2(symbol, function, version, flags, NULL);
}

/* ---- Devices ---- */

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    if (!device) return CUDA_ERROR_INVALID_VALUE;
    *device = ordinal;
    return check_device(ordinal);
}

CUresult cuDeviceGetCount(int *count)
{
    return driver_result(cudaGetDeviceCount(count));
}

CUresult cuDeviceGetName(char *name, int bytes, CUdevice device)
{
    struct cudaDeviceProp properties;
    cudaError_t error = cudaGetDeviceProperties(&properties, device);
    if (!error) snprintf(name, (size_t)bytes, "%s", properties.name);
    return driver_result(error);
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    struct cudaDeviceProp properties;
    cudaError_t error = cudaGetDeviceProperties(&properties, device);
    if (!error) memcpy(uuid, &properties.uuid, sizeof *uuid);
    return driver_result(error);
}
ALSO("cuDeviceGetUuid", "cuDeviceGetUuid_v2");

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device)
{
    struct cudaDeviceProp properties;
    cudaError_t error = cudaGetDeviceProperties(&properties, device);
    if (!error) *bytes = properties.totalGlobalMem;
    return driver_result(error);
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    return driver_result(cudaDeviceGetAttribute(value, (enum cudaDeviceAttr)attribute, device));
}

CUresult cuDeviceGetPCIBusId(char *id, int bytes, CUdevice device)
{
    return driver_result(cudaDeviceGetPCIBusId(id, bytes, device));
}

CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *id)
{
    return driver_result(cudaDeviceGetByPCIBusId(device, id));
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    return driver_result(cudaDeviceCanAccessPeer(can, device, peer));
}

/* ---- Contexts ---- */

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    const CUresult result = check_device(device);
    if (result || !context) return result ? result : CUDA_ERROR_INVALID_VALUE;
    contexts[device].references++;
    *context = &contexts[device];
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    const CUresult result = check_device(device);
    if (!result) contexts[device].references--;
    return result;
}
ALSO("cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxRelease_v2");

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
    const CUresult result = check_device(device);
    if (result) return result;
    if (flags) *flags = 0;
    if (active) *active = contexts[device].references > 0 || hostcuda_current_device() == device;
    return CUDA_SUCCESS;
}

static thread_local std::vector<int> pushed; /* devices that were current before the current one; -1: none */

CUresult cuCtxGetCurrent(CUcontext *context)
{
    if (!context) return CUDA_ERROR_INVALID_VALUE;
    *context = context_of(hostcuda_current_device());
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    hostcuda_set_current_device(device_of(context));
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext context)
{
    if (!context) return CUDA_ERROR_INVALID_VALUE;
    pushed.push_back(hostcuda_current_device());
    hostcuda_set_current_device(device_of(context));
    return CUDA_SUCCESS;
}
ALSO("cuCtxPushCurrent", "cuCtxPushCurrent_v2");

CUresult cuCtxPopCurrent(CUcontext *context)
{
    if (hostcuda_current_device() < 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (context) *context = context_of(hostcuda_current_device());
    hostcuda_set_current_device(pushed.empty() ? -1 : pushed.back());
    if (!pushed.empty()) pushed.pop_back();
    return CUDA_SUCCESS;
}
ALSO("cuCtxPopCurrent", "cuCtxPopCurrent_v2");

CUresult cuCtxGetDevice(CUdevice *device)
{
    if (hostcuda_current_device() < 0) return CUDA_ERROR_INVALID_CONTEXT;
    *device = hostcuda_current_device();
    return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
    return IN_CONTEXT(cudaDeviceSynchronize());
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    return IN_CONTEXT(cudaDeviceGetStreamPriorityRange(least, greatest));
}

/* ---- Streams ---- */

CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
    return IN_CONTEXT(cudaStreamCreateWithFlags(stream, flags));
}

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
    return IN_CONTEXT(cudaStreamCreateWithPriority(stream, flags, priority));
}

CUresult cuStreamDestroy(CUstream stream)
{
    return driver_result(cudaStreamDestroy(stream));
}
ALSO("cuStreamDestroy", "cuStreamDestroy_v2");

CUresult cuStreamSynchronize(CUstream stream)
{
    return driver_result(cudaStreamSynchronize(stream));
}

CUresult cuStreamQuery(CUstream stream)
{
    const last_error_kept kept;
    return driver_result(cudaStreamQuery(stream));
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    return driver_result(cudaStreamWaitEvent(stream, event, flags));
}

/* A default stream's handle means the current device's, if there is one. */
CUresult cuStreamGetCtx(CUstream stream, CUcontext *context)
{
    int device;
    if ((uintptr_t)stream <= 2 && hostcuda_current_device() < 0) return CUDA_ERROR_INVALID_CONTEXT;
    cudaError_t error = cudaStreamGetDevice(stream, &device);
    if (!error) *context = context_of(device);
    return driver_result(error);
}

CUresult cuStreamGetFlags(CUstream stream, unsigned *flags)
{
    return driver_result(cudaStreamGetFlags(stream, flags));
}

CUresult cuStreamGetPriority(CUstream stream, int *priority)
{
    return driver_result(cudaStreamGetPriority(stream, priority));
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    enum cudaStreamCaptureStatus found;
    cudaError_t error = cudaStreamIsCapturing(stream, &found);
    if (!error) *status = (CUstreamCaptureStatus)found;
    return driver_result(error);
}

CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                                const CUgraphNode **dependencies, const CUgraphEdgeData **edges, size_t *count)
{
    enum cudaStreamCaptureStatus found;
    unsigned long long number = 0;
    cudaError_t error = cudaStreamGetCaptureInfo(stream, &found, &number, graph, (const cudaGraphNode_t **)dependencies,
                                                 (const cudaGraphEdgeData **)edges, count);
    if (error) return driver_result(error);
    if (status) *status = (CUstreamCaptureStatus)found;
    if (id) *id = number;
    return CUDA_SUCCESS;
}

extern "C" CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                                              CUgraph *graph, const CUgraphNode **dependencies, size_t *count)
{
    return cuStreamGetCaptureInfo(stream, status, id, graph, dependencies, NULL, count);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    return driver_result(cudaThreadExchangeStreamCaptureMode((enum cudaStreamCaptureMode *)mode));
}

CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned)
{
    return driver_result(hostcuda_write_value(stream, (void *)at, value, 4));
}
ALSO("cuStreamWriteValue32", "cuStreamWriteValue32_v2");

CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr at, cuuint64_t value, unsigned)
{
    return driver_result(hostcuda_write_value(stream, (void *)at, value, 8));
}
ALSO("cuStreamWriteValue64", "cuStreamWriteValue64_v2");

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *argument)
{
    return driver_result(cudaLaunchHostFunc(stream, function, argument));
}

/* ---- Events ---- */

CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    return IN_CONTEXT(cudaEventCreateWithFlags(event, flags));
}

CUresult cuEventDestroy(CUevent event)
{
    return driver_result(cudaEventDestroy(event));
}
ALSO("cuEventDestroy", "cuEventDestroy_v2");

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    return driver_result(cudaEventRecord(event, stream));
}

CUresult cuEventQuery(CUevent event)
{
    const last_error_kept kept;
    return driver_result(cudaEventQuery(event));
}

CUresult cuEventSynchronize(CUevent event)
{
    return driver_result(cudaEventSynchronize(event));
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent begin, CUevent end)
{
    const last_error_kept kept;
    return driver_result(cudaEventElapsedTime(milliseconds, begin, end));
}
ALSO("cuEventElapsedTime", "cuEventElapsedTime_v2");

/* ---- Memory ---- */

CUresult cuMemGetInfo(size_t *free, size_t *total)
{
    return IN_CONTEXT(cudaMemGetInfo(free, total));
}

CUresult cuMemAlloc(CUdeviceptr *at, size_t bytes)
{
    if (!at || !bytes) return CUDA_ERROR_INVALID_VALUE;
    return IN_CONTEXT(cudaMalloc((void **)at, bytes));
}

CUresult cuMemFree(CUdeviceptr at)
{
    return driver_result(cudaFree((void *)at));
}

CUresult cuMemHostAlloc(void **at, size_t bytes, unsigned flags)
{
    return IN_CONTEXT(cudaHostAlloc(at, bytes, flags));
}

CUresult cuMemAllocHost(void **at, size_t bytes)
{
    return cuMemHostAlloc(at, bytes, 0);
}

CUresult cuMemFreeHost(void *at)
{
    return driver_result(cudaFreeHost(at));
}

CUresult cuMemHostRegister(void *at, size_t bytes, unsigned flags)
{
    return IN_CONTEXT(cudaHostRegister(at, bytes, flags));
}
ALSO("cuMemHostRegister", "cuMemHostRegister_v2");

CUresult cuMemHostUnregister(void *at)
{
    return driver_result(cudaHostUnregister(at));
}

CUresult cuMemHostGetDevicePointer(CUdeviceptr *device, void *host, unsigned flags)
{
    return driver_result(cudaHostGetDevicePointer((void **)device, host, flags));
}

CUresult cuMemGetAddressRange(CUdeviceptr *begin, size_t *bytes, CUdeviceptr at)
{
    return driver_result(hostcuda_find_allocation((const void *)at, (void **)begin, bytes));
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return driver_result(cudaMemcpyAsync((void *)to, (const void *)from, bytes, cudaMemcpyDefault, stream));
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return driver_result(cudaMemcpyAsync((void *)to, (const void *)from, bytes, cudaMemcpyDeviceToDevice, stream));
}

CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return driver_result(cudaMemcpyAsync(to, (const void *)from, bytes, cudaMemcpyDeviceToHost, stream));
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    return driver_result(cudaMemcpyAsync((void *)to, from, bytes, cudaMemcpyHostToDevice, stream));
}

CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t bytes)
{
    return driver_result(cudaMemcpy(to, (const void *)from, bytes, cudaMemcpyDeviceToHost));
}

CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t bytes)
{
    return driver_result(cudaMemcpy((void *)to, from, bytes, cudaMemcpyHostToDevice));
}

CUresult cuMemsetD8(CUdeviceptr at, unsigned char value, size_t bytes)
{
    return driver_result(cudaMemset((void *)at, value, bytes));
}

CUresult cuMemsetD8Async(CUdeviceptr at, unsigned char value, size_t bytes, CUstream stream)
{
    return driver_result(cudaMemsetAsync((void *)at, value, bytes, stream));
}

CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr at)
{
    struct cudaPointerAttributes p;
    void *begin = NULL;
    size_t bytes = 0;
    if (!value) return CUDA_ERROR_INVALID_VALUE;
    if (hostcuda_find_allocation((const void *)at, &begin, &bytes)) return CUDA_ERROR_INVALID_VALUE;
    cudaPointerGetAttributes(&p, (const void *)at);
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: *(CUcontext *)value = context_of(p.device); return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)value = p.type == cudaMemoryTypeHost ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *(CUdeviceptr *)value = at; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (!p.hostPointer) return CUDA_ERROR_INVALID_VALUE;
        *(void **)value = p.hostPointer;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: *(unsigned *)value = p.type == cudaMemoryTypeManaged; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)value = p.device; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: *(void **)value = begin; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: *(size_t *)value = bytes; return CUDA_SUCCESS;
    }
    const std::string name = "cuPointerGetAttribute of attribute " + std::to_string(attribute);
    return driver_result(hostcuda_not_supported(name.c_str()));
}

/* Answers as the real driver does: attributes that an unknown address does not have are zero. */
CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute *attributes, void **values, CUdeviceptr at)
{
    for (unsigned i = 0; i < count; i++) {
        const CUresult result = cuPointerGetAttribute(values[i], attributes[i], at);
        const bool word = attributes[i] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE ||
                          attributes[i] == CU_POINTER_ATTRIBUTE_IS_MANAGED ||
                          attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL;
        if (result == CUDA_ERROR_INVALID_VALUE)
            memset(values[i], 0, word ? 4 : 8);
        else if (result)
            return result;
    }
    return CUDA_SUCCESS;
}

/* ---- Kernels ---- */

struct CUmod_st {
    char unused;
};

static bool is_image(const void *image)
{
    uint32_t magic;
    if (!strncmp((const char *)image, "hostcuda", 8)) return true;
    memcpy(&magic, image, sizeof magic);
    const bool binary = magic == 0xba55ed50 || magic == 0x466243b1 || !memcmp(image, "\177ELF", 4);
    return binary || !strncmp((const char *)image, "//", 2) || !strncmp((const char *)image, ".version", 8);
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    if (hostcuda_current_device() < 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (!module || !image) return CUDA_ERROR_INVALID_VALUE;
    if (!is_image(image)) return CUDA_ERROR_INVALID_IMAGE;
    *module = new CUmod_st();
    return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module)
{
    delete module;
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    if (!function || !module || !name) return CUDA_ERROR_INVALID_VALUE;
    *function = (CUfunction)hostcuda_find_kernel(name);
    return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void **arguments,
                        void **extra)
{
    if (extra) return driver_result(hostcuda_not_supported("cuLaunchKernel with its last argument"));
    return IN_CONTEXT(hostcuda_launch_kernel((const hostcuda_function *)function, {grid_x, grid_y, grid_z},
                                             {block_x, block_y, block_z}, shared, stream, arguments));
}
