/* Times of lib/kernels/attention on one thread, for bench/compare/kernels/attention.py. Reads lines
 *   fp32|bf16 BATCH TOKENS HEADS HEAD_SIZE CAUSAL WINDOW REPEATS
 * (WINDOW: side of BEiT's relative-position window, 0 without) and answers each with the fastest of the repeats, in
 * seconds: "FORWARD BACKWARD". q, k and v are thirds of one array, as GPT-2's projection gives them.
 * tests/command/measure/peers_test.sh covers this file. */
#include "lib/base/clock.h"
#include "lib/device/device.h"
#include "lib/kernels/attention/attention.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns numbers in -1..1, the same each time. */
static void *numbers(sluice_dtype dtype, uint64_t count)
{
    static uint32_t state = 1;
    void *x = aligned_alloc(64, (count * sluice_dtype_bytes(dtype) + 64) / 64 * 64);
    if (!x) exit(1);
    for (uint64_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        float value = (float)(state >> 8) * 0x1p-23f - 1.0f;
        if (dtype == SLUICE_BF16)
            ((uint16_t *)x)[i] = sluice_bf16_from_float(value);
        else
            ((float *)x)[i] = value;
    }
    return x;
}

typedef struct {
    sluice_stream stream;
    slc_attention_shape shape;
    void *qkv, *out, *dout, *dqkv, *table, *dtable, *workspace;
    float *logsumexp;
} problem;

static problem problem_create(sluice_stream stream, slc_attention_shape shape, uint64_t window)
{
    const uint64_t all = shape.heads * shape.head_size, rows = shape.batch * shape.tokens;
    const uint64_t table = window ? ((2 * window - 1) * (2 * window - 1) + 3) * shape.heads : 0;
    problem p = {.stream = stream, .shape = shape};
    p.qkv = numbers(shape.dtype, 3 * rows * all), p.dqkv = numbers(shape.dtype, 3 * rows * all);
    p.out = numbers(shape.dtype, rows * all), p.dout = numbers(shape.dtype, rows * all);
    p.table = numbers(shape.dtype, table), p.dtable = numbers(SLUICE_FP32, table);
    p.logsumexp = numbers(SLUICE_FP32, shape.heads * rows);
    p.shape.row_stride = 3 * all;
    if (window) p.shape.relative = p.table, p.shape.window_h = p.shape.window_w = window;
    p.workspace = numbers(SLUICE_FP32, slc_attention_workspace_bytes(&stream, &p.shape) / sizeof(float));
    return p;
}

static void problem_destroy(problem *p)
{
    free(p->qkv), free(p->out), free(p->dout), free(p->dqkv);
    free(p->table), free(p->dtable), free(p->workspace), free(p->logsumexp);
}

static void *third(const problem *p, void *array, uint64_t which)
{
    return (char *)array + which * p->shape.heads * p->shape.head_size * sluice_dtype_bytes(p->shape.dtype);
}

static sluice_status forward(problem *p)
{
    const slc_attention_forward_args args = {.shape = p->shape,
                                             .q = p->qkv,
                                             .k = third(p, p->qkv, 1),
                                             .v = third(p, p->qkv, 2),
                                             .out = p->out,
                                             .logsumexp = p->logsumexp,
                                             .workspace = p->workspace};
    return slc_attention_forward(&p->stream, &args);
}

static sluice_status backward(problem *p)
{
    const slc_attention_backward_args args = {.shape = p->shape,
                                              .q = p->qkv,
                                              .k = third(p, p->qkv, 1),
                                              .v = third(p, p->qkv, 2),
                                              .out = p->out,
                                              .dout = p->dout,
                                              .logsumexp = p->logsumexp,
                                              .dq = p->dqkv,
                                              .dk = third(p, p->dqkv, 1),
                                              .dv = third(p, p->dqkv, 2),
                                              .drelative = p->shape.relative ? p->dtable : NULL,
                                              .fresh = true,
                                              .workspace = p->workspace};
    return slc_attention_backward(&p->stream, &args);
}

static double fastest_s(problem *p, sluice_status run(problem *), int repeats)
{
    double best = 1e9;
    for (int i = 0; i <= repeats; i++) { /* the first one warms up */
        const uint64_t start_ns = slc_clock_ns();
        if (run(p)) fprintf(stderr, "attention_times: %s\n", sluice_last_error()), exit(1);
        const double took = slc_seconds(slc_clock_ns() - start_ns);
        if (i && took < best) best = took;
    }
    return best;
}

int main(void)
{
    slc_device *device;
    sluice_stream stream;
    if (slc_device_open("cpu", &device) || slc_stream_create(device, 1, &stream)) return 1;
    char dtype[8];
    unsigned long long batch, tokens, heads, size, window;
    int causal, repeats;
    while (scanf("%7s %llu %llu %llu %llu %d %llu %d", dtype, &batch, &tokens, &heads, &size, &causal, &window,
                 &repeats) == 8) {
        slc_attention_shape shape = {.dtype = strcmp(dtype, "bf16") ? SLUICE_FP32 : SLUICE_BF16,
                                     .batch = batch,
                                     .tokens = tokens,
                                     .heads = heads,
                                     .head_size = size,
                                     .causal = causal};
        problem p = problem_create(stream, shape, window);
        double forward_s = fastest_s(&p, forward, repeats), backward_s = fastest_s(&p, backward, repeats);
        printf("%.9f %.9f\n", forward_s, backward_s);
        fflush(stdout);
        problem_destroy(&p);
    }
    slc_stream_destroy(&stream);
    return 0;
}
