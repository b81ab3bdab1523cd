/* `sluice-lab gemm`: times the products of GPT-2's training by slc_gemm, next to oneDNN with B in a layout of its own
 * choice. */
#include "bench/cli/command.h"
#include "bench/cli/median.h"
#include "bench/cli/result_file.h"
#include "bench/cli/whole_number.h"
#include "lib/kernels/gemm/gemm.h"

#include <argp.h>
#include <inttypes.h>
#include <sluice/status.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { EXIT_FAILED = 1, MOST_ROUNDS = 1000, MOST_THREADS = 4096, CHANNELS = 768, VOCABULARY = 50257, HEAD_ROWS = 256 };
enum { KEY_ROWS = 256, KEY_ROUNDS, KEY_THREADS, KEY_JSON };

typedef struct {
    uint64_t rows;
    uint32_t rounds, threads;
    const char *json; /* NULL: no file */
    json_t *results;  /* a JSON array */
} gemm_options;

static const struct argp_option option_rows[] = {
    {"rows", KEY_ROWS, "N", 0, "Tokens of a micro-batch, at most 256 of them in the head (default 256)", 0},
    {"rounds", KEY_ROUNDS, "N", 0, "Rounds; each runs every column once (default 9)", 0},
    {"threads", KEY_THREADS, "N", 0, "Threads (default 1)", 0},
    {"json", KEY_JSON, "FILE", 0, "Write the rows as JSON; '-': standard output", 0},
    {0},
};

static const char doc[] =
    "Measures the products of GPT-2 124M's training by turns with oneDNN on packed B.\v"
    "Columns: billions of operations a second of slc_gemm, of oneDNN with B in the layout that it likes best, and of "
    "that with the packing counted; the medians of slc_gemm's ratios to both. With one thread, times are of the "
    "thread, not of the clock on the wall.\n\n"
    "Examples:\n"
    "  sluice-lab gemm\n"
    "  sluice-lab gemm --rows 1024 --rounds 15 --json gemm.json";

static error_t parse(int key, char *text, struct argp_state *state)
{
    gemm_options *o = state->input;
    switch (key) {
    case KEY_ROWS: o->rows = slc_whole_number(text, 1, 65536, state, "--rows"); return 0;
    case KEY_ROUNDS: o->rounds = (uint32_t)slc_whole_number(text, 1, MOST_ROUNDS, state, "--rounds"); return 0;
    case KEY_THREADS: o->threads = (uint32_t)slc_whole_number(text, 1, MOST_THREADS, state, "--threads"); return 0;
    case KEY_JSON: o->json = text; return 0;
    case ARGP_KEY_ARG: argp_error(state, "\"%s\" is no option", text); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* ---- One product ---- */

enum { OURS, BARE, WITH_PACKING, WAYS };

typedef struct {
    slc_stream *stream;
    slc_gemm_shape shape, packed_shape;
    void *a, *b, *c, *packed, *workspace;
    uint64_t workspace_bytes, packed_bytes;
} product;

static double now(const slc_stream *stream)
{
    struct timespec t;
    clock_gettime(stream->threads <= 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *numbers(uint64_t count, sluice_dtype dtype)
{
    uint64_t bytes = count * sluice_dtype_bytes(dtype);
    char *x = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096 + 4096);
    uint32_t seed = 1;
    for (uint64_t i = 0; x && i < count; i++) {
        seed = seed * 1664525u + 1013904223u; /* Numerical Recipes' generator; good enough for a speed */
        float value = (float)(int32_t)seed * 0x1p-31f;
        if (dtype == SLUICE_BF16)
            ((uint16_t *)x)[i] = sluice_bf16_from_float(value);
        else
            ((float *)x)[i] = value;
    }
    return x;
}

static sluice_status prepare(product *p)
{
    const slc_gemm_shape *s = &p->shape;
    uint64_t packed_workspace = 0;
    p->packed_shape = *s;
    sluice_status status = slc_gemm_workspace_bytes(p->stream, s, &p->workspace_bytes);
    if (!status) status = slc_gemm_packed_bytes(p->stream, s, &p->packed_bytes);
    p->packed_shape.packed_b = p->packed_bytes > 0;
    if (!status) status = slc_gemm_workspace_bytes(p->stream, &p->packed_shape, &packed_workspace);
    if (status) return status;
    if (packed_workspace > p->workspace_bytes) p->workspace_bytes = packed_workspace;
    p->a = numbers((s->lda ? s->lda : s->transpose_a ? s->m : s->k) * (s->transpose_a ? s->k : s->m), s->dtype);
    p->b = numbers(s->k * s->n, s->dtype), p->c = numbers(s->m * s->n, s->out);
    p->packed = numbers(p->packed_bytes, SLUICE_BF16), p->workspace = numbers(p->workspace_bytes, SLUICE_BF16);
    return p->a && p->b && p->c && p->packed && p->workspace ? SLUICE_OK : SLUICE_ERR_MEMORY;
}

static sluice_status timed(product *p, int way, double *seconds)
{
    sluice_status status = SLUICE_OK;
    const bool packed = way != OURS && p->packed_bytes;
    double begin = now(p->stream);
    if (way == WITH_PACKING && packed) status = slc_gemm_pack(p->stream, &p->shape, p->b, p->packed);
    if (!status)
        status = slc_gemm(p->stream, packed ? &p->packed_shape : &p->shape, p->a, packed ? p->packed : p->b, NULL, NULL,
                          p->c, p->workspace, p->workspace_bytes);
    *seconds = now(p->stream) - begin;
    return status;
}

static void keep(const gemm_options *o, const product *p, const char *name, const double rate[WAYS], double bare,
                 double with_packing)
{
    json_array_append_new(o->results,
                          json_pack("{ss ss sI sI sI sf sf sf sf sf sI}", "type", sluice_dtype_name(p->shape.dtype),
                                    "product", name, "m", (json_int_t)p->shape.m, "n", (json_int_t)p->shape.n, "k",
                                    (json_int_t)p->shape.k, "gflops", rate[OURS], "packed_gflops", rate[BARE],
                                    "with_packing_gflops", rate[WITH_PACKING], "ratio", bare, "ratio_with_packing",
                                    with_packing, "workspace_bytes", (json_int_t)p->workspace_bytes));
}

static sluice_status measure(product *p, const char *name, const gemm_options *o)
{
    const uint32_t rounds = o->rounds;
    static double seconds[WAYS][MOST_ROUNDS], bare[MOST_ROUNDS], with_packing[MOST_ROUNDS];
    double unused, work = 2e-9 * (double)p->shape.m * (double)p->shape.n * (double)p->shape.k;
    sluice_status status = slc_gemm_pack(p->stream, &p->shape, p->b, p->packed);
    if (!p->packed_bytes) status = SLUICE_OK;
    for (int way = 0; !status && way < WAYS; way++) status = timed(p, way, &unused);
    for (uint32_t i = 0; !status && i < rounds; i++) {
        for (int way = 0; !status && way < WAYS; way++) status = timed(p, way, &seconds[way][i]);
        bare[i] = seconds[BARE][i] / seconds[OURS][i], with_packing[i] = seconds[WITH_PACKING][i] / seconds[OURS][i];
    }
    if (status) return status;
    const double rate[WAYS] = {work / slc_median(seconds[OURS], rounds), work / slc_median(seconds[BARE], rounds),
                               work / slc_median(seconds[WITH_PACKING], rounds)};
    double ratio = slc_median(bare, rounds), ratio_packing = slc_median(with_packing, rounds);
    keep(o, p, name, rate, ratio, ratio_packing);
    fprintf(o->json && !strcmp(o->json, "-") ? stderr : stdout,
            "%-5s %-14s %6" PRIu64 " %6" PRIu64 " %6" PRIu64 " %7.1f %7.1f %7.1f %6.2f %6.2f %9.2f\n",
            sluice_dtype_name(p->shape.dtype), name, p->shape.m, p->shape.n, p->shape.k, rate[OURS], rate[BARE],
            rate[WITH_PACKING], ratio, ratio_packing, (double)p->workspace_bytes / (1 << 20));
    fflush(stdout);
    return SLUICE_OK;
}

/* ---- The products ---- */

static sluice_status measure_shape(slc_stream *stream, const slc_gemm_shape *shape, const char *name,
                                   const gemm_options *o)
{
    product p = {.stream = stream, .shape = *shape};
    sluice_status status = prepare(&p);
    if (!status) status = measure(&p, name, o);
    free(p.a), free(p.b), free(p.c), free(p.packed), free(p.workspace);
    return status;
}

static sluice_status measure_layer(slc_stream *stream, const gemm_options *o, sluice_dtype dtype, uint64_t inputs,
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
static sluice_status measure_head(slc_stream *stream, const gemm_options *o, sluice_dtype dtype)
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

static sluice_status measure_all(slc_stream *stream, const gemm_options *o)
{
    static const uint64_t layers[][2] = {
        {CHANNELS, 3 * CHANNELS}, {CHANNELS, CHANNELS}, {CHANNELS, 4 * CHANNELS}, {4 * CHANNELS, CHANNELS}};
    sluice_status status = SLUICE_OK;
    fprintf(o->json && !strcmp(o->json, "-") ? stderr : stdout, "%-5s %-14s %6s %6s %6s %7s %7s %7s %6s %6s %9s\n",
            "type", "product", "m", "n", "k", "ours", "packed", "packing", "ratio", "ratio", "MiB");
    for (sluice_dtype dtype = SLUICE_FP32; !status && dtype <= SLUICE_BF16; dtype++) {
        for (size_t i = 0; !status && i < 2 * sizeof layers / sizeof *layers; i++)
            status = measure_layer(stream, o, dtype, layers[i / 2][0], layers[i / 2][1], i % 2 == 0);
        if (!status) status = measure_head(stream, o, dtype);
    }
    return status;
}

static int run(int argc, char **argv)
{
    gemm_options options = {.rows = 256, .rounds = 9, .threads = 1};
    const struct argp parser = {option_rows, parse, NULL, doc, NULL, NULL, NULL};
    slc_device *device = NULL;
    slc_stream stream;
    argp_parse(&parser, argc, argv, 0, NULL, &options);
    sluice_status status = slc_device_open("cpu", &device);
    if (!status) status = slc_stream_create(device, options.threads, &stream);
    if (!status) {
        options.results = json_array();
        status = measure_all(&stream, &options);
        if (!status) status = slc_result_file_write_json(options.json, options.results);
        json_decref(options.results);
        slc_stream_destroy(&stream);
    }
    if (device) slc_device_close(device);
    if (status) fprintf(stderr, "sluice-lab gemm: %s\n", sluice_last_error());
    return status ? EXIT_FAILED : 0;
}

const sluice_command slc_command_gemm = {"gemm", "products of GPT-2's training, beside oneDNN on packed operands", run};
