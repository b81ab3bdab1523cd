/* The emulated CUDA runtime itself: what its language and its streams do, and that each planted fault is found by what
 * this build has (the runtime itself, the address and undefined sanitizers, or the thread sanitizer), while the same
 * program without the fault is left alone. */
#include "tests/cuda_emulated/language.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <cublasLt.h>
#include <emulated.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ok(call) assert_int_equal(call, cudaSuccess)
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* ---- Planted faults ---- */

enum { EVERYWHERE = 0, ADDRESS = 1, THREAD = 2 };
#if defined(__SANITIZE_ADDRESS__)
enum { THIS_BUILD = ADDRESS };
#elif defined(__SANITIZE_THREAD__)
enum { THIS_BUILD = THREAD };
#else
enum { THIS_BUILD = EVERYWHERE };
#endif

static const struct {
    const char *name;
    int where; /* the builds that find it */
    bool guard;
    const char *says;
} faults[] = {
    {"missing_syncthreads", THREAD, false, "data race"},
    {"add_between_barriers", THREAD, false, "data race"},
    {"hand_on_in_warp", THREAD, false, "data race"},
    {"missing_event", THREAD, false, "data race"},
    {"reused_host_memory", THREAD, false, "data race"},
    {"past_the_end", ADDRESS, false, "use-after-poison"},
    {"unaligned_vector", ADDRESS, false, "misaligned address"},
    {"host_reads_device", EVERYWHERE, true, ""},
    {"deadlock", EVERYWHERE, false, "threads of a block wait for each other for ever"},
    {"ended_lanes", EVERYWHERE, false, "a mask names lanes that have ended"},
    {"different_barriers", EVERYWHERE, false, "threads of a block wait at different __syncthreads"},
    {"unwaited_copy", EVERYWHERE, false, "copies that nobody waited for"},
    {"blocks_race", THREAD, false, "data race"},
    {"shared_too_far", ADDRESS, false, "use-after-poison"},
    {"misaligned_copy", EVERYWHERE, false, "cp.async: an address is not 16-byte aligned"},
    {"misaligned_ldmatrix", EVERYWHERE, false, "ldmatrix: a row is not 16-byte aligned"},
    {"pageable_copy", EVERYWHERE, false, "nor pinned"},
    {"too_much_shared", EVERYWHERE, false, "launch: invalid argument"},
    {"different_shuffles", EVERYWHERE, false, "lanes of a warp do an operation together at different places"},
    {"late_load", EVERYWHERE, false, "a deadlock with all-reduce of 7 elements"},
    {"lucky_load", EVERYWHERE, false, "kernel double_all: its first launch comes after the process has begun"},
};

/* Runs the program; returns its exit status and the beginning of what it wrote. */
static int run_planted(const char *name, bool right, bool guard, int seed, char *output, size_t bytes)
{
    char command[1024];
    snprintf(command, sizeof command,
             "TSAN_OPTIONS=$TSAN_OPTIONS:atexit_sleep_ms=0 SLUICE_EMULATED_GUARD=%d SLUICE_EMULATED_SEED=%d "
             "timeout 120 %s %s %s 2>&1",
             guard, seed, SLUICE_EMULATED_PLANTED, name, right ? "right" : "");
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    size_t got = 0, now;
    while (got + 1 < bytes && (now = fread(output + got, 1, bytes - 1 - got, pipe)) > 0) got += now;
    output[got] = 0;
    char rest[4096];
    while (fread(rest, 1, sizeof rest, pipe) > 0) {
    }
    return pclose(pipe);
}

static void planted_faults_are_found(void **state)
{
    (void)state;
    static char output[1 << 16];
    int found = 0;
    for (size_t i = 0; i < COUNT_OF(faults); i++) {
        if (faults[i].where != EVERYWHERE && faults[i].where != THIS_BUILD) continue;
        for (int seed = 0; seed < 3; seed++) {
            int status = run_planted(faults[i].name, false, faults[i].guard, seed, output, sizeof output);
            if (!status || !strstr(output, faults[i].says))
                fail_msg("%s, seed %d: status %d, says\n%s", faults[i].name, seed, status, output);
        }
        found++;
    }
    print_message("%d of %zu planted faults are for this build to find\n", found, COUNT_OF(faults));
}

static void right_programs_are_left_alone(void **state)
{
    (void)state;
    static char output[1 << 16];
    for (size_t i = 0; i < COUNT_OF(faults); i++) {
        int status = run_planted(faults[i].name, true, faults[i].guard, (int)i, output, sizeof output);
        if (status) fail_msg("%s without its fault: status %d, says\n%s", faults[i].name, status, output);
    }
}

/* ---- The language ---- */

static cudaStream_t make_stream(void)
{
    cudaStream_t stream;
    ok(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
}

static void *make_pinned(size_t bytes)
{
    void *at;
    ok(cudaHostAlloc(&at, bytes, cudaHostAllocDefault));
    return at;
}

static unsigned expected_result(unsigned block, unsigned thread, unsigned blocks, unsigned threads, int result)
{
    const unsigned lane = thread % 32, low = lane < 16;
    switch (result) {
    case 0: return 15;
    case 1: return 3 * (lane / 8 * 8 + (lane + 1) % 8);
    case 2: return lane ^ 3;
    case 3: return lane % 16 + 2 < 16 ? lane + 2 : lane;
    case 4: return low ? 120 : 120 + 256;
    case 5: return 31;
    case 6: return 4;
    case 7: return 0x49249249u;
    case 8: return !low;
    case 9: return low;
    case 10: return 31;
    case 11: return 64;
    case 12: return block * threads + thread;
    default: return blocks;
    }
}

static void warps_do_as_the_manual_says(void **state)
{
    (void)state;
    enum { BLOCKS = 3, THREADS = 96 };
    cudaStream_t stream = make_stream();
    unsigned *out = make_pinned(sizeof *out * BLOCKS * THREADS * LANGUAGE_RESULTS);
    ok(language_warp_operations(stream, BLOCKS, THREADS, out));
    ok(cudaStreamSynchronize(stream));
    for (unsigned b = 0; b < BLOCKS; b++)
        for (int r = 0; r < LANGUAGE_RESULTS; r++)
            for (unsigned t = 0; t < THREADS; t++)
                assert_int_equal(out[(b * LANGUAGE_RESULTS + (unsigned)r) * THREADS + t],
                                 expected_result(b, t, BLOCKS, THREADS, r));
    ok(cudaFreeHost(out));
    ok(cudaStreamDestroy(stream));
}

/* Small integers: exact in bf16 and fp16, and so are their sums. */
static void tensor_cores_multiply(void **state)
{
    (void)state;
    cudaStream_t stream = make_stream();
    uint16_t *a = make_pinned(256 * sizeof *a), *b = make_pinned(256 * sizeof *b);
    float *c = make_pinned(256 * sizeof *c);
    for (int halves = 0; halves < 2; halves++) {
        float wide[2][256];
        for (int i = 0; i < 512; i++) {
            int value = (i * 7 + i / 13) % 4 - 1; /* -1, 0, 1 or 2 */
            const uint16_t bf16[] = {0xbf80, 0, 0x3f80, 0x4000}, fp16[] = {0xbc00, 0, 0x3c00, 0x4000};
            wide[i / 256][i % 256] = (float)value;
            (i < 256 ? a : b)[i % 256] = halves ? fp16[value + 1] : bf16[value + 1];
        }
        ok(language_multiply(stream, a, b, c, halves));
        ok(cudaStreamSynchronize(stream));
        for (int i = 0; i < 16; i++)
            for (int j = 0; j < 16; j++) {
                float sum = 0;
                for (int k = 0; k < 16; k++) sum += wide[0][16 * i + k] * wide[1][16 * k + j];
                assert_true(c[16 * i + j] == sum);
            }
    }
    ok(cudaFreeHost(a));
    ok(cudaFreeHost(b));
    ok(cudaFreeHost(c));
    ok(cudaStreamDestroy(stream));
}

static void atomics_and_fences_join_blocks(void **state)
{
    (void)state;
    enum { BLOCKS = 9, THREADS = 64 };
    cudaStream_t stream = make_stream();
    unsigned *words = make_pinned(4 * sizeof *words);
    float *out = make_pinned((1 + BLOCKS) * sizeof *out);
    words[0] = words[2] = words[3] = 0, words[1] = ~0u;
    ok(language_add_blocks(stream, BLOCKS, THREADS, words, out));
    ok(cudaStreamSynchronize(stream));
    assert_int_equal(words[0], BLOCKS);
    assert_int_equal(words[1], 7);
    assert_int_equal(words[2], BLOCKS - 1);
    assert_int_equal(words[3], (1u << BLOCKS) - 1);
    assert_true(out[0] == BLOCKS * THREADS * (THREADS + 1) / 2.0f);
    ok(cudaFreeHost(words));
    ok(cudaFreeHost(out));
    ok(cudaStreamDestroy(stream));
}

/* ---- Memory, streams and events ---- */

static void fresh_memory_is_nan(void **state)
{
    (void)state;
    cudaStream_t stream = make_stream();
    void *fresh;
    unsigned *out = make_pinned(2 * sizeof *out);
    ok(cudaMalloc(&fresh, 64));
    ok(language_read_fresh(stream, fresh, out));
    ok(cudaStreamSynchronize(stream));
    assert_true(out[0] && out[1]);
    ok(cudaFree(fresh));
    ok(cudaFreeHost(out));
    ok(cudaStreamDestroy(stream));
}

static void a_device_has_limits(void **state)
{
    (void)state;
    size_t before, after, total;
    void *at, *more = NULL;
    ok(cudaMemGetInfo(&before, &total));
    ok(cudaMalloc(&at, 1 << 20));
    ok(cudaMemGetInfo(&after, &total));
    assert_int_equal(before - after, 1 << 20);
    assert_int_equal((uintptr_t)at % 512, 256);
    assert_int_equal(cudaMalloc(&more, total), cudaErrorMemoryAllocation);
    assert_null(more);
    assert_int_equal(cudaGetLastError(), cudaErrorMemoryAllocation);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    ok(cudaFree(at));

    cudaStream_t stream = make_stream();
    assert_int_equal(language_scale(stream, 1, 1025, 0, 1, NULL), cudaErrorInvalidConfiguration);
    assert_int_equal(language_scale(stream, 0, 32, 0, 1, NULL), cudaErrorInvalidConfiguration);
    ok(cudaStreamDestroy(stream));
}

static void events_order_streams_and_tell_times(void **state)
{
    (void)state;
    enum { COUNT = 1 << 12, ROUNDS = 6 };
    cudaStream_t a = make_stream(), b = make_stream();
    cudaEvent_t events[2 * ROUNDS];
    for (int i = 0; i < 2 * ROUNDS; i++) ok(cudaEventCreateWithFlags(&events[i], cudaEventDefault));
    float *host = make_pinned(COUNT * sizeof *host);
    void *at;
    ok(cudaMalloc(&at, COUNT * sizeof *host));
    for (int i = 0; i < COUNT; i++) host[i] = 1;
    ok(cudaMemcpyAsync(at, host, COUNT * sizeof *host, cudaMemcpyHostToDevice, a));
    for (int i = 0; i < ROUNDS; i++) {
        ok(language_scale(a, COUNT / 128, 32, COUNT, 3, at));
        ok(cudaEventRecord(events[2 * i], a));
        ok(cudaStreamWaitEvent(b, events[2 * i], 0));
        ok(language_scale(b, COUNT / 128, 32, COUNT, 0.5f, at));
        ok(cudaEventRecord(events[2 * i + 1], b));
        ok(cudaStreamWaitEvent(a, events[2 * i + 1], 0));
    }
    ok(cudaMemcpyAsync(host, at, COUNT * sizeof *host, cudaMemcpyDeviceToHost, a));
    ok(cudaStreamSynchronize(a));
    for (int i = 0; i < COUNT; i++) assert_true(host[i] == 11.390625f); /* 1.5^6 */
    float ms = -1;
    ok(cudaEventQuery(events[2 * ROUNDS - 1]));
    ok(cudaEventElapsedTime(&ms, events[0], events[2 * ROUNDS - 1]));
    assert_true(ms > 0);
    for (int i = 0; i < 2 * ROUNDS; i++) ok(cudaEventDestroy(events[i]));
    ok(cudaFree(at));
    ok(cudaFreeHost(host));
    ok(cudaStreamDestroy(a));
    ok(cudaStreamDestroy(b));
}

static void wait_for_test(void *open)
{
    while (!*(volatile _Atomic int *)open) usleep(100);
}

/* cudaErrorNotReady, the answer about an event that is not there yet, is kept as the thread's last error. */
static void not_ready_is_kept(void **state)
{
    (void)state;
    static _Atomic int open;
    cudaStream_t stream = make_stream();
    cudaEvent_t event;
    float ms;
    ok(cudaEventCreateWithFlags(&event, cudaEventDefault));
    ok(cudaLaunchHostFunc(stream, wait_for_test, &open));
    ok(cudaEventRecord(event, stream));
    assert_int_equal(cudaEventQuery(event), cudaErrorNotReady);
    assert_int_equal(cudaGetLastError(), cudaErrorNotReady);
    assert_int_equal(cudaEventElapsedTime(&ms, event, event), cudaErrorNotReady);
    assert_int_equal(cudaGetLastError(), cudaErrorNotReady);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    open = 1;
    ok(cudaStreamSynchronize(stream));
    ok(cudaEventQuery(event));
    ok(cudaEventDestroy(event));
    ok(cudaStreamDestroy(stream));
}

/* ---- cublasLt ---- */

enum { SIDE = 8, WORKSPACE = 8192 };

typedef struct {
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t matmul;
    cublasLtMatrixLayout_t layout;
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t chosen;
    cudaStream_t stream;
    char *memory; /* three matrices, 256 bytes for a bias, the workspace */
} product;

static int multiply(const product *p, size_t a, size_t b, size_t c, size_t workspace, size_t bytes)
{
    const float one = 1, zero = 0;
    return cublasLtMatmul(p->handle, p->matmul, &one, p->memory + a, p->layout, p->memory + b, p->layout, &zero,
                          p->memory + c, p->layout, p->memory + c, p->layout, &p->chosen.algo, p->memory + workspace,
                          bytes, p->stream);
}

static int choose(product *p)
{
    int found;
    const int status = cublasLtMatmulAlgoGetHeuristic(p->handle, p->matmul, p->layout, p->layout, p->layout, p->layout,
                                                      p->preference, 1, &p->chosen, &found);
    return found ? status : -1;
}

static void products_have_preconditions(void **state)
{
    (void)state;
    enum { B = 256, C = 512, BIAS = 768, SPACE = 1024 };
    const uint64_t most = WORKSPACE;
    const uint32_t four = 4;
    const int32_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    product p = {.stream = make_stream()};
    ok(cudaMalloc((void **)&p.memory, SPACE + WORKSPACE + 256));
    ok(cudaMemsetAsync(p.memory, 0, SPACE + WORKSPACE + 256, p.stream));
    ok(cublasLtCreate(&p.handle));
    ok(cublasLtMatmulDescCreate(&p.matmul, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    ok(cublasLtMatrixLayoutCreate(&p.layout, CUDA_R_32F, SIDE, SIDE, SIDE));
    ok(cublasLtMatmulPreferenceCreate(&p.preference));
    ok(cublasLtMatmulPreferenceSetAttribute(p.preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most,
                                            sizeof most));
    ok(choose(&p));
    const size_t needed = p.chosen.workspaceSize;
    assert_true(needed > 0);
    ok(multiply(&p, 0, B, C, SPACE, needed));
    assert_int_equal(multiply(&p, 4, B, C, SPACE, needed), CUBLAS_STATUS_INVALID_VALUE); /* 256 are understood */
    assert_int_equal(multiply(&p, 0, B, C, SPACE + 64, needed), CUBLAS_STATUS_INVALID_VALUE);
    assert_int_equal(multiply(&p, 0, B, C, SPACE, needed - 1), CUBLAS_STATUS_INVALID_VALUE);
    ok(cublasLtMatmulPreferenceSetAttribute(p.preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &four,
                                            sizeof four));
    ok(choose(&p));
    ok(multiply(&p, 4, B, C, SPACE, needed));
    assert_int_equal(multiply(&p, 4, B + 4, C, SPACE, needed), CUBLAS_STATUS_INVALID_VALUE);
    assert_int_equal(multiply(&p, 4, B, C + 4, SPACE, needed), CUBLAS_STATUS_INVALID_VALUE);

    const void *bias = p.memory + BIAS + 8;
    ok(cublasLtMatmulDescSetAttribute(p.matmul, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue));
    ok(cublasLtMatmulDescSetAttribute(p.matmul, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias));
    assert_int_equal(multiply(&p, 0, B, C, SPACE, needed), CUBLAS_STATUS_INVALID_VALUE);
    bias = p.memory + BIAS + 16;
    ok(cublasLtMatmulDescSetAttribute(p.matmul, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias));
    ok(multiply(&p, 0, B, C, SPACE, needed));

    setenv("SLUICE_EMULATED_PRODUCTS", "0", 1);
    assert_int_equal(choose(&p), -1);
    unsetenv("SLUICE_EMULATED_PRODUCTS");
    ok(cublasLtMatmulPreferenceDestroy(p.preference));
    ok(cublasLtMatrixLayoutDestroy(p.layout));
    ok(cublasLtMatmulDescDestroy(p.matmul));
    ok(cublasLtDestroy(p.handle));
    ok(cudaStreamSynchronize(p.stream));
    ok(cudaFree(p.memory));
    ok(cudaStreamDestroy(p.stream));
}

static void calls_are_counted(void **state)
{
    (void)state;
    cudaStream_t stream = make_stream();
    float *x = make_pinned(512 * sizeof *x);
    memset(x, 0, 512 * sizeof *x);
    const emulated_counts before = emulated_count();
    const uint64_t kernels = emulated_count_kernel("kernel of cudaLaunchKernelEx");
    ok(language_scale(stream, 4, 32, 512, 2, x));
    ok(cudaMemcpyAsync(x, x + 256, 1024, cudaMemcpyDefault, stream));
    emulated_counts now = emulated_count();
    assert_int_equal(now.launches - before.launches, 1);
    assert_int_equal(emulated_count_kernel("kernel of cudaLaunchKernelEx"), kernels + 1);
    assert_int_equal(now.copies - before.copies, 1);
    assert_int_equal(now.allocations - before.allocations, 0);
    assert_int_equal(now.waits - before.waits, 0);
    ok(cudaStreamSynchronize(stream));
    now = emulated_count();
    assert_int_equal(now.waits - before.waits, 1);
    ok(cudaFreeHost(x));
    ok(cudaStreamDestroy(stream));
}

/* Prints how fast the emulated GPU computes, for people to read. It has no limit. */
static void speed_is_printed(void **state)
{
    (void)state;
    enum { COUNT = 1 << 20 };
    cudaStream_t stream = make_stream();
    float *x = make_pinned(COUNT * sizeof *x);
    memset(x, 0, COUNT * sizeof *x);
    struct timespec begin, end;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    ok(language_scale(stream, COUNT / 1024, 256, COUNT, 2, x));
    ok(cudaStreamSynchronize(stream));
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    double seconds = (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
    print_message("elementwise, 4 elements a thread: %.1f M elements a second\n", COUNT / seconds * 1e-6);
    ok(cudaFreeHost(x));
    ok(cudaStreamDestroy(stream));
}

/* This must be the last test of its process: nothing works after it. */
static void errors_stay(void **state)
{
    (void)state;
    cudaStream_t stream = make_stream();
    float *x = make_pinned(512 * sizeof *x);
    for (int i = 0; i < 512; i++) x[i] = 1;
    emulated_fail(2, cudaErrorIllegalAddress);
    ok(language_scale(stream, 4, 32, 512, 2, x));
    ok(cudaStreamSynchronize(stream));
    language_scale(stream, 4, 32, 512, 2, x);
    assert_int_equal(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
    assert_int_equal(cudaGetLastError(), cudaErrorIllegalAddress);
    assert_int_equal(cudaGetLastError(), cudaErrorIllegalAddress);
    assert_true(x[511] == 2);
    assert_int_equal(cudaFreeHost(x), cudaErrorIllegalAddress);
    assert_int_equal(cudaStreamDestroy(stream), cudaErrorIllegalAddress);
}

int main(void)
{
    print_message("device cuda (emulated)\n");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(warps_do_as_the_manual_says),
        cmocka_unit_test(tensor_cores_multiply),
        cmocka_unit_test(atomics_and_fences_join_blocks),
        cmocka_unit_test(fresh_memory_is_nan),
        cmocka_unit_test(a_device_has_limits),
        cmocka_unit_test(events_order_streams_and_tell_times),
        cmocka_unit_test(not_ready_is_kept),
        cmocka_unit_test(products_have_preconditions),
        cmocka_unit_test(calls_are_counted),
        cmocka_unit_test(speed_is_printed),
        cmocka_unit_test(planted_faults_are_found),
        cmocka_unit_test(right_programs_are_left_alone),
        cmocka_unit_test(errors_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
