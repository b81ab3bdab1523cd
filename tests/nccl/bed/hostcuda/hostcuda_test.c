/* Streams, events, memory and kernels over the host's memory, by the runtime and by the driver. capture_test.c has
 * graphs. */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <cuda.h>
#include <cuda_runtime_api.h>

#include "tests/nccl/bed/hostcuda/hostcuda.h"
#include "tests/nccl/bed/hostcuda/made_streams.h"

/* ---- A gate that holds a stream until the test opens it ---- */

typedef struct {
    atomic_int open, passed;
} gate;

static void pass_gate(void *argument)
{
    gate *g = argument;
    while (!atomic_load(&g->open)) usleep(100);
    atomic_fetch_add(&g->passed, 1);
}

static void count_call(void *argument)
{
    atomic_fetch_add((atomic_int *)argument, 1);
}

static void hold(cudaStream_t stream, gate *g)
{
    ok(cudaLaunchHostFunc(stream, pass_gate, g));
}

static int on_device(int device, cudaError_t (*call)(void))
{
    ok(cudaSetDevice(device));
    return (int)call();
}

/* ---- Streams and events ---- */

static void a_held_stream_blocks_no_call(void **state)
{
    (void)state;
    gate g = {0};
    cudaStream_t stream = make_stream(cudaStreamNonBlocking), other = make_stream(cudaStreamNonBlocking);
    cudaEvent_t event = make_event();
    hold(stream, &g);
    ok(cudaEventRecord(event, stream));
    ok(cudaStreamWaitEvent(other, event, 0));
    assert_int_equal(cudaStreamQuery(stream), cudaErrorNotReady);
    assert_int_equal(cudaStreamQuery(other), cudaErrorNotReady);
    assert_int_equal(cudaGetLastError(), cudaErrorNotReady); /* it is kept as every error is */
    ok(cudaGetLastError());
    assert_int_equal(cudaEventQuery(event), cudaErrorNotReady);
    assert_int_equal(cudaPeekAtLastError(), cudaErrorNotReady);
    float ms;
    cudaGetLastError();
    assert_int_equal(cudaEventElapsedTime(&ms, event, event), cudaErrorNotReady);
    assert_int_equal(cudaGetLastError(), cudaErrorNotReady);
    assert_int_equal(cuEventQuery(event), CUDA_ERROR_NOT_READY); /* the driver keeps nothing */
    assert_int_equal(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    ok(cudaGetLastError());
    ok(cudaEventDestroy(event));
    ok(cudaStreamDestroy(stream)); /* its work goes on */
    assert_int_equal(cudaStreamQuery(other), cudaErrorNotReady);
    atomic_store(&g.open, 1);
    ok(cudaStreamSynchronize(other));
    assert_int_equal(atomic_load(&g.passed), 1);
    ok(cudaDeviceSynchronize());
    ok(cudaStreamDestroy(other));
}

static void sleep_10_ms(void *argument)
{
    (void)argument;
    usleep(10000);
}

/* A wait is for the record before it, also if the event is recorded again in a stream that has nothing to do. */
static void waits_keep_their_record(void **state)
{
    (void)state;
    gate g = {0};
    atomic_int waited = 0;
    cudaStream_t held = make_stream(cudaStreamNonBlocking), idle = make_stream(cudaStreamNonBlocking);
    cudaStream_t waiting = make_stream(cudaStreamNonBlocking);
    cudaEvent_t event = make_event();
    hold(held, &g);
    ok(cudaEventRecord(event, held));
    ok(cudaStreamWaitEvent(waiting, event, 0));
    ok(cudaEventRecord(event, idle));
    ok(cudaEventSynchronize(event)); /* the second record */
    ok(cudaLaunchHostFunc(waiting, count_call, &waited));
    usleep(20000);
    assert_int_equal(waited, 0);
    atomic_store(&g.open, 1);
    ok(cudaStreamSynchronize(waiting));
    assert_int_equal(waited, 1);
    ok(cudaEventDestroy(event));
    ok(cudaStreamDestroy(held));
    ok(cudaStreamDestroy(idle));
    ok(cudaStreamDestroy(waiting));
}

static void events_tell_times(void **state)
{
    (void)state;
    float ms = -1;
    cudaStream_t stream = make_stream(cudaStreamDefault);
    cudaEvent_t begin = make_event(), end = make_event(), untimed;
    ok(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
    assert_int_equal(cudaEventElapsedTime(&ms, begin, end), cudaErrorInvalidResourceHandle); /* never recorded */
    ok(cudaEventRecord(begin, stream));
    ok(cudaLaunchHostFunc(stream, sleep_10_ms, NULL));
    ok(cudaEventRecord(end, stream));
    ok(cudaEventRecord(untimed, stream));
    ok(cudaEventSynchronize(untimed));
    ok(cudaEventElapsedTime(&ms, begin, end));
    assert_true(ms >= 10);
    assert_int_equal(cudaEventElapsedTime(&ms, begin, untimed), cudaErrorInvalidResourceHandle);
    ok(cudaEventDestroy(begin));
    ok(cudaEventDestroy(end));
    ok(cudaEventDestroy(untimed));
    ok(cudaStreamDestroy(stream));
}

static void devices_wait_for_their_own_streams(void **state)
{
    (void)state;
    gate g = {0};
    void *first, *second;
    ok(cudaSetDevice(0));
    cudaStream_t held = make_stream(cudaStreamNonBlocking);
    ok(cudaMalloc(&first, 100));
    hold(held, &g);
    ok(on_device(1, cudaDeviceSynchronize));
    ok(cudaMalloc(&second, 100));
    ok(cudaFree(second)); /* it would wait for a stream of its device */
    int device = -1;
    ok(cudaStreamGetDevice(held, &device));
    assert_int_equal(device, 0);
    cudaEvent_t foreign = make_event();
    assert_int_equal(cudaEventRecord(foreign, held), cudaErrorInvalidResourceHandle);
    ok(cudaEventDestroy(foreign));
    atomic_store(&g.open, 1);
    ok(on_device(0, cudaDeviceSynchronize));
    assert_int_equal(atomic_load(&g.passed), 1);
    ok(cudaFree(first));
    ok(cudaStreamDestroy(held));
    assert_int_equal(cudaSetDevice(1000), cudaErrorInvalidDevice);
}

static void default_stream_waits_for_blocking_streams(void **state)
{
    (void)state;
    gate g = {0}, h = {0};
    ok(cudaSetDevice(0));
    cudaStream_t blocking = make_stream(cudaStreamDefault), free_one = make_stream(cudaStreamNonBlocking);
    hold(blocking, &g);
    hold(NULL, &h); /* waits for the blocking stream, and later work of that waits for it */
    hold(blocking, &h);
    ok(cudaStreamSynchronize(free_one));
    assert_int_equal(cudaStreamQuery(cudaStreamLegacy), cudaErrorNotReady);
    ok(cudaStreamQuery(cudaStreamPerThread));
    atomic_store(&h.open, 1);
    usleep(2000);
    assert_int_equal(atomic_load(&h.passed), 0);
    atomic_store(&g.open, 1);
    ok(cudaStreamSynchronize(NULL));
    assert_true(atomic_load(&h.passed) >= 1);
    ok(cudaStreamSynchronize(blocking));
    assert_int_equal(atomic_load(&h.passed), 2);
    ok(cudaStreamDestroy(blocking));
    ok(cudaStreamDestroy(free_one));
    assert_int_equal(cudaStreamDestroy(NULL), cudaErrorInvalidResourceHandle);
}

/* ---- Memory ---- */

static void copies_go_everywhere(void **state)
{
    (void)state;
    enum { COUNT = 100000 };
    ok(cudaSetDevice(0));
    cudaStream_t stream = make_stream(cudaStreamNonBlocking);
    int *host = malloc(COUNT * sizeof *host), *pinned, *device, small = 7;
    gate g = {0};
    ok(cudaMallocHost((void **)&pinned, COUNT * sizeof *pinned));
    ok(cudaMalloc((void **)&device, COUNT * sizeof *device));
    for (int i = 0; i < COUNT; i++) host[i] = i;
    ok(cudaMemcpy(device, host, COUNT * sizeof *host, cudaMemcpyHostToDevice));
    hold(stream, &g);
    ok(cudaMemcpyAsync(device, &small, sizeof small, cudaMemcpyHostToDevice, stream));
    small = 8; /* memory that is not pinned has been read */
    ok(cudaMemcpyAsync(pinned, device, COUNT * sizeof *pinned, cudaMemcpyDefault, stream));
    ok(cudaMemsetAsync(device, 0, sizeof *device, stream));
    atomic_store(&g.open, 1);
    ok(cudaMemcpyAsync(host, device, sizeof *device, cudaMemcpyDeviceToHost, stream)); /* waits */
    assert_int_equal(host[0], 0);
    assert_int_equal(pinned[0], 7);
    assert_int_equal(pinned[COUNT - 1], COUNT - 1);
    assert_int_equal(cudaMemcpy(device, host, (COUNT + 1) * sizeof *host, cudaMemcpyHostToDevice),
                     cudaErrorInvalidValue);
    assert_int_equal(cudaMemcpy(host, host + 1, 4, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
    assert_int_equal(cudaGetLastError(), cudaErrorInvalidValue);
    ok(cudaGetLastError());
    ok(cudaStreamDestroy(stream));
    ok(cudaFree(device));
    assert_int_equal(cudaFree(device), cudaErrorInvalidValue);
    ok(cudaFreeHost(pinned));
    free(host);
}

static void addresses_are_known(void **state)
{
    (void)state;
    struct cudaPointerAttributes a;
    char *device, *managed, *own = aligned_alloc(4096, 4096);
    size_t before, after, total;
    ok(cudaSetDevice(2));
    ok(cudaMemGetInfo(&before, &total));
    ok(cudaMalloc((void **)&device, 1 << 20));
    assert_int_equal((uintptr_t)device % 512, 256);
    ok(cudaMallocManaged((void **)&managed, 100, cudaMemAttachGlobal));
    ok(cudaMemGetInfo(&after, &total));
    assert_true(after + (1 << 20) <= before);
    ok(cudaSetDevice(0));
    ok(cudaPointerGetAttributes(&a, device + 5));
    assert_int_equal(a.type, cudaMemoryTypeDevice);
    assert_int_equal(a.device, 2);
    assert_ptr_equal(a.devicePointer, device + 5);
    ok(cudaPointerGetAttributes(&a, managed));
    assert_int_equal(a.type, cudaMemoryTypeManaged);
    ok(cudaPointerGetAttributes(&a, own));
    assert_int_equal(a.type, cudaMemoryTypeUnregistered);
    ok(cudaHostRegister(own, 4096, cudaHostRegisterDefault));
    assert_int_equal(cudaHostRegister(own + 8, 8, cudaHostRegisterDefault), cudaErrorHostMemoryAlreadyRegistered);
    ok(cudaPointerGetAttributes(&a, own));
    assert_int_equal(a.type, cudaMemoryTypeHost);
    ok(cudaHostUnregister(own));
    assert_int_equal(cudaHostUnregister(own), cudaErrorHostMemoryNotRegistered);
    ok(cudaFree(managed));
    ok(cudaFree(device));
    void *too_much = own;
    assert_int_equal(cudaMalloc(&too_much, total + 1), cudaErrorMemoryAllocation);
    assert_null(too_much);
    free(own);
}

static void properties_can_be_divided_by(void **state)
{
    (void)state;
    struct cudaDeviceProp p;
    int count, value;
    char id[16];
    ok(cudaGetDeviceCount(&count));
    assert_int_equal(count, 8);
    ok(cudaGetDeviceProperties(&p, 3));
    assert_true(p.warpSize && p.multiProcessorCount && p.maxThreadsPerMultiProcessor && p.maxThreadsPerBlock &&
                p.sharedMemPerBlock && p.sharedMemPerMultiprocessor && p.regsPerBlock && p.totalGlobalMem &&
                p.l2CacheSize && p.memoryBusWidth && p.maxBlocksPerMultiProcessor && p.major);
    ok(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 3));
    assert_int_equal(value, p.multiProcessorCount);
    ok(cudaDeviceGetPCIBusId(id, sizeof id, 3));
    ok(cudaDeviceGetByPCIBusId(&value, id));
    assert_int_equal(value, 3);
    assert_int_equal(cudaGetDeviceProperties(&p, 8), cudaErrorInvalidDevice);
}

/* ---- The driver ---- */

static void driver_and_runtime_are_one(void **state)
{
    (void)state;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(driver);
    assert_non_null(dlsym(driver, "cuStreamWriteValue64_v2"));
    CUcontext context, found;
    CUdevice device;
    int count;
    ok(cuInit(0));
    ok(cuDeviceGetCount(&count));
    assert_int_equal(count, 8);
    ok(cudaSetDevice(0));
    ok(cuDeviceGet(&device, 3));
    ok(cuDevicePrimaryCtxRetain(&context, device));
    ok(cuCtxPushCurrent(context));
    int now = -1;
    ok(cudaGetDevice(&now));
    assert_int_equal(now, 3);
    CUstream stream;
    CUevent begin, end;
    CUdeviceptr memory;
    void *mapped;
    float ms;
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ok(cuEventCreate(&begin, CU_EVENT_DEFAULT));
    ok(cudaEventCreate(&end));
    ok(cuMemAlloc(&memory, 64));
    ok(cuMemAllocHost(&mapped, 64));
    ok(cuCtxPopCurrent(&found));
    assert_ptr_equal(found, context);
    ok(cudaGetDevice(&now));
    assert_int_equal(now, 0);
    ok(cuStreamGetCtx(stream, &found));
    assert_ptr_equal(found, context);
    memset(mapped, 0, 64);
    ok(cuEventRecord(begin, stream));
    ok(cuMemsetD8Async(memory, 0x11, 64, stream));
    ok(cuStreamWriteValue64(stream, (CUdeviceptr)mapped, 0x123456789abcull, 0));
    ok(cudaMemcpyAsync((char *)mapped + 8, (void *)(uintptr_t)memory, 8, cudaMemcpyDefault, stream));
    ok(cudaEventRecord(end, stream));
    ok(cuEventSynchronize(end));
    ok(cuEventElapsedTime(&ms, begin, end));
    assert_true(ms >= 0);
    assert_true(((uint64_t *)mapped)[0] == 0x123456789abcull && ((uint64_t *)mapped)[1] == 0x1111111111111111ull);
    unsigned type = 0;
    ok(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory + 5));
    assert_int_equal(type, CU_MEMORYTYPE_DEVICE);
    ok(cudaFree((void *)(uintptr_t)memory));
    ok(cuMemFreeHost(mapped));
    ok(cuEventDestroy(begin));
    ok(cuEventDestroy(end));
    ok(cuStreamDestroy(stream));
    ok(cuDevicePrimaryCtxRelease(device));
}

static void *without_context(void *argument)
{
    CUcontext context = (CUcontext)argument;
    CUstream stream;
    ok(cuCtxGetCurrent(&context));
    assert_null(context);
    assert_int_equal(cuStreamCreate(&stream, 0), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(cuCtxPopCurrent(NULL), CUDA_ERROR_INVALID_CONTEXT);
    ok(cudaSetDevice(1));
    ok(cuCtxGetCurrent(&context));
    assert_non_null(context);
    return NULL;
}

static void a_new_thread_has_no_context(void **state)
{
    (void)state;
    pthread_t thread;
    ok(pthread_create(&thread, NULL, without_context, NULL));
    ok(pthread_join(thread, NULL));
}

static void functions_are_found_by_name_and_version(void **state)
{
    (void)state;
    void *function = NULL;
    enum cudaDriverEntryPointQueryResult found;
    ok(cudaGetDriverEntryPointByVersion("cuMemAlloc", &function, 12000, 0, &found));
    assert_int_equal(found, cudaDriverEntryPointSuccess);
    assert_ptr_equal(function, dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuMemAlloc_v2"));
    ok(cudaGetDriverEntryPointByVersion("cuNoSuchFunction", &function, 12000, 0, &found));
    assert_int_equal(found, cudaDriverEntryPointSymbolNotFound);
    assert_null(function);
    assert_int_equal(cuGetProcAddress("cuCtxPushCurrent", &function, 3000, 0, NULL), CUDA_ERROR_NOT_FOUND);
}

/* ---- Kernels ---- */

static void scale(const hostcuda_launch *launch)
{
    float *x = *(float **)launch->arguments[0], by = *(float *)launch->arguments[1];
    for (unsigned i = 0; i < launch->grid[0] * launch->block[0]; i++) x[i] *= by;
}

static void registered_kernels_run(void **state)
{
    (void)state;
    static const size_t sizes[] = {sizeof(float *), sizeof(float), 0};
    CUmodule module;
    CUfunction function;
    float *x, by = 3;
    gate g = {0};
    hostcuda_register_kernel("test_scale", scale, sizes);
    ok(cudaSetDevice(0));
    cudaStream_t stream = make_stream(cudaStreamNonBlocking);
    ok(cudaMallocManaged((void **)&x, 64 * sizeof *x, cudaMemAttachGlobal));
    for (int i = 0; i < 64; i++) x[i] = (float)i;
    assert_int_equal(cuModuleLoadData(&module, "no image"), CUDA_ERROR_INVALID_IMAGE);
    ok(cuModuleLoadData(&module, "hostcuda"));
    assert_int_equal(cuModuleGetFunction(&function, module, "test_missing"), CUDA_ERROR_NOT_FOUND);
    ok(cuModuleGetFunction(&function, module, "test_scale"));
    float once = 1; /* the first launch waits for what the stream holds */
    ok(cuLaunchKernel(function, 2, 1, 1, 32, 1, 1, 0, stream, (void *[]){&x, &once}, NULL));
    hold(stream, &g);
    ok(cuLaunchKernel(function, 2, 1, 1, 32, 1, 1, 0, stream, (void *[]){&x, &by}, NULL));
    by = 5; /* arguments have been copied */
    atomic_store(&g.open, 1);
    ok(cudaStreamSynchronize(stream));
    for (int i = 0; i < 64; i++) assert_true(x[i] == 3 * (float)i);
    static const unsigned beyond[][6] = {{0, 1, 1, 32, 1, 1},       {1, 65536, 1, 32, 1, 1}, {1, 1, 65536, 32, 1, 1},
                                         {1u << 31, 1, 1, 1, 1, 1}, {1, 1, 1, 1025, 1, 1},   {1, 1, 1, 1, 1, 65}};
    for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++) {
        const unsigned *b = beyond[i];
        assert_int_equal(
            cuLaunchKernel(function, b[0], b[1], b[2], b[3], b[4], b[5], 0, stream, (void *[]){&x, &by}, NULL),
            CUDA_ERROR_INVALID_VALUE);
    }
    assert_int_equal(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 49153, stream, (void *[]){&x, &by}, NULL),
                     CUDA_ERROR_INVALID_VALUE);
    ok(cuModuleUnload(module));
    assert_int_equal(cudaLaunchKernel((void *)&by, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, stream),
                     cudaErrorInvalidDeviceFunction);
    ok(cudaFree(x));
    ok(cudaStreamDestroy(stream));
}

/* Programs that bind all names at once, as Python's modules do, are not loaded if one is missing. */
static void imported_names_exist(void **state)
{
    (void)state;
    char name[128];
    int count = 0;
    void *runtime = dlopen("libcudart.so.13", RTLD_NOW), *driver = dlopen("libcuda.so.1", RTLD_NOW);
    FILE *list = fopen(HOSTCUDA_IMPORTS, "r");
    assert_non_null(list);
    while (fgets(name, sizeof name, list)) {
        if (name[0] == '#') continue;
        name[strcspn(name, "\n")] = 0;
        const bool of_runtime = !strncmp(name, "cuda", 4) || name[0] == '_';
        if (!(of_runtime ? dlvsym(runtime, name, "libcudart.so.13") : dlsym(driver, name))) fail_msg("%s", name);
        count++;
    }
    assert_true(count > 150);
    fclose(list);
    dlclose(runtime);
    dlclose(driver);
}

static void others_are_not_supported(void **state)
{
    (void)state;
    cudaError_t (*missing)(void *, int) = (cudaError_t(*)(void *, int))dlsym(RTLD_DEFAULT, "cudaIpcGetMemHandle");
    assert_non_null(missing);
    assert_int_equal(missing(NULL, 0), cudaErrorNotSupported);
    assert_int_equal(missing(NULL, 0), cudaErrorNotSupported);
    assert_string_equal(cudaGetErrorName(cudaErrorNotSupported), "cudaErrorNotSupported");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_held_stream_blocks_no_call),
        cmocka_unit_test(waits_keep_their_record),
        cmocka_unit_test(events_tell_times),
        cmocka_unit_test(devices_wait_for_their_own_streams),
        cmocka_unit_test(default_stream_waits_for_blocking_streams),
        cmocka_unit_test(copies_go_everywhere),
        cmocka_unit_test(addresses_are_known),
        cmocka_unit_test(properties_can_be_divided_by),
        cmocka_unit_test(driver_and_runtime_are_one),
        cmocka_unit_test(a_new_thread_has_no_context),
        cmocka_unit_test(functions_are_found_by_name_and_version),
        cmocka_unit_test(registered_kernels_run),
        cmocka_unit_test(imported_names_exist),
        cmocka_unit_test(others_are_not_supported),
    };
    unsetenv("HOSTCUDA_DEVICES"); /* a user's settings are not the test's */
    unsetenv("HOSTCUDA_MEMORY");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
