/* Streams and events for tests, which fail where one cannot be made. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <cuda_runtime_api.h>

#define ok(call) assert_int_equal(call, 0)

static inline cudaStream_t make_stream(unsigned flags)
{
    cudaStream_t stream;
    ok(cudaStreamCreateWithFlags(&stream, flags));
    return stream;
}

static inline cudaEvent_t make_event(void)
{
    cudaEvent_t event;
    ok(cudaEventCreate(&event));
    return event;
}
