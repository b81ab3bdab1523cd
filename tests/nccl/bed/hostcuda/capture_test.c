/* Capture of streams, and the graphs that it makes, over the host's memory. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <cuda_runtime_api.h>

#include "tests/nccl/bed/hostcuda/made_streams.h"

static void add_one(void *argument)
{
    atomic_fetch_add((atomic_int *)argument, 1);
}

static cudaGraphExec_t end_capture(cudaStream_t stream)
{
    cudaGraph_t graph;
    cudaGraphExec_t instance;
    ok(cudaStreamEndCapture(stream, &graph));
    ok(cudaGraphInstantiate(&instance, graph, 0));
    ok(cudaGraphDestroy(graph));
    return instance;
}

/* A graph keeps an object of the program as long as it, or an instance of it, exists. */
static void graphs_keep_objects(void **state)
{
    (void)state;
    atomic_int runs = 0, destroyed = 0;
    cudaGraph_t graph;
    cudaGraphExec_t instance;
    cudaUserObject_t object;
    size_t count = 0;
    ok(cudaSetDevice(0));
    cudaStream_t stream = make_stream(cudaStreamNonBlocking);
    ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    ok(cudaStreamGetCaptureInfo(stream, &(enum cudaStreamCaptureStatus){0}, NULL, &graph, NULL, NULL, NULL));
    ok(cudaUserObjectCreate(&object, &destroyed, add_one, 1, 0));
    ok(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove));
    ok(cudaLaunchHostFunc(stream, add_one, &runs));
    ok(cudaStreamEndCapture(stream, &graph));
    ok(cudaGraphGetNodes(graph, NULL, &count));
    assert_int_equal(count, 1);
    ok(cudaGraphInstantiate(&instance, graph, 0));
    ok(cudaGraphDestroy(graph));
    ok(cudaGraphLaunch(instance, stream));
    ok(cudaStreamSynchronize(stream));
    assert_int_equal(destroyed, 0);
    ok(cudaGraphExecDestroy(instance));
    ok(cudaStreamDestroy(stream));
    while (!atomic_load(&destroyed)) usleep(100);
    assert_int_equal(runs, 1);
}

static void graphs_replay(void **state)
{
    (void)state;
    atomic_int runs = 0;
    int *device, *pinned;
    enum cudaStreamCaptureStatus status;
    ok(cudaSetDevice(0));
    cudaStream_t stream = make_stream(cudaStreamNonBlocking);
    ok(cudaMalloc((void **)&device, sizeof *device));
    ok(cudaMallocHost((void **)&pinned, sizeof *pinned));
    *pinned = 1;
    ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    ok(cudaStreamIsCapturing(stream, &status));
    assert_int_equal(status, cudaStreamCaptureStatusActive);
    ok(cudaLaunchHostFunc(stream, add_one, &runs));
    ok(cudaMemcpyAsync(device, pinned, sizeof *pinned, cudaMemcpyHostToDevice, stream));
    cudaGraphExec_t instance = end_capture(stream);
    ok(cudaStreamIsCapturing(stream, &status));
    assert_int_equal(status, cudaStreamCaptureStatusNone);
    ok(cudaStreamSynchronize(stream));
    assert_int_equal(runs, 0);
    for (int i = 0; i < 3; i++) ok(cudaGraphLaunch(instance, stream));
    ok(cudaStreamSynchronize(stream));
    assert_int_equal(runs, 3);
    assert_int_equal(*device, 1);
    ok(cudaGraphExecDestroy(instance));
    ok(cudaFreeHost(pinned));
    ok(cudaFree(device));
    ok(cudaStreamDestroy(stream));
}

static atomic_int meeting;
static void meet(void *argument)
{
    (void)argument;
    const int all = (atomic_fetch_add(&meeting, 1) / 2 + 1) * 2;
    while (atomic_load(&meeting) < all) usleep(100);
}

/* Two devices' streams in one graph, whose work waits for each other. */
static void a_graph_has_several_streams(void **state)
{
    (void)state;
    ok(cudaSetDevice(0));
    cudaStream_t first = make_stream(cudaStreamNonBlocking);
    cudaEvent_t fork = make_event();
    ok(cudaSetDevice(1));
    cudaStream_t second = make_stream(cudaStreamNonBlocking);
    cudaEvent_t join = make_event();
    ok(cudaSetDevice(0));
    atomic_int before = 0;
    ok(cudaStreamBeginCapture(first, cudaStreamCaptureModeRelaxed));
    ok(cudaLaunchHostFunc(first, add_one, &before));
    ok(cudaEventRecord(fork, first));
    ok(cudaStreamWaitEvent(second, fork, 0));
    ok(cudaLaunchHostFunc(first, meet, NULL));
    ok(cudaLaunchHostFunc(second, meet, NULL));
    ok(cudaEventRecord(join, second));
    assert_int_equal(cudaEventQuery(join), cudaErrorCapturedEvent);
    ok(cudaStreamWaitEvent(first, join, 0));
    ok(cudaLaunchHostFunc(first, add_one, &before));
    cudaGraphExec_t instance = end_capture(first);
    for (int i = 0; i < 3; i++) ok(cudaGraphLaunch(instance, first));
    ok(cudaStreamSynchronize(first));
    assert_int_equal(before, 6);
    assert_int_equal(meeting, 6);
    ok(cudaGraphExecDestroy(instance));
    ok(cudaEventDestroy(fork));
    ok(cudaEventDestroy(join));
    ok(cudaStreamDestroy(first));
    ok(cudaStreamDestroy(second));
}

static void wrong_captures_are_refused(void **state)
{
    (void)state;
    cudaGraph_t graph = NULL;
    atomic_int runs = 0;
    ok(cudaSetDevice(0));
    cudaStream_t stream = make_stream(cudaStreamNonBlocking), other = make_stream(cudaStreamNonBlocking);
    cudaEvent_t event = make_event();
    assert_int_equal(cudaStreamBeginCapture(NULL, cudaStreamCaptureModeGlobal), cudaErrorStreamCaptureUnsupported);
    assert_int_equal(cudaStreamEndCapture(stream, &graph), cudaErrorIllegalState);
    ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal)); /* the host may not wait */
    assert_int_equal(cudaStreamSynchronize(stream), cudaErrorStreamCaptureUnsupported);
    assert_int_equal(cudaLaunchHostFunc(stream, add_one, &runs), cudaErrorStreamCaptureInvalidated);
    assert_int_equal(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
    ok(cudaEventRecord(event, other));
    ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal)); /* an event from outside */
    assert_int_equal(cudaStreamWaitEvent(stream, event, 0), cudaErrorStreamCaptureIsolation);
    assert_int_equal(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
    ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal)); /* a stream that does not come back */
    ok(cudaEventRecord(event, stream));
    ok(cudaStreamWaitEvent(other, event, 0));
    ok(cudaLaunchHostFunc(other, add_one, &runs));
    assert_int_equal(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureUnjoined);
    assert_null(graph);
    ok(cudaLaunchHostFunc(other, add_one, &runs)); /* and is no longer captured */
    ok(cudaStreamSynchronize(other));
    assert_int_equal(runs, 1);
    ok(cudaEventDestroy(event));
    ok(cudaStreamDestroy(stream));
    ok(cudaStreamDestroy(other));
}

static void *call_from_another_thread(void *argument)
{
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    cudaEvent_t event = argument;
    ok(cudaThreadExchangeStreamCaptureMode(&mode));
    assert_int_equal(mode, cudaStreamCaptureModeGlobal);
    ok(cudaEventQuery(event)); /* a relaxed thread may */
    ok(cudaThreadExchangeStreamCaptureMode(&mode));
    assert_int_equal(cudaEventQuery(event), cudaErrorStreamCaptureUnsupported);
    return NULL;
}

static void captures_forbid_what_may_wait(void **state)
{
    (void)state;
    cudaGraph_t graph = NULL;
    void *at;
    pthread_t thread;
    ok(cudaSetDevice(0));
    cudaStream_t stream = make_stream(cudaStreamNonBlocking);
    cudaEvent_t event = make_event();
    ok(cudaEventRecord(event, stream));
    ok(cudaEventSynchronize(event));
    ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal)); /* forbids it to other threads too */
    ok(pthread_create(&thread, NULL, call_from_another_thread, event));
    ok(pthread_join(thread, NULL));
    assert_int_equal(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
    ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    assert_int_equal(cudaMalloc(&at, 64), cudaErrorStreamCaptureUnsupported);
    assert_int_equal(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
    ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    ok(cudaMalloc(&at, 64));
    ok(cudaFree(at));
    ok(cudaStreamEndCapture(stream, &graph));
    ok(cudaGraphDestroy(graph));
    ok(cudaEventDestroy(event));
    ok(cudaStreamDestroy(stream));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_replay),
        cmocka_unit_test(graphs_keep_objects),
        cmocka_unit_test(a_graph_has_several_streams),
        cmocka_unit_test(wrong_captures_are_refused),
        cmocka_unit_test(captures_forbid_what_may_wait),
    };
    unsetenv("HOSTCUDA_DEVICES"); /* a user's settings are not the test's */
    unsetenv("HOSTCUDA_MEMORY");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
