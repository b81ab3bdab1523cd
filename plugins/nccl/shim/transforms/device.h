/* A GPU as the transforms see it: CUDA's driver, which the program has loaded, and the kernels in it. Private to
 * plugins/nccl/shim. Any thread. */
#pragma once

#include "plugins/nccl/shim/transforms/kernels.h"

#include <sluice/status.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct CUctx_st *slc_shim_cu_context;
typedef struct CUmod_st *slc_shim_cu_module;
typedef struct CUfunc_st *slc_shim_cu_function;
typedef struct CUevent_st *slc_shim_cu_event;
typedef struct CUstream_st *slc_shim_cu_stream;
typedef unsigned long long slc_shim_cu_address;

/* X(name, suffix of the exported name, parameters): what is called of the driver. Each function returns 0, or a number
 * that slc_shim_cu_status explains. */
#define SLC_SHIM_CU_FUNCTIONS(X)                                                                                       \
    X(GetErrorName, "", (int error, const char **name))                                                                \
    X(DeviceGet, "", (int *device, int ordinal))                                                                       \
    X(DevicePrimaryCtxRetain, "", (slc_shim_cu_context * context, int device))                                         \
    X(CtxPushCurrent, "_v2", (slc_shim_cu_context context))                                                            \
    X(CtxPopCurrent, "_v2", (slc_shim_cu_context * context))                                                           \
    X(ModuleLoadData, "", (slc_shim_cu_module * module, const void *image))                                            \
    X(ModuleGetFunction, "", (slc_shim_cu_function * function, slc_shim_cu_module module, const char *name))           \
    X(LaunchKernel, "",                                                                                                \
      (slc_shim_cu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,             \
       unsigned block_y, unsigned block_z, unsigned shared_bytes, slc_shim_cu_stream stream, void **arguments,         \
       void **extra))                                                                                                  \
    X(StreamCreate, "", (slc_shim_cu_stream * stream, unsigned flags))                                                 \
    X(StreamDestroy, "_v2", (slc_shim_cu_stream stream))                                                               \
    X(StreamQuery, "", (slc_shim_cu_stream stream))                                                                    \
    X(ThreadExchangeStreamCaptureMode, "", (int *mode))                                                                \
    X(StreamIsCapturing, "", (slc_shim_cu_stream stream, int *status))                                                 \
    X(StreamWaitEvent, "", (slc_shim_cu_stream stream, slc_shim_cu_event event, unsigned flags))                       \
    X(EventCreate, "", (slc_shim_cu_event * event, unsigned flags))                                                    \
    X(EventRecord, "", (slc_shim_cu_event event, slc_shim_cu_stream stream))                                           \
    X(EventQuery, "", (slc_shim_cu_event event))                                                                       \
    X(EventSynchronize, "", (slc_shim_cu_event event))                                                                 \
    X(EventDestroy, "_v2", (slc_shim_cu_event event))                                                                  \
    X(MemAlloc, "_v2", (slc_shim_cu_address * address, size_t bytes))                                                  \
    X(MemFree, "_v2", (slc_shim_cu_address address))                                                                   \
    X(MemcpyAsync, "", (slc_shim_cu_address to, slc_shim_cu_address from, size_t bytes, slc_shim_cu_stream stream))    \
    X(MemsetD8Async, "", (slc_shim_cu_address at, unsigned char value, size_t bytes, slc_shim_cu_stream stream))

typedef struct {
#define SLC_SHIM_CU_MEMBER(name, suffix, parameters) int(*name) parameters;
    SLC_SHIM_CU_FUNCTIONS(SLC_SHIM_CU_MEMBER)
#undef SLC_SHIM_CU_MEMBER
} slc_shim_cu_driver;

enum {
    SLC_SHIM_GPUS = 64,
    SLC_SHIM_CU_NON_BLOCKING = 1,
    SLC_SHIM_CU_NO_TIMES = 2,
    SLC_SHIM_CU_NOT_READY = 600,
    SLC_SHIM_CU_RELAXED = 2
};

typedef enum {
    SLC_SHIM_GATHER,
    SLC_SHIM_SCATTER,
    SLC_SHIM_WORKER,
    SLC_SHIM_SERVER,
    SLC_SHIM_RESULTS,
    SLC_SHIM_KERNELS
} slc_shim_kernel;

typedef struct {
    slc_shim_cu_context context;
    slc_shim_cu_module module; /* holds the kernels */
    slc_shim_cu_function kernel[SLC_SHIM_KERNELS];
    bool has_kernels;
} slc_shim_gpu;

/* The driver; good once a GPU was opened. */
const slc_shim_cu_driver *slc_shim_cu(void);

/* Gives the GPU of this number, which keeps its primary context and its kernels until the process ends. Errors:
 * UNSUPPORTED if the process has no driver or this build no kernels for it, SYSTEM. If the kernels alone are missing,
 * *out is the GPU all the same, else NULL. */
sluice_status slc_shim_gpu_open(int number, const slc_shim_gpu **out);
unsigned slc_shim_gpu_number(const slc_shim_gpu *gpu);

/* Called in a forked process, which cannot use its parent's contexts: no GPU is open there. */
void slc_shim_gpu_child(void);

/* Makes the GPU's context the thread's current one, until slc_shim_gpu_leave. Calls in between that a capture forbids,
 * such as cuMemAlloc, do not end one that another thread has under way. Pairs do not nest. */
sluice_status slc_shim_gpu_enter(const slc_shim_gpu *gpu);
void slc_shim_gpu_leave(void);

/* `arguments` is the kernel's one struct; it is copied. */
typedef struct {
    slc_shim_kernel kernel;
    uint32_t blocks, slices, threads, shared_bytes;
    const void *arguments;
} slc_shim_launch;
sluice_status slc_shim_gpu_launch(const slc_shim_gpu *gpu, slc_shim_cu_stream stream, const slc_shim_launch *launch);

/* Turns what a function of the driver returned into a status; `what` names the call. */
sluice_status slc_shim_cu_status(int result, const char *what);

/* The image that holds the kernels: nvcc's if it was there at build time, else a word that no GPU takes. */
extern const char slc_shim_image[];
