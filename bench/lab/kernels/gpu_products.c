/* The products of GPT-2 124M's training, by cublasLt on a GPU. tests/command/measure/kernels_test.sh covers this file.
 */
#include "bench/lab/kernels/gpu_kernels.h"

#if defined(SLUICE_HAVE_DNNL)
#include "lib/kernels/gemm/gemm.h"

#include <inttypes.h>

typedef struct {
    slc_gpu_bench *bench;
    slc_gemm_shape shape;
    char *memory;
    uint64_t b, bias, c, workspace, workspace_bytes; /* where they begin; A begins at 0 */
} product;

static sluice_status call_product(void *context)
{
    product *p = context;
    const slc_gemm_operands operands = {.a = p->memory,
                                        .b = p->memory + p->b,
                                        .bias = p->shape.bias ? p->memory + p->bias : NULL,
                                        .c = p->memory + p->c};
    return slc_gemm(&p->bench->stream, &p->shape, &operands, p->memory + p->workspace, p->workspace_bytes);
}

static uint64_t end_of(uint64_t begin, uint64_t count, sluice_dtype dtype)
{
    return begin + (count * sluice_dtype_bytes(dtype) + 255) / 256 * 256;
}

static sluice_status measure_shape(slc_gpu_bench *bench, const slc_gemm_shape *shape)
{
    product p = {.bench = bench, .shape = *shape};
    slc_gpu_work work = {.name = "gemm", .dtype = shape->dtype, .call = call_product, .context = &p};
    work.flops = 2 * (double)shape->m * (double)shape->n * (double)shape->k;
    snprintf(work.shape, sizeof work.shape, "%" PRIu64 " x %" PRIu64 " x %" PRIu64 "%s%s", shape->m, shape->n, shape->k,
             shape->transpose_a ? " A'" : "", shape->transpose_b ? " B'" : "");
    if (slc_gemm_workspace_bytes(&bench->stream, shape, &p.workspace_bytes)) return slc_gpu_bench_fail(bench, &work);

    p.b = end_of(0, shape->m * shape->k, shape->dtype);
    p.bias = end_of(p.b, shape->k * shape->n, shape->dtype);
    p.c = end_of(p.bias, shape->n, shape->dtype);
    p.workspace = end_of(p.c, shape->m * shape->n, shape->out);
    slc_segment memory;
    if (slc_segment_create(bench->device, p.workspace + p.workspace_bytes, &memory))
        return slc_gpu_bench_fail(bench, &work);
    p.memory = memory.base;
    sluice_status status = slc_gpu_bench_fill(bench, shape->dtype, p.c / sluice_dtype_bytes(shape->dtype), p.memory);
    status = status ? slc_gpu_bench_fail(bench, &work) : slc_gpu_bench_measure(bench, &work);
    slc_segment_destroy(&memory);
    return status;
}

/* A layer's product forward, and backward those of its input and of its weights, which are stored as inputs x
 * outputs. */
static sluice_status measure_layer(slc_gpu_bench *bench, sluice_dtype dtype, uint64_t rows, uint64_t inputs,
                                   uint64_t outputs)
{
    const slc_gemm_shape y = {dtype, dtype, .bias = true, .m = rows, .n = outputs, .k = inputs};
    const slc_gemm_shape dx = {dtype, dtype, .transpose_b = true, .m = rows, .n = inputs, .k = outputs};
    const slc_gemm_shape dw = {dtype, dtype, .transpose_a = true, .m = inputs, .n = outputs, .k = rows};
    sluice_status status = measure_shape(bench, &y);
    if (!status) status = measure_shape(bench, &dx);
    if (!status) status = measure_shape(bench, &dw);
    return status;
}

static sluice_status measure_head(slc_gpu_bench *bench, sluice_dtype dtype, uint64_t rows, uint64_t channels,
                                  uint64_t classes)
{
    const slc_gemm_shape y = {dtype, SLUICE_FP32, .transpose_b = true, .m = rows, .n = classes, .k = channels};
    const slc_gemm_shape dx = {dtype, dtype, .m = rows, .n = channels, .k = classes};
    const slc_gemm_shape dw = {dtype, dtype, .transpose_a = true, .m = classes, .n = channels, .k = rows};
    sluice_status status = measure_shape(bench, &y);
    if (!status) status = measure_shape(bench, &dx);
    if (!status) status = measure_shape(bench, &dw);
    return status;
}

sluice_status slc_gpu_products_measure(slc_gpu_bench *bench, sluice_dtype dtype)
{
    const uint64_t c = bench->small ? 64 : 768, rows = bench->small ? 32 : 32 * 1024;
    const uint64_t layers[][2] = {{c, 3 * c}, {c, c}, {c, 4 * c}, {4 * c, c}};
    sluice_status status = SLUICE_OK;
    if (!slc_gpu_bench_wants(bench, "gemm", dtype)) return SLUICE_OK;
    for (size_t i = 0; !status && i < sizeof layers / sizeof *layers; i++)
        status = measure_layer(bench, dtype, rows, layers[i][0], layers[i][1]);
    /* The model gives its logits rows of a multiple of 64. */
    return status ? status : measure_head(bench, dtype, bench->small ? 8 : 4096, c, bench->small ? 320 : 50304);
}
#else
typedef int slc_gpu_products_need_the_model; /* a file may not be empty */
#endif
