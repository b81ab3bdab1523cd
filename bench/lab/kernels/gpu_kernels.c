/* The rows of slc_kernel_table that a GPU has, and attention. Arrays of the GPU repeat what a smaller case of the host
 * holds, so that millions of numbers need not be made there. tests/command/measure/kernels_test.sh covers this file. */
#include "bench/lab/kernels/gpu_kernels.h"

#include "bench/lab/kernels/kernel_table.h"
#include "lib/kernels/attention/attention.h"

#include <inttypes.h>
#include <string.h>

static const char *const others[] = {"attention_forward", "attention_backward", "gemm"};
enum { OTHERS = sizeof others / sizeof *others };

bool slc_gpu_kernels_know(const char *op)
{
    for (uint32_t i = 0; i < slc_kernel_table_rows; i++)
        if (!strcmp(op, slc_kernel_table[i].name)) return true;
    for (int i = 0; i < OTHERS; i++)
        if (!strcmp(op, others[i])) return true;
    return false;
}

const char *slc_gpu_kernels_others(void)
{
    return "attention_forward, attention_backward, gemm";
}

/* ---- Kernels whose pace memory sets ---- */

/* GPT-2 124M: 32 sequences of 1024 tokens, 124,439,808 parameters, a head of 4096 rows; ViT: 256 images. */
static const struct {
    uint64_t rows, small_rows, channels;
} sizes[] = {
    [SLC_GPU_TOKENS] = {32 * 1024, 64, 768},
    [SLC_GPU_WIDE] = {32 * 1024, 64, 3072},
    [SLC_GPU_PARAMETERS] = {162031, 64, 768},
    [SLC_GPU_LOGITS] = {4096, 4, SLC_KERNEL_CLASSES},
    [SLC_GPU_IMAGES] = {256, 1, SLC_KERNEL_IMAGE},
    [SLC_GPU_PATCHES] = {256 * (1 + SLC_KERNEL_PATCHES), 1 + SLC_KERNEL_PATCHES, 768},
};

enum { WORKSPACE = 64 << 20, SMALL_WORKSPACE = 4 << 20, PATTERN_COUNT = 1 << 20 };

static sluice_status upload(slc_gpu_bench *bench, const slc_kernel_case *image, const slc_kernel_case *c)
{
    sluice_status status = SLUICE_OK;
    for (int i = 0; !status && i < SLC_KERNEL_ARRAYS; i++) {
        status = slc_copy(&bench->stream, c->array[i], image->array[i], image->count * sizeof(float));
        if (!status)
            status = slc_gpu_bench_repeat(bench, c->array[i], image->count * sizeof(float), c->count * sizeof(float));
    }
    for (int i = 0; !status && i < SLC_KERNEL_VECTORS; i++)
        status = slc_copy(&bench->stream, c->vector[i], image->vector[i], c->channels * sizeof(float));
    for (int i = 0; !status && i < 2; i++)
        status = slc_copy(&bench->stream, c->statistic[i], image->statistic[i], c->rows * sizeof(float));
    if (!status) status = slc_copy(&bench->stream, c->tokens, image->tokens, c->rows * sizeof *c->tokens);
    if (!status)
        status = slc_copy(&bench->stream, c->token_order, image->token_order, c->rows * sizeof *c->token_order);
    return status ? status : slc_stream_synchronize(&bench->stream);
}

/* Gives the GPU's arrays their contents by way of a case of at most PATTERN_COUNT elements in pinned memory. */
static sluice_status fill_case(slc_gpu_bench *bench, const slc_kernel_row *row, const slc_kernel_case *c)
{
    slc_kernel_case image = *c;
    slc_pinned memory;
    image.count = c->count < PATTERN_COUNT ? c->count : PATTERN_COUNT;
    image.workspace_bytes = 0; /* that of the GPU is fresh, and so zero */
    sluice_status status = slc_pinned_create(bench->device, slc_kernel_case_bytes(&image), &memory);
    if (status) return status;
    slc_kernel_case_lay_out(&image, memory.base);
    slc_kernel_case_fill(&image);
    if (row->prepare) status = row->prepare(&image);
    if (!status) status = upload(bench, &image, c);
    slc_pinned_destroy(&memory);
    return status;
}

static sluice_status call_row(void *context)
{
    void **both = context;
    return ((const slc_kernel_row *)both[0])->call(both[1]);
}

static sluice_status measure_row(slc_gpu_bench *bench, const slc_kernel_row *row, sluice_dtype dtype)
{
    const uint64_t rows = bench->small ? sizes[row->gpu].small_rows : sizes[row->gpu].rows;
    slc_kernel_case c = {.stream = bench->stream, .dtype = dtype, .rows = rows, .channels = sizes[row->gpu].channels};
    c.count = c.rows * c.channels;
    c.workspace_bytes = bench->small ? SMALL_WORKSPACE : WORKSPACE;
    slc_gpu_work work = {.name = row->name, .dtype = dtype, .bytes = row->bytes[dtype] * (double)c.count};
    work.call = call_row, work.context = (void *[]){(void *)row, &c};
    snprintf(work.shape, sizeof work.shape, "%" PRIu64 " x %" PRIu64, c.rows, c.channels);

    slc_segment memory;
    if (slc_segment_create(bench->device, slc_kernel_case_bytes(&c), &memory)) return slc_gpu_bench_fail(bench, &work);
    slc_kernel_case_lay_out(&c, memory.base);
    sluice_status status = fill_case(bench, row, &c);
    status = status ? slc_gpu_bench_fail(bench, &work) : slc_gpu_bench_measure(bench, &work);
    slc_segment_destroy(&memory);
    return status;
}

/* ---- Attention, counted as four products forward and ten backward, half of them for the mask ---- */

typedef struct {
    slc_gpu_bench *bench;
    slc_attention_shape shape;
    char *q, *k, *v, *out, *dout, *dq, *dk, *dv;
    float *logsumexp;
    void *workspace;
} attention_case;

static sluice_status attention_forward(void *context)
{
    attention_case *a = context;
    const slc_attention_forward_args args = {.shape = a->shape,
                                             .q = a->q,
                                             .k = a->k,
                                             .v = a->v,
                                             .out = a->out,
                                             .logsumexp = a->logsumexp,
                                             .workspace = a->workspace};
    return slc_attention_forward(&a->bench->stream, &args);
}

static sluice_status attention_backward(void *context)
{
    attention_case *a = context;
    const slc_attention_backward_args args = {.shape = a->shape,
                                              .q = a->q,
                                              .k = a->k,
                                              .v = a->v,
                                              .out = a->out,
                                              .dout = a->dout,
                                              .logsumexp = a->logsumexp,
                                              .dq = a->dq,
                                              .dk = a->dk,
                                              .dv = a->dv,
                                              .workspace = a->workspace};
    return slc_attention_backward(&a->bench->stream, &args);
}

/* q, k and v are thirds of one array, as the model has them; so are their gradients. */
static void lay_out_attention(attention_case *a, char *at, uint64_t bytes, uint64_t tokens)
{
    const uint64_t row = a->shape.heads * a->shape.head_size * sluice_dtype_bytes(a->shape.dtype);
    a->q = at, a->k = at + row, a->v = at + 2 * row;
    a->out = at + 3 * bytes, a->dout = at + 4 * bytes;
    a->dq = at + 5 * bytes, a->dk = a->dq + row, a->dv = a->dq + 2 * row;
    a->logsumexp = (float *)(void *)(at + 8 * bytes);
    a->workspace = at + 8 * bytes + (tokens * a->shape.heads * sizeof(float) + 255) / 256 * 256;
}

static sluice_status measure_attention(slc_gpu_bench *bench, attention_case *a, double products)
{
    static const struct {
        sluice_status (*call)(void *);
        double factor;
    } ways[] = {{attention_forward, 4}, {attention_backward, 10}};
    sluice_status status = SLUICE_OK;
    for (int i = 0; !status && i < 2; i++) {
        slc_gpu_work work = {.name = others[i], .dtype = a->shape.dtype, .flops = ways[i].factor * products / 2};
        work.call = ways[i].call, work.context = a;
        snprintf(work.shape, sizeof work.shape, "%" PRIu64 ", %" PRIu64 " of %" PRIu64 ", %" PRIu64, a->shape.batch,
                 a->shape.heads, a->shape.head_size, a->shape.tokens);
        if (slc_gpu_bench_wants(bench, work.name, work.dtype)) status = slc_gpu_bench_measure(bench, &work);
    }
    return status;
}

static sluice_status measure_attention_type(slc_gpu_bench *bench, sluice_dtype dtype)
{
    attention_case a = {.bench = bench, .shape = {.dtype = dtype, .batch = 32, .tokens = 1024, .heads = 12}};
    slc_attention_shape *s = &a.shape;
    if (bench->small) s->batch = 1, s->tokens = 64, s->heads = 2;
    s->head_size = 64, s->causal = true;
    s->row_stride = 3 * s->heads * s->head_size;
    const uint64_t tokens = s->batch * s->tokens, count = tokens * s->heads * s->head_size;
    const uint64_t bytes = count * sluice_dtype_bytes(dtype);
    const uint64_t all =
        8 * bytes + tokens * s->heads * sizeof(float) + 256 + slc_attention_workspace_bytes(&bench->stream, s);
    const slc_gpu_work forward = {.name = others[0], .dtype = dtype};
    slc_segment memory;
    if (!slc_gpu_bench_wants(bench, others[0], dtype) && !slc_gpu_bench_wants(bench, others[1], dtype))
        return SLUICE_OK;
    if (slc_segment_create(bench->device, all, &memory)) return slc_gpu_bench_fail(bench, &forward);
    lay_out_attention(&a, memory.base, bytes, tokens);
    sluice_status status = slc_gpu_bench_fill(bench, dtype, 8 * count, memory.base);
    if (!status) status = attention_forward(&a); /* backward reads what it gives */
    if (!status) status = slc_stream_synchronize(&bench->stream);
    status =
        status ? slc_gpu_bench_fail(bench, &forward) : measure_attention(bench, &a, (double)count * (double)s->tokens);
    slc_segment_destroy(&memory);
    return status;
}

sluice_status slc_gpu_kernels_measure(slc_gpu_bench *bench)
{
    sluice_status status = SLUICE_OK;
    for (sluice_dtype dtype = SLUICE_FP32; !status && dtype <= SLUICE_BF16; dtype++) {
        for (uint32_t i = 0; !status && i < slc_kernel_table_rows; i++) {
            const slc_kernel_row *row = &slc_kernel_table[i];
            if (slc_gpu_bench_wants(bench, row->name, dtype)) status = measure_row(bench, row, dtype);
        }
        if (!status) status = measure_attention_type(bench, dtype);
#if defined(SLUICE_HAVE_DNNL)
        if (!status) status = slc_gpu_products_measure(bench, dtype);
#endif
    }
    return status;
}
