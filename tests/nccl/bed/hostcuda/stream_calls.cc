/* The calls about streams and events that this project's own programs do not make. */
#include "tests/cuda_emulated/streams.h"
#include "tests/nccl/bed/hostcuda/runtime.h"

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    return emulated_create_stream(stream, cudaStreamDefault, 0);
}

cudaError_t cudaStreamQuery(cudaStream_t handle)
{
    if (emulated_sticky()) return emulated_sticky();
    cudaStream_t s = emulated_stream(handle);
    if (!s) return emulated_error(cudaErrorMemoryAllocation);
    if (emulated_recorder *recorder = s->recorder) return emulated_error(recorder->refuse());
    if (cudaError_t error = emulated_unsafe_call()) return emulated_error(error);
    if (s->done != s->asked) return emulated_error(cudaErrorNotReady);
    order_after(&s->order);
    return cudaSuccess;
}

/* Tells a property of the stream that a handle stands for. */
template <class T, class P> static cudaError_t tell(cudaStream_t handle, T *out, P CUstream_st::*property)
{
    cudaStream_t s = emulated_stream(handle);
    if (!s || !out) return emulated_error(cudaErrorInvalidValue);
    *out = (T)(s->*property);
    return cudaSuccess;
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned *flags)
{
    return tell(stream, flags, &CUstream_st::flags);
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *device)
{
    return tell(stream, device, &CUstream_st::device);
}

cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long *id)
{
    return tell(stream, id, &CUstream_st::number);
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void *argument, unsigned flags)
{
    if (!callback || flags) return emulated_error(cudaErrorInvalidValue);
    return emulated_enqueue(stream, false, [=] { callback(stream, emulated_sticky(), argument); });
}

cudaError_t hostcuda_write_value(cudaStream_t stream, void *at, uint64_t value, int bytes)
{
    if ((uintptr_t)at % (unsigned)bytes) return emulated_error(cudaErrorInvalidValue);
    return emulated_enqueue(stream, true, [=] {
        if (bytes == 8)
            __atomic_store_n((uint64_t *)at, value, __ATOMIC_RELEASE);
        else
            __atomic_store_n((uint32_t *)at, (uint32_t)value, __ATOMIC_RELEASE);
    });
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t handle, unsigned flags)
{
    cudaStream_t s = emulated_stream(handle);
    if (!event || !s) return emulated_error(cudaErrorInvalidResourceHandle);
    if (!s->recorder || !(flags & cudaEventRecordExternal)) return cudaEventRecord(event, handle);
    return hostcuda_not_supported("cudaEventRecordWithFlags(cudaEventRecordExternal) under capture");
}
