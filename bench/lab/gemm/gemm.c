/* `sluice-lab gemm`: times the products of GPT-2's training by slc_gemm.
 * tests/command/measure/kernels_test.sh covers this file. */
#include "bench/cli/command.h"
#include "lib/base/clock.h"
#include "lib/base/numbers/median.h"
#include "bench/cli/output/result_file.h"
#include "bench/cli/options/command_line.h"
#include "bench/lab/numbers.h"
#include "lib/kernels/gemm/gemm.h"

#include <inttypes.h>
#include <sluice/status.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROUNDS = 1000, MOST_THREADS = 4096, CHANNELS = 768, VOCABULARY = 50257, HEAD_ROWS = 256 };

typedef struct {
    uint64_t rows;
    uint32_t rounds, threads;
    const char *json; /* NULL: no file */
    json_t *results;  /* a JSON array */
} gemm_options;

#define FIELD(name) SLC_OPTION_FIELD(gemm_options, name)

static const slc_option option_rows[] = {
    {"rows", "N", 0, SLC_OPTION_COUNT, FIELD(rows), "256", 0,
     "Tokens of a micro-batch, at most 256 of them in the head", 1, 65536},
    {"rounds", "N", 0, SLC_OPTION_COUNT, FIELD(rounds), "9", 0, "Times each product is measured", 1, MOST_ROUNDS},
    {"threads", "N", 0, SLC_OPTION_COUNT, FIELD(threads), "1", 0, "Threads", 1, MOST_THREADS},
    {"json", "FILE", 0, SLC_OPTION_TEXT, FIELD(json), NULL, 0, "Write the rows as JSON; '-': standard output"},
    {0},
};

static const char doc[] = "Measures the products of GPT-2 124M's training.\v"
                          "Columns: billions of operations a second, from the median of the rounds, and the workspace. "
                          "With one thread, times "
                          "are of the thread, not of the clock on the wall.\n\n"
                          "Examples:\n"
                          "  sluice-lab gemm\n"
                          "  sluice-lab gemm --rows 1024 --rounds 15 --json gemm.json";

/* ---- One product ---- */

static FILE *table_of(const gemm_options *o)
{
    return o->json && !strcmp(o->json, "-") ? stderr : stdout;
}

static void *numbers(uint64_t count, sluice_dtype dtype)
{
    uint64_t bytes = count * sluice_dtype_bytes(dtype);
    char *x = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096 + 4096);
    if (x) slc_lab_fill(dtype, count, x, 1);
    return x;
}

static sluice_status report(const gemm_options *o, const slc_gemm_shape *s, const char *name, double gflops,
                            uint64_t workspace_bytes)
{
    fprintf(table_of(o), "%-5s %-14s %6" PRIu64 " %6" PRIu64 " %6" PRIu64 " %7.1f %9.2f\n", sluice_dtype_name(s->dtype),
            name, s->m, s->n, s->k, gflops, (double)workspace_bytes / (1 << 20));
    fflush(stdout);
    json_t *row = json_pack("{ss ss sI sI sI sf sI}", "type", sluice_dtype_name(s->dtype), "product", name, "m",
                            (json_int_t)s->m, "n", (json_int_t)s->n, "k", (json_int_t)s->k, "gflops", gflops,
                            "workspace_bytes", (json_int_t)workspace_bytes);
    return json_array_append_new(o->results, row) ? SLUICE_ERR_MEMORY : SLUICE_OK;
}

static sluice_status measure_shape(sluice_stream *stream, const slc_gemm_shape *s, const char *name,
                                   const gemm_options *o)
{
    const clockid_t clock = stream->threads <= 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
    double seconds[MOST_ROUNDS];
    uint64_t workspace_bytes = 0;
    sluice_status status = slc_gemm_workspace_bytes(stream, s, &workspace_bytes);
    if (status) return status;
    void *a = numbers((s->lda ? s->lda : s->transpose_a ? s->m : s->k) * (s->transpose_a ? s->k : s->m), s->dtype);
    void *b = numbers(s->k * s->n, s->dtype), *c = numbers(s->m * s->n, s->out);
    void *workspace = numbers(workspace_bytes, SLUICE_BF16);
    if (!a || !b || !c || !workspace) status = SLUICE_ERR_MEMORY;
    for (uint32_t i = 0; !status && i <= o->rounds; i++) { /* the first is warm-up */
        const uint64_t begin_ns = slc_clock_read_ns(clock);
        status = slc_gemm(stream, s, &(slc_gemm_operands){.a = a, .b = b, .c = c}, workspace, workspace_bytes);
        seconds[i ? i - 1 : 0] = slc_seconds(slc_clock_read_ns(clock) - begin_ns);
    }
    double work = 2e-9 * (double)s->m * (double)s->n * (double)s->k;
    if (!status) status = report(o, s, name, work / slc_median(seconds, o->rounds), workspace_bytes);
    free(a), free(b), free(c), free(workspace);
    return status;
}

/* ---- The products ---- */

static sluice_status measure_layer(sluice_stream *stream, const gemm_options *o, sluice_dtype dtype, uint64_t inputs,
                                   uint64_t outputs, bool conv1d)
{
    const slc_gemm_shape y = {dtype, dtype, .transpose_b = !conv1d, .m = o->rows, .n = outputs, .k = inputs};
    const slc_gemm_shape dx = {dtype, dtype, .transpose_b = conv1d, .m = o->rows, .n = inputs, .k = outputs};
    slc_gemm_shape dw = {dtype, dtype, .transpose_a = true, .m = inputs, .n = outputs, .k = o->rows};
    if (!conv1d) dw.m = outputs, dw.n = inputs;
    sluice_status status = measure_shape(stream, &y, conv1d ? "y=xW" : "y=xW'", o);
    if (!status) status = measure_shape(stream, &dx, conv1d ? "dx=dyW'" : "dx=dyW", o);
    if (!status) status = measure_shape(stream, &dw, conv1d ? "dW=x'dy" : "dW=dy'x", o);
    return status;
}

/* Logits are fp32. Their gradient replaces them, as bf16 at the start of each row. */
static sluice_status measure_head(sluice_stream *stream, const gemm_options *o, sluice_dtype dtype)
{
    const uint64_t rows = o->rows < HEAD_ROWS ? o->rows : HEAD_ROWS, apart = dtype == SLUICE_BF16 ? 2 * VOCABULARY : 0;
    const slc_gemm_shape y = {dtype, SLUICE_FP32, .transpose_b = true, .m = rows, .n = VOCABULARY, .k = CHANNELS};
    const slc_gemm_shape dx = {dtype, dtype, .m = rows, .n = CHANNELS, .k = VOCABULARY, .lda = apart};
    const slc_gemm_shape dw = {dtype,         dtype,     .transpose_a = true, .m = VOCABULARY,
                               .n = CHANNELS, .k = rows, .lda = apart};
    sluice_status status = measure_shape(stream, &y, "logits", o);
    if (!status) status = measure_shape(stream, &dx, "dnormed", o);
    if (!status) status = measure_shape(stream, &dw, "dwte", o);
    return status;
}

static sluice_status measure_all(sluice_stream *stream, const gemm_options *o)
{
    static const uint64_t layers[][2] = {
        {CHANNELS, 3 * CHANNELS}, {CHANNELS, CHANNELS}, {CHANNELS, 4 * CHANNELS}, {4 * CHANNELS, CHANNELS}};
    sluice_status status = SLUICE_OK;
    fprintf(table_of(o), "%-5s %-14s %6s %6s %6s %7s %9s\n", "type", "product", "m", "n", "k", "GFLOP/s", "MiB");
    for (sluice_dtype dtype = SLUICE_FP32; !status && dtype <= SLUICE_BF16; dtype++) {
        for (size_t i = 0; !status && i < 2 * sizeof layers / sizeof *layers; i++)
            status = measure_layer(stream, o, dtype, layers[i / 2][0], layers[i / 2][1], i % 2 == 0);
        if (!status) status = measure_head(stream, o, dtype);
    }
    return status;
}

static int gemm_main(int argc, char **argv)
{
    gemm_options options = {0};
    const slc_command_line line = {.rows = option_rows, .doc = doc};
    slc_device *device = NULL;
    sluice_stream stream;
    slc_command_line_parse(&line, argc, argv, &options);
    sluice_status status = slc_device_open("cpu", &device);
    if (!status) status = slc_stream_create(device, options.threads, &stream);
    if (!status) {
        options.results = json_array();
        status = measure_all(&stream, &options);
        if (!status) status = slc_result_file_write_json(options.json, json_incref(options.results));
        json_decref(options.results);
        slc_stream_destroy(&stream);
    }
    if (device) slc_device_close(device);
    if (status) fprintf(stderr, "sluice-lab gemm: %s\n", sluice_last_error());
    return status ? EXIT_FAILED : 0;
}

const sluice_command slc_command_gemm = {"gemm", "measures the products of GPT-2's training", gemm_main};
