/* Memory that programs have in other ways than this project's, and copies between all of it. */
#include "tests/cuda_emulated/streams.h"
#include "tests/nccl/bed/hostcuda/runtime.h"

enum { STAGED_MOST = 64 << 10 }; /* longer copies from memory that is not pinned are waited for */

/* ---- Memory ---- */

cudaError_t cudaMallocManaged(void **at, size_t bytes, unsigned)
{
    return emulated_allocate(at, bytes, EMULATED_MANAGED);
}

cudaError_t cudaMallocHost(void **at, size_t bytes)
{
    return cudaHostAlloc(at, bytes, cudaHostAllocDefault);
}

cudaError_t cudaMallocAsync(void **at, size_t bytes, cudaStream_t)
{
    return emulated_allocate(at, bytes, EMULATED_DEVICE);
}

cudaError_t cudaFreeAsync(void *at, cudaStream_t stream)
{
    if (!at) return emulated_sticky();
    if (emulated_find(at, 1, NULL, NULL) != EMULATED_DEVICE) return emulated_error(cudaErrorInvalidValue);
    return emulated_enqueue(stream, true, [=] { emulated_release(at, EMULATED_DEVICE); });
}

cudaError_t cudaHostRegister(void *at, size_t bytes, unsigned)
{
    if (!at || !bytes) return emulated_error(cudaErrorInvalidValue);
    return emulated_register(at, bytes) ? cudaSuccess : emulated_error(cudaErrorHostMemoryAlreadyRegistered);
}

cudaError_t cudaHostUnregister(void *at)
{
    return emulated_release(at, EMULATED_REGISTERED) ? emulated_error(cudaErrorHostMemoryNotRegistered) : cudaSuccess;
}

cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned)
{
    const emulated_kind kind = emulated_find(host, 1, NULL, NULL);
    if (kind == EMULATED_UNKNOWN || kind == EMULATED_DEVICE) return emulated_error(cudaErrorInvalidValue);
    *device = host;
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *at)
{
    static const enum cudaMemoryType types[] = {cudaMemoryTypeUnregistered, cudaMemoryTypeHost, cudaMemoryTypeDevice,
                                                cudaMemoryTypeManaged, cudaMemoryTypeHost};
    emulated_allocation a = {};
    const emulated_kind kind = emulated_find(at, 1, NULL, &a);
    memset(attributes, 0, sizeof *attributes);
    attributes->type = types[kind];
    attributes->device = kind ? a.device : -2;
    attributes->devicePointer = kind ? (void *)at : NULL;
    attributes->hostPointer = kind != EMULATED_DEVICE ? (void *)at : NULL;
    return cudaSuccess;
}

cudaError_t hostcuda_find_allocation(const void *at, void **begin, size_t *bytes)
{
    const char *first = NULL;
    emulated_allocation a = {};
    if (!emulated_find(at, 1, &first, &a)) return cudaErrorInvalidValue;
    if (begin) *begin = (void *)first;
    if (bytes) *bytes = a.bytes;
    return cudaSuccess;
}

/* ---- Copies ---- */

/* True if the memory may be this end of a copy: if the copy's kind asks for a device's memory, all known memory may;
 * else all but a device's. */
static bool end_is_right(const void *at, size_t bytes, bool device_asked)
{
    const emulated_kind kind = emulated_find(at, bytes, NULL, NULL);
    return device_asked ? kind != EMULATED_UNKNOWN : kind != EMULATED_DEVICE;
}

static bool kind_is_right(const void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    if (kind == cudaMemcpyDefault) return true;
    if ((unsigned)kind > cudaMemcpyDefault) return false;
    return end_is_right(to, bytes, kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice) &&
           end_is_right(from, bytes, kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice);
}

static bool is_captured(cudaStream_t handle)
{
    cudaStream_t s = emulated_stream(handle);
    return s && s->recorder;
}

/* Copies as CUDA does: memory that is not pinned has been read, or written, when the call returns. */
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    if (!bytes) return emulated_sticky();
    if (!to || !from || !kind_is_right(to, from, bytes, kind)) return emulated_error(cudaErrorInvalidValue);
    emulated_copies++;
    const bool captured = is_captured(stream);
    const bool reads_pageable = !captured && !emulated_find(from, bytes, NULL, NULL);
    bool wait = !captured && !emulated_find(to, bytes, NULL, NULL);
    std::shared_ptr<char[]> staged;
    if (reads_pageable && bytes <= STAGED_MOST && !wait) {
        staged.reset((char *)malloc(bytes), emulated_free);
        memcpy(staged.get(), from, bytes);
    }
    wait = wait || (reads_pageable && !staged);
    cudaError_t error = emulated_enqueue(
        stream, true, [=] { emulated_copy_bytes(to, staged ? (const void *)staged.get() : from, bytes); });
    return error || !wait ? error : cudaStreamSynchronize(stream);
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    const bool on_devices = emulated_find(to, bytes, NULL, NULL) == EMULATED_DEVICE &&
                            emulated_find(from, bytes, NULL, NULL) == EMULATED_DEVICE;
    const cudaError_t error = cudaMemcpyAsync(to, from, bytes, kind, NULL);
    return error || on_devices ? error : cudaStreamSynchronize(NULL);
}

cudaError_t cudaMemcpyPeerAsync(void *to, int, const void *from, int, size_t bytes, cudaStream_t stream)
{
    return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}

cudaError_t cudaMemcpyPeer(void *to, int, const void *from, int, size_t bytes)
{
    return cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToDevice);
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    if (!width || !height) return emulated_sticky();
    const size_t to_bytes = to_pitch * (height - 1) + width, from_bytes = from_pitch * (height - 1) + width;
    if (!to || !from || width > to_pitch || width > from_pitch || !kind_is_right(to, from, width, kind))
        return emulated_error(cudaErrorInvalidValue);
    emulated_copies++;
    const bool wait = !is_captured(stream) &&
                      (!emulated_find(to, to_bytes, NULL, NULL) || !emulated_find(from, from_bytes, NULL, NULL));
    cudaError_t error = emulated_enqueue(stream, true, [=] {
        for (size_t row = 0; row < height; row++)
            emulated_copy_bytes((char *)to + row * to_pitch, (const char *)from + row * from_pitch, width);
    });
    return error || !wait ? error : cudaStreamSynchronize(stream);
}

cudaError_t cudaMemsetAsync(void *at, int value, size_t bytes, cudaStream_t stream)
{
    if (!bytes) return emulated_sticky();
    if (!emulated_find(at, bytes, NULL, NULL)) return emulated_error(cudaErrorInvalidValue);
    return emulated_enqueue(stream, true, [=] { emulated_set_bytes(at, value, bytes); });
}

cudaError_t cudaMemset(void *at, int value, size_t bytes)
{
    const bool on_device = emulated_find(at, bytes, NULL, NULL) == EMULATED_DEVICE;
    const cudaError_t error = cudaMemsetAsync(at, value, bytes, NULL);
    return error || on_device ? error : cudaStreamSynchronize(NULL);
}
