/* Kernels: what a program's compiler registers by name, and the host's forms that run in their place. */
#include "tests/cuda_emulated/limits.h"
#include "tests/cuda_emulated/streams.h"
#include "tests/nccl/bed/hostcuda/runtime.h"

#include <dlfcn.h>
#include <mutex>
#include <set>
#include <stdio.h>
#include <string>
#include <unordered_map>

enum { ARGUMENT_ALIGNMENT = 16, THREADS_MOST = 1024 };

struct hostcuda_function {
    std::string name;
    hostcuda_kernel *run;
    const size_t *argument_bytes;
};

namespace {
struct form {
    std::string name; /* without the '*' */
    bool anywhere;    /* in the kernel's name */
    hostcuda_kernel *run;
    const size_t *argument_bytes;
};
/* Never freed: programs unregister their kernels when the process ends. */
struct registry {
    std::mutex lock;
    std::vector<form> forms;
    std::unordered_map<const void *, const char *> stubs; /* a program's functions, by which it launches its kernels */
    std::unordered_map<std::string, std::unique_ptr<hostcuda_function>> found;
    std::set<std::string> said; /* names of which was said that they do not exist here */
};
} // namespace

static registry &all()
{
    static registry *it = new registry;
    return *it;
}

static bool first_time(const char *name)
{
    std::lock_guard<std::mutex> guard(all().lock);
    return all().said.insert(name).second;
}

cudaError_t hostcuda_not_supported(const char *name)
{
    if (first_time(name)) fprintf(stderr, "hostcuda: %s is not supported on the host's memory\n", name);
    return cudaErrorNotSupported;
}

/* ---- Finding ---- */

void hostcuda_register_kernel(const char *name, hostcuda_kernel *kernel, const size_t *argument_bytes)
{
    std::lock_guard<std::mutex> guard(all().lock);
    all().forms.push_back({name + (name[0] == '*'), name[0] == '*', kernel, argument_bytes});
}

/* HOSTCUDA_KERNELS names libraries, separated by colons. */
static void load_kernels()
{
    const char *setting = getenv("HOSTCUDA_KERNELS");
    std::string left = setting ? setting : "";
    while (!left.empty()) {
        const size_t end = left.find(':');
        const std::string path = left.substr(0, end);
        if (!path.empty() && !dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL))
            fprintf(stderr, "hostcuda: HOSTCUDA_KERNELS: %s\n", dlerror());
        left = end == std::string::npos ? "" : left.substr(end + 1);
    }
}

/* The exact name wins over a part of it. */
static const form *form_of(const std::string &name)
{
    const form *partly = NULL;
    for (const form &f : all().forms) {
        if (!f.anywhere && f.name == name) return &f;
        if (f.anywhere && name.find(f.name) != std::string::npos) partly = &f;
    }
    return partly;
}

const hostcuda_function *hostcuda_find_kernel(const char *name)
{
    static std::once_flag loaded;
    std::call_once(loaded, load_kernels);
    {
        std::lock_guard<std::mutex> guard(all().lock);
        auto known = all().found.find(name);
        if (known != all().found.end()) return known->second.get();
        if (const form *f = form_of(name)) {
            auto &made = all().found[name];
            made.reset(new hostcuda_function{name, f->run, f->argument_bytes});
            return made.get();
        }
    }
    if (first_time(name))
        fprintf(stderr,
                "hostcuda: kernel %s has no form for the host; a library that HOSTCUDA_KERNELS names can have one\n",
                name);
    return NULL;
}

static const char *name_of(const void *stub)
{
    std::lock_guard<std::mutex> guard(all().lock);
    auto found = all().stubs.find(stub);
    return found == all().stubs.end() ? NULL : found->second;
}

/* ---- Launching ---- */

static uint64_t number_of(const std::string &name)
{
    return std::hash<std::string>()(name);
}

cudaError_t hostcuda_launch_kernel(const hostcuda_function *function, dim3 grid, dim3 block, size_t shared,
                                   cudaStream_t stream, void **arguments)
{
    if (cudaError_t error = emulated_check_launch(number_of(function->name), {grid.x, grid.y, grid.z},
                                                  {block.x, block.y, block.z}, shared))
        return error;
    cudaStream_t s = emulated_stream(stream);
    if (!s || s->device != emulated_device()) return emulated_error(cudaErrorInvalidResourceHandle);
    size_t bytes = 0, count = 0;
    for (const size_t *b = function->argument_bytes; *b; b++, count++)
        bytes += (*b + ARGUMENT_ALIGNMENT - 1) / ARGUMENT_ALIGNMENT * ARGUMENT_ALIGNMENT;
    if (count && !arguments) return emulated_error(cudaErrorInvalidValue);
    std::shared_ptr<void> kept(aligned_alloc(ARGUMENT_ALIGNMENT, bytes + ARGUMENT_ALIGNMENT), emulated_free);
    std::vector<void *> copies;
    char *to = (char *)kept.get();
    for (size_t i = 0; i < count; i++) {
        copies.push_back(memcpy(to, arguments[i], function->argument_bytes[i]));
        to += (function->argument_bytes[i] + ARGUMENT_ALIGNMENT - 1) / ARGUMENT_ALIGNMENT * ARGUMENT_ALIGNMENT;
    }
    emulated_launches++;
    emulated_load(stream, number_of(function->name), function->name.c_str());
    return emulated_enqueue(stream, true, [=, copies = std::move(copies), kept = std::move(kept)]() mutable {
        const hostcuda_launch launch = {
            function->name.c_str(), {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, shared, copies.data()};
        function->run(&launch);
    });
}

cudaError_t cudaLaunchKernel(const void *stub, dim3 grid, dim3 block, void **arguments, size_t shared,
                             cudaStream_t stream)
{
    const char *name = name_of(stub);
    const hostcuda_function *function = name ? hostcuda_find_kernel(name) : NULL;
    if (!function) return emulated_error(cudaErrorInvalidDeviceFunction);
    return hostcuda_launch_kernel(function, grid, block, shared, stream, arguments);
}

cudaError_t cudaLaunchCooperativeKernel(const void *stub, dim3 grid, dim3 block, void **arguments, size_t shared,
                                        cudaStream_t stream)
{
    return cudaLaunchKernel(stub, grid, block, arguments, shared, stream);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *stub, void **arguments)
{
    if (!config) return emulated_error(cudaErrorInvalidValue);
    return cudaLaunchKernel(stub, config->gridDim, config->blockDim, arguments, config->dynamicSmemBytes,
                            config->stream);
}

/* ---- Attributes: those of a small kernel ---- */

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *stub)
{
    if (!name_of(stub)) return emulated_error(cudaErrorInvalidDeviceFunction);
    memset(attributes, 0, sizeof *attributes);
    attributes->maxThreadsPerBlock = THREADS_MOST;
    attributes->numRegs = 32;
    attributes->ptxVersion = attributes->binaryVersion = 80;
    attributes->maxDynamicSharedSizeBytes = 48 << 10;
    return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *stub, enum cudaFuncAttribute attribute, int value)
{
    const char *name = name_of(stub);
    if (!name) return emulated_error(cudaErrorInvalidDeviceFunction);
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
    return emulated_ask_shared(number_of(name), value);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *stub, int threads, size_t shared)
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, stub, threads, shared, 0);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *stub, int threads, size_t,
                                                                   unsigned)
{
    if (!name_of(stub)) return emulated_error(cudaErrorInvalidDeviceFunction);
    if (!blocks || threads < 1 || threads > THREADS_MOST) return emulated_error(cudaErrorInvalidValue);
    *blocks = 2048 / threads < 32 ? 2048 / threads : 32;
    return cudaSuccess;
}

/* ---- Functions that nvcc's code calls ---- */

struct uint3;
extern "C" {
void **__cudaRegisterFatBinary(void *image);
void __cudaRegisterFatBinaryEnd(void **image);
void __cudaUnregisterFatBinary(void **image);
char __cudaInitModule(void **image);
void __cudaRegisterFunction(void **image, const char *stub, char *function, const char *name, int thread_limit, uint3 *,
                            uint3 *, dim3 *, dim3 *, int *);
void __cudaRegisterVar(void **image, char *stub, char *address, const char *name, int, size_t, int, int);
void __cudaRegisterManagedVar(void **image, void **stub, char *address, const char *name, int, size_t, int, int);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, CUstream_st *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *stub);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                               cudaStream_t stream);
}

void **__cudaRegisterFatBinary(void *)
{
    static void *image;
    return &image;
}

void __cudaRegisterFatBinaryEnd(void **)
{
}

void __cudaUnregisterFatBinary(void **)
{
}

char __cudaInitModule(void **)
{
    return 1;
}

void __cudaRegisterFunction(void **, const char *stub, char *, const char *name, int, uint3 *, uint3 *, dim3 *, dim3 *,
                            int *)
{
    std::lock_guard<std::mutex> guard(all().lock);
    all().stubs[stub] = name;
}

void __cudaRegisterVar(void **, char *, char *, const char *, int, size_t, int, int)
{
}

void __cudaRegisterManagedVar(void **, void **, char *, const char *, int, size_t, int, int)
{
}

namespace {
struct configuration {
    dim3 grid, block;
    size_t shared;
    CUstream_st *stream;
};
} // namespace
static __thread configuration pushed; /* <<<>>> is not nested: its arguments are evaluated before it is pushed */

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, CUstream_st *stream)
{
    pushed = {grid, block, shared, stream};
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
    *grid = pushed.grid, *block = pushed.block, *shared = pushed.shared;
    *(CUstream_st **)stream = pushed.stream;
    return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *stub)
{
    *kernel = (cudaKernel_t)stub;
    return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                               cudaStream_t stream)
{
    return cudaLaunchKernel((const void *)kernel, grid, block, arguments, shared, stream);
}
