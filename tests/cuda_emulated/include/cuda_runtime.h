/* CUDA's kernel language for a host compiler: a block's threads are fibers of one thread of the host, and what a warp
 * does together is done at a meeting point by the last lane that arrives. Only what our kernels use is here; __shared__
 * arrays are missing on purpose, because their size would not be known. */
#pragma once

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <tuple>

#include <cuda_runtime_api.h>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))

/* ---- Vectors ---- */

/* clang-format off: one type on each line */
struct __align__(8) float2
{
    float x, y;
};
struct __align__(16) float4
{
    float x, y, z, w;
};
struct __align__(8) uint2
{
    unsigned x, y;
};
struct uint3 {
    unsigned x, y, z;
};
struct __align__(16) uint4
{
    unsigned x, y, z, w;
};
struct __align__(16) double2
{
    double x, y;
};
/* clang-format on */
struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_)
    {
    }
};
static inline float2 make_float2(float x, float y)
{
    return {x, y};
}
static inline float4 make_float4(float x, float y, float z, float w)
{
    return {x, y, z, w};
}
static inline uint2 make_uint2(unsigned x, unsigned y)
{
    return {x, y};
}
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w)
{
    return {x, y, z, w};
}

/* ---- Where a thread is ---- */

enum { EMULATED_LANES = 32, EMULATED_PENDING = 64 };

struct emulated_pending { /* a cp.async whose bytes have not arrived */
    void *to;
    const void *from; /* NULL: zeros */
    uint32_t bytes, group;
};

struct emulated_fiber { /* a thread of a block */
    uint3 thread;
    uint32_t lane, warp;
    void *stack_pointer, *stack, *sanitizer; /* sanitizer: the thread sanitizer's fiber */
    size_t stack_bytes;
    emulated_pending pending[EMULATED_PENDING];
    uint32_t pending_count, groups; /* groups: how often cp_async_commit was called */
};

struct emulated_place { /* the block that runs in this thread of the host */
    uint3 index, threads, grid;
    unsigned char *shared;
};

extern __thread emulated_fiber *emulated_thread __attribute__((tls_model("initial-exec")));
extern __thread emulated_place emulated_where __attribute__((tls_model("initial-exec")));
#define threadIdx (emulated_thread->thread)
#define blockIdx (emulated_where.index)
/* gridDim and blockDim are objects, because the struct of a launch has members of their names. */
template <uint3 emulated_place::*OF, unsigned uint3::*AXIS> struct emulated_extent {
    __forceinline__ operator unsigned() const
    {
        return emulated_where.*OF.*AXIS;
    }
};
template <uint3 emulated_place::*OF> struct emulated_extents {
    emulated_extent<OF, &uint3::x> x;
    emulated_extent<OF, &uint3::y> y;
    emulated_extent<OF, &uint3::z> z;
};
static constexpr emulated_extents<&emulated_place::threads> blockDim = {};
static constexpr emulated_extents<&emulated_place::grid> gridDim = {};
static const int warpSize = EMULATED_LANES;

[[noreturn]] void emulated_stop(const char *why);

/* ---- Meeting points ---- */

/* Does for all lanes of `mask` what they asked for: lanes[l] is what lane l brought. It looks at all of them at once,
 * which is no race, so the thread sanitizer does not look at it; what a lane brings from memory it reads itself. */
typedef void emulated_operation(void *const *lanes, uint32_t mask);
#define EMULATED_OPERATION __attribute__((no_sanitize_thread)) void

/* The place in the source of an operation of several threads: all threads that take part must be at one place. */
struct emulated_place_of {
    int number; /* tells two places on one line apart; 0: the line is enough */
    const char *file;
    int line;
};

/* Returns when all lanes of `mask` have called it; the last one has then run `operation`. */
void emulated_meet(uint32_t mask, emulated_operation *operation, void *own, const char *what, emulated_place_of place);
void emulated_syncthreads(emulated_place_of place);
void emulated_syncwarp(uint32_t mask, emulated_place_of place);
void emulated_fence(void);

#define EMULATED_PLACE (emulated_place_of{__COUNTER__ + 1, __FILE__, __LINE__})
#define __syncthreads() emulated_syncthreads(EMULATED_PLACE)
static inline void __threadfence()
{
    emulated_fence();
}

template <class T> struct emulated_exchange {
    T in, out;
    int from;
};
template <class T> EMULATED_OPERATION emulated_shuffle(void *const *lanes, uint32_t mask)
{
    for (int l = 0; l < EMULATED_LANES; l++) {
        if (!(mask >> l & 1)) continue;
        emulated_exchange<T> *own = (emulated_exchange<T> *)lanes[l];
        if (mask >> own->from & 1)
            own->out = ((emulated_exchange<T> *)lanes[own->from])->in;
        else
            memset((void *)&own->out, 0xff, sizeof own->out); /* a GPU gives any value */
    }
}
template <class T> T emulated_take(uint32_t mask, T value, int from, const char *what, emulated_place_of place)
{
    emulated_exchange<T> own = {value, value, from};
    emulated_meet(mask, emulated_shuffle<T>, &own, what, place);
    return own.out;
}

/* Joins the 32-bit values of the lanes of a mask; every lane gets the result. */
template <class T, class Join> EMULATED_OPERATION emulated_join(void *const *lanes, uint32_t mask)
{
    T all = *(const T *)lanes[__builtin_ctz(mask)];
    for (uint32_t left = mask & (mask - 1); left; left &= left - 1)
        all = Join::of(all, *(const T *)lanes[__builtin_ctz(left)]);
    for (uint32_t left = mask; left; left &= left - 1) *(T *)lanes[__builtin_ctz(left)] = all;
}
template <class T, class Join> T emulated_reduce(uint32_t mask, T value, const char *what, emulated_place_of place)
{
    emulated_meet(mask, emulated_join<T, Join>, &value, what, place);
    return value;
}
#define EMULATED_JOIN(name, expression)                                                                                \
    struct name {                                                                                                      \
        template <class T> __attribute__((no_sanitize_thread)) static T of(T a, T b)                                   \
        {                                                                                                              \
            return expression;                                                                                         \
        }                                                                                                              \
    };
EMULATED_JOIN(emulated_add, a + b)
EMULATED_JOIN(emulated_least, a < b ? a : b)
EMULATED_JOIN(emulated_most, a > b ? a : b)
EMULATED_JOIN(emulated_or, a | b)
EMULATED_JOIN(emulated_and, a &b)

/* A warp's operations, at one place of the source. */
struct emulated_warp {
    emulated_place_of place;

    void syncwarp(uint32_t mask = 0xffffffffu) const
    {
        emulated_syncwarp(mask, place);
    }
    template <class T> T shfl(uint32_t mask, T value, int from, int width = EMULATED_LANES) const
    {
        int base = (int)emulated_thread->lane & ~(width - 1);
        return emulated_take(mask, value, base + (from & (width - 1)), "__shfl_sync", place);
    }
    template <class T> T shfl_xor(uint32_t mask, T value, int by, int width = EMULATED_LANES) const
    {
        int lane = (int)emulated_thread->lane, from = lane ^ by;
        return emulated_take(mask, value, from / width > lane / width ? lane : from, "__shfl_xor_sync", place);
    }
    template <class T> T shfl_down(uint32_t mask, T value, unsigned by, int width = EMULATED_LANES) const
    {
        int lane = (int)emulated_thread->lane, from = lane + (int)by;
        return emulated_take(mask, value, from / width > lane / width ? lane : from, "__shfl_down_sync", place);
    }
    unsigned add(uint32_t mask, unsigned v) const
    {
        return emulated_reduce<unsigned, emulated_add>(mask, v, "__reduce_add_sync", place);
    }
    unsigned least(uint32_t mask, unsigned v) const
    {
        return emulated_reduce<unsigned, emulated_least>(mask, v, "__reduce_min_sync", place);
    }
    unsigned most(uint32_t mask, unsigned v) const
    {
        return emulated_reduce<unsigned, emulated_most>(mask, v, "__reduce_max_sync", place);
    }
    unsigned any_bit(uint32_t mask, unsigned v) const
    {
        return emulated_reduce<unsigned, emulated_or>(mask, v, "__reduce_or_sync", place);
    }
    unsigned each_bit(uint32_t mask, unsigned v) const
    {
        return emulated_reduce<unsigned, emulated_and>(mask, v, "__reduce_and_sync", place);
    }
    unsigned ballot(uint32_t mask, int vote) const
    {
        unsigned own = vote ? 1u << emulated_thread->lane : 0;
        return emulated_reduce<unsigned, emulated_or>(mask, own, "a vote", place);
    }
    int any(uint32_t mask, int vote) const
    {
        return ballot(mask, vote) != 0;
    }
    int all(uint32_t mask, int vote) const
    {
        return ballot(mask, vote) == mask;
    }
};
#define __syncwarp (emulated_warp{EMULATED_PLACE}).syncwarp
#define __shfl_sync (emulated_warp{EMULATED_PLACE}).shfl
#define __shfl_xor_sync (emulated_warp{EMULATED_PLACE}).shfl_xor
#define __shfl_down_sync (emulated_warp{EMULATED_PLACE}).shfl_down
#define __reduce_add_sync (emulated_warp{EMULATED_PLACE}).add
#define __reduce_min_sync (emulated_warp{EMULATED_PLACE}).least
#define __reduce_max_sync (emulated_warp{EMULATED_PLACE}).most
#define __reduce_or_sync (emulated_warp{EMULATED_PLACE}).any_bit
#define __reduce_and_sync (emulated_warp{EMULATED_PLACE}).each_bit
#define __ballot_sync (emulated_warp{EMULATED_PLACE}).ballot
#define __any_sync (emulated_warp{EMULATED_PLACE}).any
#define __all_sync (emulated_warp{EMULATED_PLACE}).all

/* ---- Atomics and arithmetic ---- */

/* Changes *at to change(*at); returns what it was. */
template <class T, class Bits, class Change> static inline T emulated_atomically(T *at, Change change)
{
    static_assert(sizeof(T) == sizeof(Bits), "bits of the same size");
    Bits old = __atomic_load_n((Bits *)at, __ATOMIC_RELAXED), next;
    T value, changed;
    do {
        memcpy(&value, &old, sizeof old);
        changed = change(value);
        memcpy(&next, &changed, sizeof next);
    } while (!__atomic_compare_exchange_n((Bits *)at, &old, next, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return value;
}
static inline float atomicAdd(float *at, float v)
{
    return emulated_atomically<float, uint32_t>(at, [v](float old) { return old + v; });
}
static inline int atomicAdd(int *at, int v)
{
    return __atomic_fetch_add(at, v, __ATOMIC_RELAXED);
}
static inline unsigned atomicAdd(unsigned *at, unsigned v)
{
    return __atomic_fetch_add(at, v, __ATOMIC_RELAXED);
}
static inline unsigned long long atomicAdd(unsigned long long *at, unsigned long long v)
{
    return __atomic_fetch_add(at, v, __ATOMIC_RELAXED);
}
static inline unsigned atomicMin(unsigned *at, unsigned v)
{
    return emulated_atomically<unsigned, uint32_t>(at, [v](unsigned old) { return old < v ? old : v; });
}
static inline unsigned atomicMax(unsigned *at, unsigned v)
{
    return emulated_atomically<unsigned, uint32_t>(at, [v](unsigned old) { return old > v ? old : v; });
}
static inline unsigned long long atomicMax(unsigned long long *at, unsigned long long v)
{
    return emulated_atomically<unsigned long long, uint64_t>(at,
                                                             [v](unsigned long long old) { return old > v ? old : v; });
}
static inline unsigned atomicOr(unsigned *at, unsigned v)
{
    return __atomic_fetch_or(at, v, __ATOMIC_RELAXED);
}
static inline unsigned atomicExch(unsigned *at, unsigned v)
{
    return __atomic_exchange_n(at, v, __ATOMIC_RELAXED);
}

static inline unsigned __float_as_uint(float x)
{
    unsigned bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static inline float __uint_as_float(unsigned bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
static inline long long __double_as_longlong(double x)
{
    long long bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}

/* ---- Launches ---- */

/* A launch keeps copies of its arguments here until its blocks run. */
template <class... P> struct emulated_arguments {
    void (*kernel)(P...);
    std::tuple<P...> values;
    static void call(const void *self)
    {
        const emulated_arguments *all = (const emulated_arguments *)self;
        std::apply(all->kernel, all->values);
    }
};
struct emulated_grid {
    const char *name;
    const void *kernel;
    dim3 grid, threads;
    size_t shared;
    void (*call)(const void *arguments); /* runs one thread of one block */
};
/* Copies the arguments; what is wrong with the launch cudaGetLastError says too. */
cudaError_t emulated_enqueue_grid(cudaStream_t stream, const emulated_grid *grid, const void *arguments, size_t bytes);

template <class... P, class... A>
cudaError_t emulated_launch(const char *name, void (*kernel)(P...), dim3 grid, dim3 threads, size_t shared,
                            cudaStream_t stream, A... values)
{
    typedef emulated_arguments<P...> arguments;
    static_assert(sizeof(arguments) <= 4096, "CUDA passes at most 4 KiB of arguments");
    static_assert((__is_trivially_copyable(P) && ...), "CUDA copies arguments as bytes");
    const arguments all = {kernel, std::tuple<P...>(values...)};
    const emulated_grid launch = {name, (const void *)kernel, grid, threads, shared, arguments::call};
    return emulated_enqueue_grid(stream, &launch, &all, sizeof all);
}

/* A launch for compilers that do not know <<<>>>: those members of its struct that are set here. */
struct cudaLaunchConfig_t {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
};
template <class... P, class... A>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(P...), A &&...arguments)
{
    return emulated_launch("a kernel of cudaLaunchKernelEx", kernel, config->gridDim, config->blockDim,
                           config->dynamicSmemBytes, config->stream, arguments...);
}
template <class... P>
cudaError_t cudaFuncSetAttribute(void (*kernel)(P...), enum cudaFuncAttribute attribute, int value)
{
    return cudaFuncSetAttribute((const void *)kernel, attribute, value);
}
