/* The device cuda must say so if there is no GPU, the GPU is too old, its memory is too small, or a kernel has failed.
 */
#include "lib/device/device.h"
#include "lib/kernels/gelu/gelu.h"
#include "lib/kernels/gemm/gemm.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <cuda_runtime_api.h>
#include <emulated.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void assert_says(const char *what)
{
    if (!strstr(sluice_last_error(), what)) fail_msg("\"%s\" is not in \"%s\"", what, sluice_last_error());
}

static void no_gpu_is_said(void **state)
{
    (void)state;
    slc_device *device = NULL;
    setenv("SLUICE_EMULATED_DEVICES", "0", 1);
    assert_int_equal(slc_device_open("cuda", &device), SLUICE_ERR_UNSUPPORTED);
    assert_says("device \"cuda\": no GPU on this machine (no CUDA-capable device is detected); use --device cpu");
    unsetenv("SLUICE_EMULATED_DEVICES");
    setenv("SLUICE_EMULATED_CAPABILITY", "75", 1);
    assert_int_equal(slc_device_open("cuda", &device), SLUICE_ERR_UNSUPPORTED);
    assert_says("device \"cuda\": emulated has compute capability 7.5");
    unsetenv("SLUICE_EMULATED_CAPABILITY");
    setenv("SLUICE_CUDA_DEVICE", "3", 1);
    assert_int_equal(slc_device_open("cuda", &device), SLUICE_ERR_ARGUMENT);
    assert_says("SLUICE_CUDA_DEVICE=3, but there are 1 GPUs");
    unsetenv("SLUICE_CUDA_DEVICE");
    assert_null(device);
    assert_string_equal(slc_device_describe("cuda"), "cuda (emulated)");
}

static void the_gpu_is_described(void **state)
{
    (void)state;
    slc_device *device;
    slc_device_facts facts;
    slc_segment segment;
    assert_int_equal(slc_device_open("cuda", &device), SLUICE_OK);
    assert_int_equal(slc_segment_create(device, 8192, &segment), SLUICE_OK);
    assert_int_equal(slc_device_get_facts(device, &facts), SLUICE_OK);
    assert_string_equal(facts.name, "emulated");
    assert_int_equal(facts.capability, 90);
    assert_int_equal(facts.memory_bytes, 1 << 30);
    assert_int_equal(facts.free_bytes, (1 << 30) - 8192);
    slc_segment_destroy(&segment);
    slc_device_close(device);
}

static void keep_launch(void *context, const slc_kernel_launch *launch)
{
    *(slc_kernel_launch *)context = *launch;
}

static void launches_are_told(void **state)
{
    (void)state;
    slc_device *device;
    sluice_stream stream;
    slc_segment segment;
    slc_kernel_launch seen = {0};
    assert_int_equal(slc_device_open("cuda", &device), SLUICE_OK);
    assert_int_equal(slc_stream_create(device, 1, &stream), SLUICE_OK);
    assert_int_equal(slc_segment_create(device, 65536, &segment), SLUICE_OK);
    slc_device_watch_launches(device, keep_launch, &seen);
    assert_int_equal(slc_gelu_forward(&stream, SLC_GELU_TANH, SLUICE_FP32, 8192, segment.base, segment.base),
                     SLUICE_OK);
    assert_non_null(strstr(seen.kernel, "gelu"));
    assert_true(seen.known);
    assert_int_equal(seen.threads, 256);
    assert_int_equal(seen.blocks, 4); /* a thread takes eight elements */
    assert_int_equal(seen.shared_bytes, 0);
    assert_false(seen.compiled);
    assert_int_equal(slc_fill_zero(&stream, segment.base, 64), SLUICE_OK);
    assert_string_equal(seen.kernel, "fill");
    assert_false(seen.known);
    slc_device_watch_launches(device, NULL, NULL);
    seen.kernel = "none";
    assert_int_equal(slc_fill_zero(&stream, segment.base, 64), SLUICE_OK);
    assert_string_equal(seen.kernel, "none");
    assert_int_equal(slc_stream_synchronize(&stream), SLUICE_OK);
    slc_segment_destroy(&segment);
    slc_stream_destroy(&stream);
    slc_device_close(device);
}

static uint32_t chosen_gpu(void)
{
    slc_device *device;
    slc_device_facts facts;
    assert_int_equal(slc_device_open("cuda", &device), SLUICE_OK);
    assert_int_equal(slc_device_get_facts(device, &facts), SLUICE_OK);
    slc_device_close(device);
    return facts.number;
}

/* The local rank that a launcher says, modulo the number of GPUs, chooses the GPU. If several launchers have set their
 * variables, the one in the row below counts that comes last. */
static void the_local_rank_chooses_the_gpu(void **state)
{
    (void)state;
    static const char *const names[] = {"SLURM_LOCALID", "MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "LOCAL_RANK"};
    setenv("SLUICE_EMULATED_DEVICES", "8", 1);
    assert_int_equal(chosen_gpu(), 0);
    for (uint32_t i = 0; i < 4; i++) {
        const char value[] = {'9', (char)('0' + i), 0}; /* 90 + i */
        setenv(names[i], value, 1);
        assert_int_equal(chosen_gpu(), (90 + i) % 8);
    }
    setenv("SLUICE_CUDA_DEVICE", "7", 1);
    assert_int_equal(chosen_gpu(), 7);
    unsetenv("SLUICE_CUDA_DEVICE");
    for (uint32_t i = 0; i < 4; i++) unsetenv(names[i]);
    unsetenv("SLUICE_EMULATED_DEVICES");
}

static void too_little_memory_is_said(void **state)
{
    (void)state;
    slc_device *device;
    slc_segment segment;
    setenv("LOCAL_RANK", "5", 1);
    assert_int_equal(slc_device_open("cuda", &device), SLUICE_OK);
    assert_int_equal(slc_segment_create(device, (size_t)1 << 40, &segment), SLUICE_ERR_MEMORY);
    assert_says("1099511627776 bytes do not fit: 1073741824 of 1073741824 are free on GPU 0 (chosen by LOCAL_RANK)");
    assert_int_equal(slc_segment_create(device, 1 << 20, &segment), SLUICE_OK); /* the failure is not kept */
    assert_int_equal(slc_segment_map(device, 0, 4096, &segment), SLUICE_ERR_UNSUPPORTED);
    slc_segment_destroy(&segment);
    slc_device_close(device);
    unsetenv("LOCAL_RANK");
}

static void wait_for_test(void *open)
{
    while (!atomic_load((atomic_int *)open)) usleep(100);
}

/* Asking for a time that is not there yet is an error, and the next launch must not be blamed for it. */
static void a_time_that_is_not_there_blames_no_launch(void **state)
{
    (void)state;
    slc_device *device;
    sluice_stream stream, held;
    slc_segment segment;
    slc_event begin, end;
    double seconds;
    static atomic_int open;
    assert_int_equal(slc_device_open("cuda", &device), SLUICE_OK);
    assert_int_equal(slc_stream_create(device, 1, &stream), SLUICE_OK);
    assert_int_equal(slc_stream_create(device, 1, &held), SLUICE_OK);
    assert_int_equal(slc_segment_create(device, 4096, &segment), SLUICE_OK);
    assert_int_equal(slc_gelu_forward(&stream, SLC_GELU_TANH, SLUICE_FP32, 1024, segment.base, segment.base),
                     SLUICE_OK);
    assert_int_equal(slc_event_create(device, &begin), SLUICE_OK);
    assert_int_equal(slc_event_create(device, &end), SLUICE_OK);
    assert_int_equal(slc_event_record(&held, &begin), SLUICE_OK);
    assert_int_equal(cudaLaunchHostFunc(slc_stream_native(&held), wait_for_test, &open), cudaSuccess);
    assert_int_equal(slc_event_record(&held, &end), SLUICE_OK);
    const bool done = slc_event_done(&end);
    const sluice_status elapsed = slc_event_elapsed(&begin, &end, &seconds);
    const sluice_status launched =
        slc_gelu_forward(&stream, SLC_GELU_TANH, SLUICE_FP32, 1024, segment.base, segment.base);
    atomic_store(&open, 1);
    assert_false(done);
    assert_int_equal(elapsed, SLUICE_ERR_ORDER);
    assert_int_equal(launched, SLUICE_OK);
    assert_int_equal(slc_event_synchronize(&end), SLUICE_OK);
    assert_int_equal(slc_event_elapsed(&begin, &end, &seconds), SLUICE_OK);
    assert_int_equal(slc_stream_synchronize(&stream), SLUICE_OK);
    slc_event_destroy(&begin);
    slc_event_destroy(&end);
    slc_segment_destroy(&segment);
    slc_stream_destroy(&held);
    slc_stream_destroy(&stream);
    slc_device_close(device);
}

static void a_first_stream_has_priority(void **state)
{
    (void)state;
    slc_device *device;
    sluice_stream stream, first;
    int priority, of_first;
    assert_int_equal(slc_device_open("cuda", &device), SLUICE_OK);
    assert_int_equal(slc_stream_create(device, 1, &stream), SLUICE_OK);
    assert_int_equal(slc_stream_create_first(device, 1, &first), SLUICE_OK);
    assert_int_equal(cudaStreamGetPriority(slc_stream_native(&stream), &priority), cudaSuccess);
    assert_int_equal(cudaStreamGetPriority(slc_stream_native(&first), &of_first), cudaSuccess);
    assert_true(of_first < priority); /* smaller numbers come first */
    slc_stream_destroy(&stream);
    slc_stream_destroy(&first);
    slc_device_close(device);
}

static void a_product_without_algorithm_is_said(void **state)
{
    (void)state;
    slc_device *device;
    sluice_stream stream;
    slc_segment segment;
    uint64_t bytes;
    const slc_gemm_shape shape = {.dtype = SLUICE_FP32, .out = SLUICE_FP32, .m = 3, .n = 5, .k = 7};
    assert_int_equal(slc_device_open("cuda", &device), SLUICE_OK);
    assert_int_equal(slc_stream_create(device, 1, &stream), SLUICE_OK);
    assert_int_equal(slc_gemm_workspace_bytes(&stream, &shape, &bytes), SLUICE_OK);
    assert_int_equal(slc_segment_create(device, 4096 + 192 + bytes, &segment), SLUICE_OK);
    char *base = segment.base;
    const slc_gemm_operands operands = {.a = base, .b = base + 1024, .c = base + 2048};
    setenv("SLUICE_EMULATED_PRODUCTS", "0", 1);
    assert_int_equal(slc_gemm(&stream, &shape, &operands, base + 4096, bytes), SLUICE_ERR_UNSUPPORTED);
    assert_says("cublasLt has no algorithm for 3 x 5 x 7");
    unsetenv("SLUICE_EMULATED_PRODUCTS");
    for (size_t at = 4096; at <= 4096 + 192; at += 64) { /* a workspace may begin anywhere at 64 bytes */
        assert_int_equal(slc_gemm(&stream, &shape, &operands, base + at, bytes), SLUICE_OK);
    }
    assert_int_equal(slc_stream_synchronize(&stream), SLUICE_OK);
    slc_segment_destroy(&segment);
    slc_stream_destroy(&stream);
    slc_device_close(device);
}

static void failed_kernels_are_said(void **state)
{
    (void)state;
    slc_device *device;
    sluice_stream stream;
    slc_segment segment;
    setenv("SLUICE_CUDA_CHECK", "on", 1);
    assert_int_equal(slc_device_open("cuda", &device), SLUICE_OK);
    assert_int_equal(slc_stream_create(device, 1, &stream), SLUICE_OK);
    assert_int_equal(slc_segment_create(device, 4096, &segment), SLUICE_OK);
    emulated_fail(1, cudaErrorIllegalAddress);
    assert_int_equal(slc_gelu_forward(&stream, SLC_GELU_TANH, SLUICE_FP32, 1024, segment.base, segment.base),
                     SLUICE_ERR_SYSTEM);
    assert_says("an illegal memory access was encountered");
    assert_says("gelu");
    assert_int_equal(slc_stream_synchronize(&stream), SLUICE_ERR_SYSTEM);
    assert_int_equal(slc_fill_zero(&stream, segment.base, 64), SLUICE_ERR_SYSTEM);
    slc_segment_destroy(&segment);
    slc_stream_destroy(&stream);
    slc_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_gpu_is_said),
        cmocka_unit_test(the_gpu_is_described),
        cmocka_unit_test(launches_are_told),
        cmocka_unit_test(the_local_rank_chooses_the_gpu),
        cmocka_unit_test(too_little_memory_is_said),
        cmocka_unit_test(a_time_that_is_not_there_blames_no_launch),
        cmocka_unit_test(a_first_stream_has_priority),
        cmocka_unit_test(a_product_without_algorithm_is_said),
        cmocka_unit_test(failed_kernels_are_said), /* the last: nothing works after it */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
