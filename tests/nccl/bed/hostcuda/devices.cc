/* Devices, their properties, errors, and the driver's functions by name. */
#include "tests/cuda_emulated/streams.h"
#include "tests/nccl/bed/hostcuda/runtime.h"

#include <dlfcn.h>
#include <stdio.h>

const struct emulated_rules emulated_rules = {"HOSTCUDA_DEVICES", "HOSTCUDA_MEMORY", NULL, 8, 4ull << 30, false,
                                              163 << 10};

void emulated_forbidden(const char *)
{
}

void emulated_stream_ends()
{
}

enum { CUDA_VERSION = 13000 };

/* ---- The driver ---- */

/* A real runtime loads the driver itself; what looks for libcuda.so.1 in the process then finds it. */
static void *driver;
__attribute__((constructor)) static void load_driver()
{
    driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!driver) fprintf(stderr, "hostcuda: %s; let LD_LIBRARY_PATH name the folder of libcudart.so.13\n", dlerror());
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned version,
                                             unsigned long long flags, enum cudaDriverEntryPointQueryResult *result)
{
    typedef int look_up(const char *, void **, int, uint64_t, int *);
    look_up *by_name = driver ? (look_up *)dlsym(driver, "cuGetProcAddress_v2") : NULL;
    int found = cudaDriverEntryPointSymbolNotFound;
    if (!by_name) return emulated_error(cudaErrorInsufficientDriver);
    const int error = by_name(symbol, function, (int)version, flags, &found);
    if (result) *result = (enum cudaDriverEntryPointQueryResult)found;
    return !error || result ? cudaSuccess : emulated_error((cudaError_t)error);
}

cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *result)
{
    return cudaGetDriverEntryPointByVersion(symbol, function, CUDA_VERSION, flags, result);
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = CUDA_VERSION;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDA_VERSION;
    return cudaSuccess;
}

/* ---- Errors ---- */

const char *cudaGetErrorName(cudaError_t error)
{
#define NAME(name, number, text)                                                                                       \
    case name: return #name;
    switch (error) {
        HOSTCUDA_ERRORS(NAME)
    }
    return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error)
{
#define TEXT(name, number, text)                                                                                       \
    case name: return text;
    switch (error) {
        HOSTCUDA_ERRORS(TEXT)
    }
    return "unrecognized error code";
}

cudaError_t hostcuda_exchange_last_error(cudaError_t error)
{
    return emulated_exchange_last_error(error);
}

/* ---- Properties: no number by which programs divide is zero ---- */

static bool is_device(int device)
{
    int count;
    return !cudaGetDeviceCount(&count) && device >= 0 && device < count;
}

enum {
    THREADS_MOST = 1024,
    GRID_X_MOST = 0x7fffffff,
    GRID_MOST = 65535,
    SHARED = 48 << 10,
    SHARED_ALL = 164 << 10,
    REGISTERS = 65536
};

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device)
{
    if (!is_device(device)) return emulated_error(cudaErrorInvalidDevice);
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "memory of the host");
    snprintf(p->uuid.bytes, sizeof p->uuid.bytes, "hostcuda %d", device % 100);
    p->totalGlobalMem = emulated_memory();
    p->sharedMemPerBlock = SHARED, p->sharedMemPerBlockOptin = emulated_rules.shared_bytes,
    p->sharedMemPerMultiprocessor = SHARED_ALL;
    p->reservedSharedMemPerBlock = 1 << 10;
    p->regsPerBlock = p->regsPerMultiprocessor = REGISTERS;
    p->warpSize = 32;
    p->memPitch = 0x7fffffff;
    p->maxThreadsPerBlock = p->maxThreadsDim[0] = p->maxThreadsDim[1] = THREADS_MOST, p->maxThreadsDim[2] = 64;
    p->maxGridSize[0] = GRID_X_MOST, p->maxGridSize[1] = p->maxGridSize[2] = GRID_MOST;
    p->totalConstMem = 64 << 10;
    p->major = 8, p->minor = 0;
    p->textureAlignment = 512, p->texturePitchAlignment = 32, p->surfaceAlignment = 512;
    p->multiProcessorCount = 4, p->maxThreadsPerMultiProcessor = 2048, p->maxBlocksPerMultiProcessor = 32;
    p->canMapHostMemory = p->concurrentKernels = p->unifiedAddressing = p->streamPrioritiesSupported = 1;
    p->managedMemory = p->canUseHostPointerForRegisteredMem = p->hostRegisterSupported = 1;
    p->asyncEngineCount = 2;
    p->pciBusID = device + 1;
    p->memoryBusWidth = 256, p->l2CacheSize = 4 << 20;
    return emulated_sticky();
}

static int attribute_value(const struct cudaDeviceProp *p, int attribute)
{
    switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: return p->maxThreadsPerBlock;
    case cudaDevAttrMaxBlockDimX: return p->maxThreadsDim[0];
    case cudaDevAttrMaxBlockDimY: return p->maxThreadsDim[1];
    case cudaDevAttrMaxBlockDimZ: return p->maxThreadsDim[2];
    case cudaDevAttrMaxGridDimX: return p->maxGridSize[0];
    case cudaDevAttrMaxGridDimY: return p->maxGridSize[1];
    case cudaDevAttrMaxGridDimZ: return p->maxGridSize[2];
    case cudaDevAttrMaxSharedMemoryPerBlock: return (int)p->sharedMemPerBlock;
    case cudaDevAttrTotalConstantMemory: return (int)p->totalConstMem;
    case cudaDevAttrWarpSize: return p->warpSize;
    case cudaDevAttrMaxPitch: return (int)p->memPitch;
    case cudaDevAttrMaxRegistersPerBlock: return p->regsPerBlock;
    case cudaDevAttrClockRate: return 1000000; /* kHz */
    case cudaDevAttrTextureAlignment: return (int)p->textureAlignment;
    case cudaDevAttrMultiProcessorCount: return p->multiProcessorCount;
    case cudaDevAttrCanMapHostMemory: return p->canMapHostMemory;
    case cudaDevAttrConcurrentKernels: return p->concurrentKernels;
    case cudaDevAttrPciBusId: return p->pciBusID;
    case cudaDevAttrPciDeviceId: return p->pciDeviceID;
    case cudaDevAttrMemoryClockRate: return 1000000;
    case cudaDevAttrGlobalMemoryBusWidth: return p->memoryBusWidth;
    case cudaDevAttrL2CacheSize: return p->l2CacheSize;
    case cudaDevAttrMaxThreadsPerMultiProcessor: return p->maxThreadsPerMultiProcessor;
    case cudaDevAttrAsyncEngineCount: return p->asyncEngineCount;
    case cudaDevAttrUnifiedAddressing: return p->unifiedAddressing;
    case cudaDevAttrPciDomainId: return p->pciDomainID;
    case cudaDevAttrTexturePitchAlignment: return (int)p->texturePitchAlignment;
    case cudaDevAttrComputeCapabilityMajor: return p->major;
    case cudaDevAttrComputeCapabilityMinor: return p->minor;
    case cudaDevAttrStreamPrioritiesSupported: return p->streamPrioritiesSupported;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: return (int)p->sharedMemPerMultiprocessor;
    case cudaDevAttrMaxRegistersPerMultiprocessor: return p->regsPerMultiprocessor;
    case cudaDevAttrManagedMemory: return p->managedMemory;
    case cudaDevAttrCanUseHostPointerForRegisteredMem: return p->canUseHostPointerForRegisteredMem;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: return (int)p->sharedMemPerBlockOptin;
    case cudaDevAttrHostRegisterSupported: return p->hostRegisterSupported;
    case cudaDevAttrMaxBlocksPerMultiprocessor: return p->maxBlocksPerMultiProcessor;
    case cudaDevAttrReservedSharedMemoryPerBlock: return (int)p->reservedSharedMemPerBlock;
    }
    return 0; /* the others say which further features a device has: none */
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    struct cudaDeviceProp properties;
    if (!value || (int)attribute < 1 || (int)attribute > 160) return emulated_error(cudaErrorInvalidValue);
    const cudaError_t error = cudaGetDeviceProperties(&properties, device);
    if (!error) *value = attribute_value(&properties, (int)attribute);
    return error;
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int bytes, int device)
{
    if (!is_device(device)) return emulated_error(cudaErrorInvalidDevice);
    if (!id || bytes < 13) return emulated_error(cudaErrorInvalidValue);
    snprintf(id, (size_t)bytes, "0000:%02x:00.0", (unsigned)device + 1);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *id)
{
    unsigned domain, bus;
    if (!device || !id || sscanf(id, "%x:%x", &domain, &bus) != 2) return emulated_error(cudaErrorInvalidValue);
    if (domain || !is_device((int)bus - 1)) return emulated_error(cudaErrorInvalidDevice);
    *device = (int)bus - 1;
    return cudaSuccess;
}

/* ---- The current device and its peers ---- */

cudaError_t cudaGetDevice(int *device)
{
    *device = emulated_device();
    return emulated_sticky();
}

int hostcuda_current_device(void)
{
    return emulated_chosen_device();
}

void hostcuda_set_current_device(int device)
{
    emulated_choose_device(device);
}

cudaError_t cudaDeviceSynchronize(void)
{
    emulated_waits++;
    for (auto &s : emulated_streams_of(emulated_device()))
        if (emulated_recorder *recorder = s->recorder) return emulated_error(recorder->refuse());
    if (cudaError_t error = emulated_unsafe_call()) return emulated_error(error);
    emulated_wait_for_device(emulated_device());
    return emulated_sticky();
}

cudaError_t cudaDeviceReset(void)
{
    return cudaDeviceSynchronize();
}

static std::atomic<unsigned> device_flags[EMULATED_DEVICES_MOST];

cudaError_t cudaSetDeviceFlags(unsigned flags)
{
    device_flags[emulated_device()] = flags;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceFlags(unsigned *flags)
{
    *flags = device_flags[emulated_device()];
    return cudaSuccess;
}

static std::atomic<bool> peers[EMULATED_DEVICES_MOST][EMULATED_DEVICES_MOST];

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    if (!is_device(device) || !is_device(peer)) return emulated_error(cudaErrorInvalidDevice);
    *can = device != peer;
    return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned)
{
    if (!is_device(peer) || peer == emulated_device()) return emulated_error(cudaErrorInvalidDevice);
    if (peers[emulated_device()][peer].exchange(true)) return emulated_error(cudaErrorPeerAccessAlreadyEnabled);
    return cudaSuccess;
}

cudaError_t cudaDeviceDisablePeerAccess(int peer)
{
    if (!is_device(peer)) return emulated_error(cudaErrorInvalidDevice);
    if (!peers[emulated_device()][peer].exchange(false)) return emulated_error(cudaErrorPeerAccessNotEnabled);
    return cudaSuccess;
}

/* ---- Profilers: none listens ---- */

cudaError_t cudaProfilerStart(void)
{
    return cudaSuccess;
}

cudaError_t cudaProfilerStop(void)
{
    return cudaSuccess;
}
