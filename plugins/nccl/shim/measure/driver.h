/* The few functions of CUDA's driver that measuring needs, taken from the libcuda.so.1 that the process has loaded: the
 * shim itself loads none. Private to plugins/nccl/shim. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct CUstream_st *slc_shim_driver_stream;
typedef struct CUevent_st *slc_shim_driver_event;
typedef struct CUctx_st *slc_shim_driver_context;

/* X(name, the exported name's suffix, parameters). Each function returns 0 or an error's number. A driver without
 * ThreadExchangeStreamCaptureMode, which is NULL then, has no modes of capture either. */
#define SLC_SHIM_DRIVER_FUNCTIONS(X)                                                                                   \
    X(CtxGetCurrent, "", (slc_shim_driver_context * out))                                                              \
    X(CtxPushCurrent, "_v2", (slc_shim_driver_context context))                                                        \
    X(CtxPopCurrent, "_v2", (slc_shim_driver_context * out))                                                           \
    X(CtxGetDevice, "", (int *device))                                                                                 \
    X(DevicePrimaryCtxRetain, "", (slc_shim_driver_context * out, int device))                                         \
    X(DevicePrimaryCtxRelease, "_v2", (int device))                                                                    \
    X(ThreadExchangeStreamCaptureMode, "", (int *mode))                                                                \
    X(StreamIsCapturing, "", (slc_shim_driver_stream stream, int *status))                                             \
    X(StreamCreate, "", (slc_shim_driver_stream * out, unsigned flags))                                                \
    X(StreamGetCtx, "", (slc_shim_driver_stream stream, slc_shim_driver_context * out))                                \
    X(StreamWriteValue64, "_v2", (slc_shim_driver_stream stream, uint64_t at, uint64_t value, unsigned flags))         \
    X(EventCreate, "", (slc_shim_driver_event * out, unsigned flags))                                                  \
    X(EventRecord, "", (slc_shim_driver_event event, slc_shim_driver_stream stream))                                   \
    X(EventQuery, "", (slc_shim_driver_event event))                                                                   \
    X(EventElapsedTime, "", (float *milliseconds, slc_shim_driver_event begin, slc_shim_driver_event end))             \
    X(MemHostRegister, "_v2", (void *memory, size_t bytes, unsigned flags))                                            \
    X(MemHostGetDevicePointer, "_v2", (uint64_t * out, void *memory, unsigned flags))

typedef struct {
#define SLC_SHIM_DRIVER_MEMBER(name, suffix, parameters) int(*name) parameters;
    SLC_SHIM_DRIVER_FUNCTIONS(SLC_SHIM_DRIVER_MEMBER)
#undef SLC_SHIM_DRIVER_MEMBER
} slc_shim_driver;

enum { SLC_SHIM_DRIVER_NON_BLOCKING = 1, SLC_SHIM_DRIVER_NOT_READY = 600, SLC_SHIM_DRIVER_RELAXED = 2 };

/* False: the process has no driver, or one without these functions. Asks the loader each time. */
bool slc_shim_driver_find(slc_shim_driver *out);
