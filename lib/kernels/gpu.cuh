/* All kernels of the GPU share this: launches, shared memory, the instructions that CUDA C++ has no words for, and
 * loads and stores of eight elements of either type. The sources are compiled by nvcc or, for the emulated GPU, by the
 * host's compiler, with the emulation's headers in the include path.
 *
 * Rules: no default stream, no managed memory, no waiting for another block, no library but cublasLt, and no atomic
 * additions of floats if a result is promised to repeat. Arithmetic is never contracted to fma. */
#pragma once

#include <stdint.h>

#include <cuda_runtime.h>

#include "lib/device/cuda.h"
#include "lib/kernels/kernel.h"

#if !defined(__CUDACC__)
#include <emulated_gpu.h>
#else

/* c += a b for 16 x 16 and 16 x 8 tiles in a warp's registers (PTX: mma.sync.aligned.m16n8k16.row.col). */
#define GPU_MMA(type)                                                                                                  \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 "                                        \
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                                               \
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                                                      \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
static __device__ __forceinline__ void mma_bf16(float c[4], const uint32_t a[4], const uint32_t b[2])
{
    GPU_MMA("bf16");
}
static __device__ __forceinline__ void mma_fp16(float c[4], const uint32_t a[4], const uint32_t b[2])
{
    GPU_MMA("f16");
}

/* Four 8 x 8 matrices of 16-bit elements; lane l gives the address of row l % 8 of matrix l / 8. */
template <bool TRANSPOSED> static __device__ __forceinline__ void ldmatrix_x4(uint32_t out[4], const void *row)
{
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(row);
    if (TRANSPOSED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                     : "r"(at)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                     : "r"(at)
                     : "memory");
}

/* Copies 16 bytes to shared memory; they are there once they were waited for. With `valid` false, zeros arrive. */
static __device__ __forceinline__ void cp_async_16(void *to, const void *from, bool valid = true)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((uint32_t)__cvta_generic_to_shared(to)),
                 "l"(from), "r"(valid ? 16 : 0)
                 : "memory");
}
static __device__ __forceinline__ void cp_async_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}
/* Waits for all but the last GROUPS groups of this thread. */
template <int GROUPS> static __device__ __forceinline__ void cp_async_wait_but()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(GROUPS) : "memory");
}

#define GPU_QUEUE(kernel, grid, threads, shared, stream, ...) kernel<<<grid, threads, shared, stream>>>(__VA_ARGS__)
/* Sets a flag to false, which many threads may do. */
static __device__ __forceinline__ void gpu_clear_flag(bool *flag)
{
    *(volatile bool *)flag = false;
}

/* A kernel's one struct of shared memory; its size is given at the launch. */
#define SLC_SHARED(type, name)                                                                                         \
    extern __shared__ __align__(128) unsigned char gpu_shared_bytes[];                                                 \
    type &name = *(type *)gpu_shared_bytes
#endif

/* ---- Launches ---- */

enum { GPU_THREADS = 256, GPU_LANES = 32, GPU_SHARED_WITHOUT_ASKING = 48 << 10 };

/* Starts a kernel; slc_cuda_launched says what became of it. */
#define GPU_START(kernel, grid, threads, shared, stream, ...)                                                          \
    (gpu_note(kernel, grid, threads, shared), GPU_QUEUE(kernel, grid, threads, shared, stream, __VA_ARGS__))

template <class... P> static inline void gpu_note(void (*kernel)(P...), dim3 grid, dim3 threads, size_t shared)
{
    const slc_cuda_grid noted = {(const void *)kernel, (uint64_t)grid.x * grid.y * grid.z,
                                 threads.x * threads.y * threads.z, shared};
    slc_cuda_note_grid(&noted);
}

/* Starts a kernel and gives a status; `kernel` is the name of a function, in parentheses if it has template arguments.
 */
#define SLC_LAUNCH(stream, kernel, grid, threads, shared, ...)                                                         \
    (gpu_ask_shared((const void *)kernel, shared),                                                                     \
     GPU_START(kernel, dim3(grid), dim3(threads), shared, slc_cuda_stream(stream), __VA_ARGS__),                       \
     slc_cuda_launched(stream, #kernel))

/* More than 48 KiB of shared memory must be asked for; an error shows at the launch. */
static inline void gpu_ask_shared(const void *kernel, size_t bytes)
{
    if (bytes > GPU_SHARED_WITHOUT_ASKING)
        (void)cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
}

/* Returns how many blocks a kernel starts whose threads stride over `items`, `each` of them at a time. */
static inline uint32_t gpu_blocks(const sluice_stream *stream, uint64_t items, uint64_t each)
{
    const uint64_t wanted = (items + each - 1) / each, most = slc_cuda_blocks(stream);
    return (uint32_t)(wanted < most ? (wanted ? wanted : 1) : most);
}

/* ---- Elements ---- */

struct gpu_bf16 {
    uint16_t bits;
};
/* Calls function<T>(...) with T the type that `dtype` names. */
#define GPU_BY_TYPE(dtype, function, ...)                                                                              \
    ((dtype) == SLUICE_BF16 ? function<gpu_bf16>(__VA_ARGS__) : function<float>(__VA_ARGS__))
/* Calls function<T, G>(...) with the types that `first` and `second` name. */
#define GPU_BY_TYPES(first, second, function, ...)                                                                     \
    ((second) == SLUICE_BF16                                                                                           \
         ? ((first) == SLUICE_BF16 ? function<gpu_bf16, gpu_bf16>(__VA_ARGS__)                                         \
                                   : function<float, gpu_bf16>(__VA_ARGS__))                                           \
         : ((first) == SLUICE_BF16 ? function<gpu_bf16, float>(__VA_ARGS__) : function<float, float>(__VA_ARGS__)))
/* Defines NAME_cuda as function<T>(stream, args) with T the type that the member `dtype` of its arguments names, or
 * with two such types. */
#define GPU_KERNEL(name, arguments, dtype, function)                                                                   \
    sluice_status name##_cuda(sluice_stream *stream, const arguments *args)                                            \
    {                                                                                                                  \
        return GPU_BY_TYPE(args->dtype, function, stream, args);                                                       \
    }
#define GPU_KERNEL_OF_TYPES(name, arguments, one, other, function)                                                     \
    sluice_status name##_cuda(sluice_stream *stream, const arguments *args)                                            \
    {                                                                                                                  \
        return GPU_BY_TYPES(args->one, args->other, function, stream, args);                                           \
    }

static __device__ __forceinline__ float gpu_widen(float x)
{
    return x;
}
static __device__ __forceinline__ float gpu_widen(gpu_bf16 x)
{
    return __uint_as_float((uint32_t)x.bits << 16);
}
/* Rounds as sluice_bf16_from_float does. */
template <class T> static __device__ __forceinline__ T gpu_round(float x);
template <> __device__ __forceinline__ float gpu_round<float>(float x)
{
    return x;
}
template <> __device__ __forceinline__ gpu_bf16 gpu_round<gpu_bf16>(float x)
{
    const uint32_t bits = __float_as_uint(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return {(uint16_t)(bits >> 16 | 0x40)};
    return {(uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

enum { GPU_EACH = 8 }; /* elements that a thread loads or stores at a time */

template <class T> struct __align__(16) gpu_pack
{
    T at[16 / sizeof(T)];
};

/* True if eight elements at multiples of eight from `p` may be loaded 16 bytes at a time. */
static inline bool gpu_aligned(const void *p)
{
    return (uintptr_t)p % 16 == 0;
}

/* Loads x[0..7], or the first `left` followed by `fill`. */
template <class T>
static __device__ __forceinline__ void gpu_load8(const T *x, bool aligned, uint64_t left, float fill,
                                                 float out[GPU_EACH])
{
    enum { PACK = 16 / sizeof(T) };
    if (aligned && left >= GPU_EACH) {
        for (int i = 0; i < GPU_EACH; i += PACK) {
            const gpu_pack<T> pack = *(const gpu_pack<T> *)(x + i);
            for (int j = 0; j < PACK; j++) out[i + j] = gpu_widen(pack.at[j]);
        }
    } else {
        for (unsigned i = 0; i < GPU_EACH; i++) out[i] = i < left ? gpu_widen(x[i]) : fill;
    }
}

template <class T>
static __device__ __forceinline__ void gpu_store8(T *x, bool aligned, uint64_t left, const float in[GPU_EACH])
{
    enum { PACK = 16 / sizeof(T) };
    if (aligned && left >= GPU_EACH) {
        for (int i = 0; i < GPU_EACH; i += PACK) {
            gpu_pack<T> pack;
            for (int j = 0; j < PACK; j++) pack.at[j] = gpu_round<T>(in[i + j]);
            *(gpu_pack<T> *)(x + i) = pack;
        }
    } else {
        for (unsigned i = 0; i < GPU_EACH && i < left; i++) x[i] = gpu_round<T>(in[i]);
    }
}

/* Runs functor(first, left) for every eighth element of `count`, in a grid of any size. */
template <class F> static __global__ void __launch_bounds__(GPU_THREADS) gpu_each(uint64_t count, F functor)
{
    const uint64_t step = (uint64_t)gridDim.x * GPU_THREADS * GPU_EACH;
    for (uint64_t i = ((uint64_t)blockIdx.x * GPU_THREADS + threadIdx.x) * GPU_EACH; i < count; i += step)
        functor(i, count - i);
}
template <class F>
static sluice_status gpu_launch_each(sluice_stream *stream, const char *name, uint64_t count, F functor)
{
    if (!count) return SLUICE_OK;
    GPU_START((gpu_each<F>), dim3(gpu_blocks(stream, count, GPU_THREADS * GPU_EACH)), dim3(GPU_THREADS), 0,
              slc_cuda_stream(stream), count, functor);
    return slc_cuda_launched(stream, name);
}

/* ---- Many tensors in one launch ---- */

/* Holds functors, as many as fit the arguments of a kernel, which may have 4 KiB, each with a number of items. A block
 * works for one of them: for functor p the blocks from first_block[p] to before first_block[p + 1]. */
template <class F> struct gpu_many {
    enum { MOST = (4096 - 16) / (sizeof(F) + 16) };
    uint32_t count, first_block[MOST + 1];
    uint64_t items[MOST];
    F at[MOST];
};

/* The functor that a block works for, the block's number among the blocks of this functor, and how many these are. */
struct gpu_place {
    uint32_t functor, block, blocks;
};

template <class F> static __device__ __forceinline__ gpu_place gpu_place_in(const gpu_many<F> &many)
{
    uint32_t p = 0;
    while (many.first_block[p + 1] <= blockIdx.x) p++;
    return {p, blockIdx.x - many.first_block[p], many.first_block[p + 1] - many.first_block[p]};
}

/* Fills `out` with the functors make(k) from k = *next on, leaving out those of no items; *next moves on. blocks(items)
 * is the number of blocks of one functor. Returns the number of all blocks; 0: nothing is left. */
template <class F, class I, class B, class M>
static uint32_t gpu_many_take(gpu_many<F> *out, uint32_t count, uint32_t *next, I items, B blocks, M make)
{
    out->count = out->first_block[0] = 0;
    for (; *next < count && out->count < gpu_many<F>::MOST; ++*next) {
        const uint64_t own = items(*next);
        const uint32_t place = out->count;
        if (!own) continue;
        out->items[place] = own;
        out->at[place] = make(*next);
        out->first_block[++out->count] = out->first_block[place] + blocks(own);
    }
    return out->first_block[out->count];
}

/* Runs all functors (gpu_many_take), in as many launches as that needs: start(blocks, many) starts one. */
template <class F, class I, class B, class M, class S>
static sluice_status gpu_start_many(sluice_stream *stream, const char *name, uint32_t count, I items, B blocks, M make,
                                    S start)
{
    static_assert(sizeof(gpu_many<F>) <= 4096, "the arguments of a kernel have 4 KiB");
    gpu_many<F> many = {};
    for (uint32_t next = 0, all; (all = gpu_many_take(&many, count, &next, items, blocks, make));) {
        start(all, many);
        sluice_status status = slc_cuda_launched(stream, name);
        if (status) return status;
    }
    return SLUICE_OK;
}

/* Does what gpu_each does, for all functors. A thread copies its own functor: an address into the arguments would make
 * the compiler copy all of them. */
template <class F> static __global__ void __launch_bounds__(GPU_THREADS) gpu_each_of(gpu_many<F> many)
{
    const gpu_place place = gpu_place_in(many);
    const F functor = many.at[place.functor];
    const uint64_t items = many.items[place.functor], step = (uint64_t)place.blocks * GPU_THREADS * GPU_EACH;
    for (uint64_t i = ((uint64_t)place.block * GPU_THREADS + threadIdx.x) * GPU_EACH; i < items; i += step)
        functor(i, items - i);
}

/* Does what gpu_launch_each does, for the functors make(k), k below `count`, each of elements(k) elements, in few
 * launches. */
template <class F, class I, class M>
static sluice_status gpu_launch_many(sluice_stream *stream, const char *name, uint32_t count, I elements, M make)
{
    return gpu_start_many<F>(
        stream, name, count, elements,
        [&](uint64_t items) { return gpu_blocks(stream, items, GPU_THREADS * GPU_EACH); }, make,
        [&](uint32_t all, const gpu_many<F> &many) {
            GPU_START((gpu_each_of<F>), dim3(all), dim3(GPU_THREADS), 0, slc_cuda_stream(stream), many);
        });
}

/* ---- Sums, always in the same order ---- */

/* a b + c, rounded once on a GPU: for sums whose bits are not the host's anyway. */
static __device__ __forceinline__ float gpu_add_product(float a, float b, float c)
{
#if defined(__CUDACC__)
    return fmaf(a, b, c);
#else
    return a * b + c;
#endif
}

/* Joins a value of each lane of a warp in the tree i with i ^ 16, 8, 4, 2, 1; every lane gets the result. */
static __device__ __forceinline__ float gpu_warp_sum(float x)
{
    for (int by = GPU_LANES / 2; by; by /= 2) x += __shfl_xor_sync(0xffffffffu, x, by);
    return x;
}
static __device__ __forceinline__ float gpu_warp_largest(float x)
{
    for (int by = GPU_LANES / 2; by; by /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, by));
    return x;
}
