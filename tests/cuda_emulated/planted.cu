/* Programs with one planted fault each, and the same programs without it: `planted FAULT` has it, `planted FAULT right`
 * has not. emulated_test.c says what must find each. */
#include <emulated_gpu.h>

#include <atomic>
#include <emulated.h>
#include <stdio.h>
#include <unistd.h>

struct floats {
    float at[256];
};

static float *device_floats(cudaStream_t s, size_t count)
{
    void *at = NULL;
    if (cudaMalloc(&at, count * sizeof(float)) || cudaMemsetAsync(at, 0, count * sizeof(float), s)) exit(2);
    return (float *)at;
}

static float *pinned_floats(size_t count)
{
    void *at = NULL;
    if (cudaHostAlloc(&at, count * sizeof(float), cudaHostAllocDefault)) exit(2);
    for (size_t i = 0; i < count; i++) ((float *)at)[i] = 1;
    return (float *)at;
}

/* ---- Faults inside a block ---- */

static __global__ void sum_block(float *x, bool right)
{
    SLC_SHARED(floats, s);
    s.at[threadIdx.x] = x[threadIdx.x];
    if (right) __syncthreads();
    for (unsigned half = blockDim.x / 2; half; half /= 2) {
        if (threadIdx.x < half) s.at[threadIdx.x] += s.at[threadIdx.x + half];
        __syncthreads();
    }
    if (!threadIdx.x) x[0] = s.at[0];
}

static __global__ void add_between_barriers(float *x, bool right)
{
    SLC_SHARED(floats, s);
    s.at[threadIdx.x] = 0;
    __syncthreads();
    if (right)
        atomicAdd(s.at, 1.0f);
    else
        s.at[0] += 1;
    __syncthreads();
    x[threadIdx.x] = s.at[0];
}

/* Each lane hands its neighbour a number twice, and must not overwrite the first one before it is read. */
static __global__ void hand_on_in_warp(float *x, bool right)
{
    SLC_SHARED(floats, s);
    float sum = 0;
    for (int i = 0; i < 2; i++) {
        s.at[threadIdx.x] = (float)threadIdx.x;
        __syncwarp();
        sum += s.at[(threadIdx.x + 1) % blockDim.x];
        if (right) __syncwarp();
    }
    x[threadIdx.x] = sum;
}

static __global__ void read_past_shared(float *x, bool right)
{
    SLC_SHARED(floats, s);
    s.at[(threadIdx.x + 1) % blockDim.x] = 1;
    __syncthreads();
    const float *at = s.at + threadIdx.x;
    x[threadIdx.x] = at[right ? 0 : 1];
}

static __global__ void wait_for_each_other(float *x, bool right)
{
    if (threadIdx.x < 16 && !right)
        x[0] = __shfl_xor_sync(0xffffffffu, 1.0f, 1);
    else
        __syncthreads();
}

static __global__ void shuffle_at_two_places(float *x, bool right)
{
    const float own = (float)threadIdx.x;
    if (threadIdx.x < 16 || right)
        x[threadIdx.x] = __shfl_xor_sync(0xffffffffu, own, 1);
    else
        x[threadIdx.x] = __shfl_xor_sync(0xffffffffu, own, 1);
}

static __global__ void shuffle_with_ended(float *x, bool right)
{
    if (threadIdx.x >= 16) return;
    x[threadIdx.x] = __shfl_xor_sync(right ? 0xffffu : 0xffffffffu, 1.0f, 1);
}

static __global__ void different_barriers(float *x, bool right)
{
    if (threadIdx.x < 128 || right) {
        __syncthreads();
    } else {
        x[threadIdx.x] = 1;
        __syncthreads();
    }
}

static __global__ void copy_asynchronously(float *x, bool right)
{
    SLC_SHARED(floats, s);
    cp_async_16(&s.at[threadIdx.x * 4], x + threadIdx.x * 4);
    cp_async_commit();
    if (right) cp_async_wait_but<0>();
    x[512 + threadIdx.x] = s.at[threadIdx.x * 4];
}

static __global__ void copy_misaligned(float *x, bool right)
{
    SLC_SHARED(floats, s);
    cp_async_16(&s.at[threadIdx.x * 4], x + threadIdx.x * 4 + (right ? 0 : 1));
    cp_async_commit();
    cp_async_wait_but<0>();
}

static __global__ void load_misaligned_rows(float *x, bool right)
{
    SLC_SHARED(floats, s);
    s.at[threadIdx.x] = s.at[threadIdx.x + 32] = 1;
    __syncwarp();
    uint32_t out[4];
    ldmatrix_x4<false>(out, s.at + threadIdx.x % 8 * 4 + (right ? 0 : 1));
    x[threadIdx.x] = (float)out[0];
}

/* ---- Faults with global memory ---- */

static __global__ void read_past_end(float *x, bool right)
{
    unsigned char *bytes = (unsigned char *)x;
    if (!threadIdx.x) x[0] = bytes[4 * 1001 - (right ? 1 : 0)]; /* 1001 floats: not whole pages, nor whole words */
}

static __global__ void load_unaligned_vectors(float *x, bool right)
{
    float4 v = *(const float4 *)(x + 4 * threadIdx.x + (right ? 0 : 1));
    x[512 + threadIdx.x] = v.x;
}

static __global__ void add_to_one_place(float *x, bool right)
{
    if (threadIdx.x != blockIdx.x) return;
    if (right)
        atomicAdd(x, 1.0f);
    else
        x[0] += 1;
}

static __global__ void scale(unsigned count, float factor, float *x)
{
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) x[i] *= factor;
}

static __global__ void double_all(float *x)
{
    x[threadIdx.x] *= 2;
}

/* ---- Programs ---- */

enum { COUNT = 1001, MANY = 1 << 16 };

static void launch(cudaStream_t s, void (*kernel)(float *, bool), unsigned blocks, unsigned threads, bool right)
{
    float *x = device_floats(s, COUNT);
    GPU_QUEUE(kernel, dim3(blocks), dim3(threads), sizeof(floats), s, x, right);
    if (cudaGetLastError() || cudaStreamSynchronize(s)) exit(2);
    cudaFree(x);
}

static void miss_an_event(cudaStream_t s, bool right)
{
    cudaStream_t other;
    cudaEvent_t event;
    if (cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking)) exit(2);
    if (cudaEventCreateWithFlags(&event, cudaEventDisableTiming)) exit(2);
    float *x = device_floats(s, MANY);
    for (int i = 0; i < 4; i++) {
        GPU_QUEUE(scale, dim3(8), dim3(64), 0, s, (unsigned)MANY / 16, 3.0f, x);
        cudaEventRecord(event, s);
        if (right) cudaStreamWaitEvent(other, event, 0);
        GPU_QUEUE(scale, dim3(8), dim3(32), 0, other, (unsigned)MANY / 16, 0.5f, x);
        cudaEventRecord(event, other);
        if (right) cudaStreamWaitEvent(s, event, 0);
    }
    cudaStreamSynchronize(s);
    cudaStreamDestroy(other);
    cudaEventDestroy(event);
    cudaFree(x);
}

static void reuse_host_memory(cudaStream_t s, bool right)
{
    float *x = device_floats(s, COUNT), *host = pinned_floats(COUNT);
    cudaMemcpyAsync(x, host, COUNT * sizeof *x, cudaMemcpyHostToDevice, s);
    if (right) cudaStreamSynchronize(s);
    host[5] = 2;
    GPU_QUEUE(scale, dim3(1), dim3(64), 0, s, (unsigned)COUNT, 2.0f, x);
    cudaStreamSynchronize(s);
    cudaFree(x);
    cudaFreeHost(host);
}

static void copy_from_pageable(cudaStream_t s, bool right)
{
    float *x = device_floats(s, COUNT), *pinned = pinned_floats(COUNT), pageable[4] = {};
    cudaMemcpyAsync(x, right ? pinned : pageable, sizeof pageable, cudaMemcpyDefault, s);
    cudaStreamSynchronize(s);
    cudaFree(x);
    cudaFreeHost(pinned);
}

static void read_from_host(cudaStream_t s, bool right)
{
    float *x = device_floats(s, COUNT), *host = pinned_floats(COUNT);
    cudaMemcpyAsync(host, x, COUNT * sizeof *x, cudaMemcpyDeviceToHost, s);
    cudaStreamSynchronize(s);
    printf("%g\n", (double)*(volatile float *)(right ? host : x));
    cudaFree(x);
    cudaFreeHost(host);
}

static void ask_for_too_much_shared(cudaStream_t s, bool right)
{
    const size_t bytes = 100 << 10;
    float *x = device_floats(s, COUNT);
    if (right) cudaFuncSetAttribute(sum_block, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    GPU_QUEUE(sum_block, dim3(1), dim3(256), bytes, s, x, true);
    cudaError_t error = cudaGetLastError();
    if (error) fprintf(stderr, "launch: %s\n", cudaGetErrorString(error));
    cudaStreamSynchronize(s);
    cudaFree(x);
    if (error) exit(3);
}

/* Waits until the other rank, which is a later call of this program's, has come. */
static void wait_for_peer(void *came)
{
    while (!((std::atomic<bool> *)came)->load()) usleep(1000);
}

/* Launches a kernel for the first time while a stream runs a collective. That makes the host wait for the collective,
 * but the other rank waits for work that the host would give only afterwards. */
static void load_beside_collective(cudaStream_t s, bool right)
{
    static std::atomic<bool> came{false};
    cudaStream_t other;
    if (cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking)) exit(2);
    float *x = device_floats(s, COUNT);
    setenv("SLUICE_EMULATED_PATIENCE", "1", 1);
    if (right) GPU_QUEUE(double_all, dim3(1), dim3(32), 0, s, x);
    if (emulated_launch_collective(other, wait_for_peer, &came, "all-reduce of 7 elements", 1)) exit(2);
    GPU_QUEUE(double_all, dim3(1), dim3(32), 0, s, x);
    came = true;
    cudaStreamSynchronize(other);
    cudaStreamDestroy(other);
    cudaFree(x);
}

/* load_after_collective loads a kernel as load_beside_collective does, but the other rank has come in time. That is
 * chance, and SLUICE_EMULATED_LOADED=1 stops a program that relies on it. */
static void load_after_collective(cudaStream_t s, bool right)
{
    static std::atomic<bool> came{true};
    float *x = device_floats(s, COUNT);
    setenv("SLUICE_EMULATED_LOADED", "1", 1);
    if (right) GPU_QUEUE(double_all, dim3(1), dim3(32), 0, s, x);
    if (emulated_launch_collective(s, wait_for_peer, &came, "all-reduce of 7 elements", 1)) exit(2);
    GPU_QUEUE(double_all, dim3(1), dim3(32), 0, s, x);
    cudaStreamSynchronize(s);
    cudaFree(x);
}

int main(int count, char **arguments)
{
    static const struct {
        const char *name;
        void (*kernel)(float *, bool);
        unsigned blocks, threads;
    } kernels[] = {
        {"missing_syncthreads", sum_block, 1, 256},
        {"add_between_barriers", add_between_barriers, 1, 256},
        {"hand_on_in_warp", hand_on_in_warp, 1, 32},
        {"shared_too_far", read_past_shared, 1, 256},
        {"deadlock", wait_for_each_other, 1, 32},
        {"different_shuffles", shuffle_at_two_places, 1, 32},
        {"ended_lanes", shuffle_with_ended, 1, 32},
        {"different_barriers", different_barriers, 1, 256},
        {"unwaited_copy", copy_asynchronously, 1, 64},
        {"misaligned_copy", copy_misaligned, 1, 32},
        {"misaligned_ldmatrix", load_misaligned_rows, 1, 32},
        {"past_the_end", read_past_end, 1, 32},
        {"unaligned_vector", load_unaligned_vectors, 1, 32},
        {"blocks_race", add_to_one_place, 2, 32},
    };
    static const struct {
        const char *name;
        void (*program)(cudaStream_t, bool);
    } programs[] = {
        {"missing_event", miss_an_event},
        {"reused_host_memory", reuse_host_memory},
        {"pageable_copy", copy_from_pageable},
        {"host_reads_device", read_from_host},
        {"too_much_shared", ask_for_too_much_shared},
        {"late_load", load_beside_collective},
        {"lucky_load", load_after_collective},
    };
    if (count < 2) return 2;
    const bool right = count > 2;
    cudaStream_t s;
    if (cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking)) return 2;
    bool known = false;
    for (const auto &k : kernels)
        if (!strcmp(k.name, arguments[1])) launch(s, k.kernel, k.blocks, k.threads, right), known = true;
    for (const auto &p : programs)
        if (!strcmp(p.name, arguments[1])) p.program(s, right), known = true;
    cudaStreamDestroy(s);
    return known ? 0 : 2;
}
