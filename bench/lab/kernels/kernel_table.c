/* Each kernel has one short function that calls it; the table is at the end.
 * tests/command/measure/kernels_test.sh covers this file. */
#include "bench/lab/kernels/kernel_table.h"

#include "lib/base/status.h"
#include "lib/kernels/adamw/adamw.h"
#include "lib/kernels/compress/compress.h"
#include "lib/kernels/convert/convert.h"
#include "lib/kernels/cross_entropy/cross_entropy.h"
#include "lib/kernels/dropout/dropout.h"
#include "lib/kernels/embedding/embedding.h"
#include "lib/kernels/gelu/gelu.h"
#include "lib/kernels/lamb/frozen_lamb.h"
#include "lib/kernels/lamb/lamb.h"
#include "lib/kernels/sgd/sgd.h"
#include "lib/kernels/layer_norm/layer_norm.h"
#include "lib/kernels/likeness/likeness.h"
#include "lib/kernels/norm/norm.h"
#include "lib/kernels/patches/patches.h"
#include "lib/kernels/pool/pool.h"
#include "lib/kernels/reduce/reduce.h"
#include "lib/kernels/residual/residual.h"
#include "lib/kernels/step_words/step_words.h"
#include "lib/kernels/zero_one/zero_one.h"

#include <string.h>

/* A function that calls a kernel. */
#define KERNEL(name, call)                                                                                             \
    static sluice_status name(slc_kernel_case *c)                                                                      \
    {                                                                                                                  \
        return call;                                                                                                   \
    }

static const slc_dropout tenth = {.probability = 0.1f, .seed = 1};

static sluice_status layer_norm(slc_kernel_case *c)
{
    return slc_layer_norm_forward(&c->stream, &(slc_layer_norm_forward_args){.dtype = c->dtype,
                                                                             .rows = c->rows,
                                                                             .channels = c->channels,
                                                                             .epsilon = 1e-5,
                                                                             .x = c->array[0],
                                                                             .gamma = c->vector[0],
                                                                             .beta = c->vector[1],
                                                                             .y = c->array[3],
                                                                             .mean = c->statistic[0],
                                                                             .rstd = c->statistic[1]});
}

static sluice_status norm_backward(slc_kernel_case *c, const void *add)
{
    return slc_layer_norm_backward(&c->stream, &(slc_layer_norm_backward_args){.dtype = c->dtype,
                                                                               .gradient = c->dtype,
                                                                               .rows = c->rows,
                                                                               .channels = c->channels,
                                                                               .dy = c->array[0],
                                                                               .x = c->array[1],
                                                                               .gamma = c->vector[0],
                                                                               .mean = c->statistic[0],
                                                                               .rstd = c->statistic[1],
                                                                               .dx_add = add,
                                                                               .dx = c->array[3],
                                                                               .dgamma = c->vector[2],
                                                                               .dbeta = c->vector[3],
                                                                               .fresh = true,
                                                                               .workspace = c->workspace});
}

KERNEL(layer_norm_backward, norm_backward(c, NULL))
KERNEL(layer_norm_backward_add, norm_backward(c, c->array[2]))
KERNEL(gelu_forward, slc_gelu_forward(&c->stream, SLC_GELU_TANH, c->dtype, c->count, c->array[0], c->array[3]))
KERNEL(gelu_backward,
       slc_gelu_backward(&c->stream, SLC_GELU_TANH, c->dtype, c->count, c->array[0], c->array[1], c->array[3]))
KERNEL(gelu_erf_forward, slc_gelu_forward(&c->stream, SLC_GELU_ERF, c->dtype, c->count, c->array[0], c->array[3]))
KERNEL(gelu_erf_backward,
       slc_gelu_backward(&c->stream, SLC_GELU_ERF, c->dtype, c->count, c->array[0], c->array[1], c->array[3]))
KERNEL(dropout, slc_dropout_apply(&c->stream, &tenth, c->dtype, c->count, c->array[0], c->array[3]))

static sluice_status to_residual(slc_kernel_case *c, const void *scale)
{
    return slc_residual_forward(&c->stream, &(slc_residual_forward_args){.dtype = c->dtype,
                                                                         .rows = c->rows,
                                                                         .channels = c->channels,
                                                                         .x = c->array[0],
                                                                         .bias = c->vector[0],
                                                                         .scale = scale,
                                                                         .dropout = &tenth,
                                                                         .residual = c->array[1],
                                                                         .out = c->array[3]});
}

KERNEL(residual_forward, to_residual(c, NULL))
KERNEL(residual_scale_forward, to_residual(c, c->vector[1]))

static sluice_status residual_scale_backward(slc_kernel_case *c)
{
    return slc_residual_backward(&c->stream, &(slc_residual_backward_args){.dtype = c->dtype,
                                                                           .gradient = c->dtype,
                                                                           .rows = c->rows,
                                                                           .channels = c->channels,
                                                                           .dout = c->array[0],
                                                                           .x = c->array[1],
                                                                           .bias = c->vector[0],
                                                                           .scale = c->vector[1],
                                                                           .dropout = &tenth,
                                                                           .dx = c->array[3],
                                                                           .dscale = c->vector[2],
                                                                           .fresh = true,
                                                                           .workspace = c->workspace});
}

static sluice_status bias_backward(slc_kernel_case *c)
{
    return slc_bias_backward(&c->stream, &(slc_bias_backward_args){.dtype = c->dtype,
                                                                   .gradient = c->dtype,
                                                                   .rows = c->rows,
                                                                   .columns = c->channels,
                                                                   .dy = c->array[0],
                                                                   .dbias = c->vector[2],
                                                                   .fresh = true,
                                                                   .workspace = c->workspace});
}

static sluice_status convert(slc_kernel_case *c)
{
    sluice_dtype other = c->dtype == SLUICE_BF16 ? SLUICE_FP32 : SLUICE_BF16;
    return slc_convert(&c->stream, other, c->array[0], c->dtype, c->array[3], c->count);
}

/* ---- Optimizers: gradient, value, both moments, rounded values. A bf16 gradient goes with rounded values. ---- */

/* A small rate keeps values of many calls in range. */
static slc_adamw_settings settings_with_decay(void)
{
    slc_adamw_settings settings = slc_adamw_usual_settings();
    settings.learning_rate = 1e-6;
    settings.weight_decay = 0.1;
    return settings;
}

static sluice_status optimizer_prepare(slc_kernel_case *c)
{
    for (int i = 1; i < 4; i++)
        for (uint64_t k = 0; k < c->count; k++)
            ((float *)c->array[i])[k] = (float)(k * 7 % 8191) * 0x1p-13f; /* so that no second moment is negative */
    return SLUICE_OK;
}

static slc_adamw_range range_of(const slc_kernel_case *c)
{
    return (slc_adamw_range){.count = c->count,
                             .gradient_dtype = c->dtype,
                             .gradient = c->array[0],
                             .value = c->array[1],
                             .exp_avg = c->array[2],
                             .exp_avg_sq = c->array[3],
                             .rounded = c->dtype == SLUICE_BF16 ? c->array[4] : NULL};
}

static sluice_status adamw(slc_kernel_case *c)
{
    const slc_adamw_settings settings = settings_with_decay();
    slc_adamw_range range = range_of(c);
    return slc_adamw_many(&c->stream, &settings, 1, &range);
}

static sluice_status sgd(slc_kernel_case *c)
{
    return slc_sgd(&c->stream, &(slc_sgd_args){.count = c->count,
                                               .gradient_dtype = c->dtype,
                                               .gradient = c->array[0],
                                               .value = c->array[1],
                                               .buffer = c->array[2],
                                               .rounded = c->dtype == SLUICE_BF16 ? c->array[4] : NULL,
                                               .learning_rate = 1e-6,
                                               .momentum = 0.9,
                                               .weight_decay = 0.1,
                                               .rest = 1,
                                               .gradient_factor = 1});
}

static sluice_status lamb_measure(slc_kernel_case *c)
{
    int64_t *values = c->workspace, *updates = values + SLC_NORM_BINS;
    const slc_adamw_settings settings = settings_with_decay();
    slc_adamw_range range = range_of(c);
    return slc_lamb_measure(&c->stream, &settings, 1, &range, &(slc_lamb_bins){values, updates});
}

static sluice_status lamb_apply(slc_kernel_case *c)
{
    const slc_adamw_settings settings = settings_with_decay();
    slc_adamw_range range = range_of(c);
    const double *norms = c->workspace;
    return slc_lamb_apply_measured(&c->stream, &settings, 1, &range, &norms, &(slc_lamb_bounds){0, 10, 0, 10});
}

KERNEL(gradient_norm, slc_norm_add(&c->stream, c->dtype, c->count, c->array[0], c->workspace))
KERNEL(all_finite, slc_all_finite(&c->stream, c->dtype, c->count, c->array[0], c->workspace))

static sluice_status step_words_inspect(slc_kernel_case *c)
{
    const slc_step_words_range range = {.count = c->count, .x = c->array[0]};
    const slc_step_words_inspect_args args = {
        .words = c->workspace, .dtype = c->dtype, .norm = SLC_INSPECT_NORM, .range_count = 1, .ranges = &range};
    return slc_step_words_inspect(&c->stream, &args);
}

static sluice_status reduce_two(slc_kernel_case *c)
{
    const void *sources[] = {c->array[0], c->array[1]};
    void *destination = c->array[3];
    const slc_reduce_args args = {.count = c->count,
                                  .from = c->dtype,
                                  .to = c->dtype,
                                  .sources = sources,
                                  .source_count = 2,
                                  .destination_count = 1,
                                  .destinations = &destination,
                                  .scale = 0.5f,
                                  .stream_stores = true};
    return slc_reduce(&c->stream, &args);
}

/* ---- First and last layers of models ---- */

enum { CLASSES = SLC_KERNEL_CLASSES, PATCHES = SLC_KERNEL_PATCHES, SIDE = 224, PATCH = 16 };

/* Works in place on the result of the previous call; its speed does not depend on the numbers. */
static sluice_status cross_entropy(slc_kernel_case *c)
{
    const slc_cross_entropy_args args = {.gradient = c->dtype,
                                         .rows = c->count / CLASSES,
                                         .classes = CLASSES,
                                         .stride = CLASSES,
                                         .logits = c->array[0],
                                         .targets = c->tokens,
                                         .gradient_scale = 1e-3f,
                                         .losses = c->statistic[0]};
    return slc_cross_entropy(&c->stream, &args);
}

static uint64_t sequence_length(const slc_kernel_case *c)
{
    uint64_t length = c->rows < 1024 ? c->rows : 1024;
    while (c->rows % length) length--;
    return length;
}

/* The output of a block beside its input, as --observe looks at them. */
KERNEL(likeness, slc_likeness(&c->stream, &(slc_likeness_args){.dtype = c->dtype,
                                                               .rows = c->rows,
                                                               .channels = c->channels,
                                                               .x = c->array[0],
                                                               .y = c->array[1],
                                                               .out = c->array[2]}))

static sluice_status embedding_forward(slc_kernel_case *c)
{
    uint64_t length = sequence_length(c);
    const slc_embedding_forward_args args = {.dtype = c->dtype,
                                             .batch = c->rows / length,
                                             .length = length,
                                             .channels = c->channels,
                                             .tokens = c->tokens,
                                             .tables = {.token = c->array[0], .position = c->array[1]},
                                             .out = c->array[3]};
    return slc_embedding_forward(&c->stream, &args);
}

static sluice_status embedding_backward(slc_kernel_case *c)
{
    uint64_t length = sequence_length(c);
    const slc_embedding_backward_args args = {
        .dtype = c->dtype,
        .gradient = c->dtype,
        .batch = c->rows / length,
        .length = length,
        .channels = c->channels,
        .tokens = c->tokens,
        .dout = c->array[0],
        .gradients = {.token = c->array[1], .position = c->array[2], .token_order = c->token_order},
        .workspace = c->workspace};
    return slc_embedding_backward(&c->stream, &args);
}

static sluice_status patches_unfold(slc_kernel_case *c)
{
    const slc_patches_unfold_args args = {.dtype = c->dtype,
                                          .shape = {c->count / (3 * SIDE * SIDE), 3, SIDE, SIDE, PATCH},
                                          .pixels = c->array[0],
                                          .columns = c->array[3]};
    return slc_patches_unfold(&c->stream, &args);
}

static slc_pool_args pool_args(const slc_kernel_case *c)
{
    return (slc_pool_args){.dtype = c->dtype,
                           .kind = SLC_POOL_MEAN_OF_REST,
                           .batch = c->rows / (1 + PATCHES),
                           .tokens = 1 + PATCHES,
                           .channels = c->channels,
                           .from = c->array[0],
                           .to = c->array[3]};
}

static sluice_status pool_forward(slc_kernel_case *c)
{
    const slc_pool_args args = pool_args(c);
    return slc_pool_forward(&c->stream, &args);
}

static sluice_status pool_backward(slc_kernel_case *c)
{
    const slc_pool_args args = pool_args(c);
    return slc_pool_backward(&c->stream, &args);
}

static sluice_status patch_embedding_forward(slc_kernel_case *c)
{
    const slc_patch_embedding_forward_args args = {.dtype = c->dtype,
                                                   .batch = c->rows / (1 + PATCHES),
                                                   .patches = PATCHES,
                                                   .channels = c->channels,
                                                   .x = c->array[0],
                                                   .cls = c->vector[0],
                                                   .position = c->array[1],
                                                   .out = c->array[3]};
    return slc_patch_embedding_forward(&c->stream, &args);
}

static sluice_status patch_embedding_backward(slc_kernel_case *c)
{
    const slc_patch_embedding_backward_args args = {.dtype = c->dtype,
                                                    .gradient = c->dtype,
                                                    .batch = c->rows / (1 + PATCHES),
                                                    .patches = PATCHES,
                                                    .channels = c->channels,
                                                    .dout = c->array[0],
                                                    .dx = c->array[3],
                                                    .dcls = c->vector[2],
                                                    .dposition = c->array[1],
                                                    .fresh = true};
    return slc_patch_embedding_backward(&c->stream, &args);
}

/* ---- A one-bit exchange of two ranks ----
 *
 * The workspace has 64 bytes for scales, four packets, and then the numbers below. */

typedef struct {
    int64_t bins[2][SLC_NORM_BINS], ratio;
    double coefficient;
    bool finite;
} exchange_numbers;

static slc_compress_shape exchange_shape(const slc_kernel_case *c)
{
    return (slc_compress_shape){.count = c->count / 32 * 32, .ranks = 2};
}

static char *packets_of(const slc_kernel_case *c, uint64_t which)
{
    slc_compress_shape shape = exchange_shape(c);
    return (char *)c->workspace + 64 + which * slc_compress_stride(&shape);
}

static exchange_numbers *numbers_of(const slc_kernel_case *c)
{
    return (exchange_numbers *)(void *)packets_of(c, 4);
}

static slc_residue residue_of(slc_kernel_case *c)
{
    return (slc_residue){c->array[2], c->workspace, numbers_of(c)->bins[0]};
}

/* array[2] gets errors of zero, array[4] a variance, the packets random bits with a small scale. On a GPU, whose
 * workspace the host does not reach, packets stay zero. */
static sluice_status prepare_exchange(slc_kernel_case *c)
{
    slc_compress_shape shape = exchange_shape(c);
    uint64_t stride = slc_compress_stride(&shape);
    memset(c->array[2], 0, c->count * sizeof(float));
    for (uint64_t i = 0; i < c->count; i++) ((float *)c->array[4])[i] = 1e-4f;
    if (!c->workspace_bytes) return SLUICE_OK;
    if (64 + 4 * stride + sizeof(exchange_numbers) > c->workspace_bytes)
        return slc_error(SLUICE_ERR_ARGUMENT, "--size: at most 256MiB for this");
    memset(c->workspace, 0, 64);
    *numbers_of(c) = (exchange_numbers){.coefficient = 1};
    for (uint64_t which = 0; which < 4; which++) {
        memcpy(packets_of(c, which), c->array[which % 2], stride);
        const float scale = 1e-3f;
        memcpy(packets_of(c, which), &scale, sizeof scale);
    }
    return SLUICE_OK;
}

static sluice_status compress_worker(slc_kernel_case *c)
{
    const slc_compress_shape shape = exchange_shape(c);
    const slc_compress_input input = {.gradient_dtype = c->dtype,
                                      .momentum_dtype = c->dtype,
                                      .gradient = c->array[0],
                                      .momentum = c->array[1],
                                      .gradient_factor = 1,
                                      .factor = 0.9,
                                      .rest = 0.1};
    const slc_residue worker = residue_of(c);
    return slc_compress_worker(&c->stream, &shape, &input, &worker, packets_of(c, 0), slc_compress_stride(&shape));
}

/* Compresses the chunks of both servers in sequence, so that every element is compressed once. */
static sluice_status compress_server(slc_kernel_case *c)
{
    const slc_compress_shape shape = exchange_shape(c);
    uint64_t chunk = slc_compress_chunk(&shape);
    for (uint64_t k = 0; k < shape.ranks; k++) {
        const void *packets[] = {packets_of(c, 0), packets_of(c, 1)};
        const slc_residue server = {(float *)c->array[2] + k * chunk, c->workspace, NULL};
        const slc_compress_served served = {.shape = &shape,
                                            .packets = packets,
                                            .server = &server,
                                            .bins = numbers_of(c)->bins[0],
                                            .packet = packets_of(c, 2 + k)};
        sluice_status status = slc_compress_server(&c->stream, &served, 0, chunk);
        if (!status) status = slc_compress_server_end(&c->stream, &served);
        if (status) return status;
    }
    return SLUICE_OK;
}

/* Returns all results that an exchange of this shape leaves. */
static slc_compress_results results_of(const slc_kernel_case *c, const slc_compress_shape *shape)
{
    return (slc_compress_results){
        .shape = shape, .packets = packets_of(c, 2), .stride = slc_compress_stride(shape), .count = shape->count};
}

static sluice_status compress_apply(slc_kernel_case *c)
{
    const slc_compress_shape shape = exchange_shape(c);
    const slc_adamw_settings settings = settings_with_decay();
    const slc_frozen_range range = {.count = shape.count,
                                    .value = c->array[3],
                                    .momentum = c->array[1],
                                    .momentum_dtype = c->dtype,
                                    .exp_avg_sq = c->array[4],
                                    .mask = true};
    const slc_compress_results results = results_of(c, &shape);
    return slc_compress_apply(&c->stream, &settings, &results, &range, &numbers_of(c)->finite);
}

/* ---- 1-bit LAMB after an exchange; always in fp32 ---- */

static slc_frozen_lamb_settings frozen_lamb_settings(void)
{
    return (slc_frozen_lamb_settings){.adam = settings_with_decay(), .fresh_correction = 1};
}

static slc_frozen_lamb_range frozen_lamb_range_of(const slc_kernel_case *c)
{
    return (slc_frozen_lamb_range){.count = exchange_shape(c).count,
                                   .value = c->array[3],
                                   .momentum = c->array[1],
                                   .fresh = c->array[2],
                                   .exp_avg_sq = c->array[4],
                                   .fresh_last = c->array[2],
                                   .mask = true};
}

static sluice_status frozen_lamb_receive(slc_kernel_case *c)
{
    const slc_compress_shape shape = exchange_shape(c);
    const slc_frozen_lamb_settings settings = frozen_lamb_settings();
    const slc_frozen_lamb_range range = frozen_lamb_range_of(c);
    exchange_numbers *numbers = numbers_of(c);
    const slc_compress_results results = results_of(c, &shape);
    return slc_frozen_lamb_receive(&c->stream, &settings, &results, 1.5, &range,
                                   &(slc_frozen_lamb_sums){numbers->bins[0], numbers->bins[1], &numbers->ratio});
}

static sluice_status frozen_lamb_move(slc_kernel_case *c)
{
    const slc_frozen_lamb_settings settings = frozen_lamb_settings();
    const slc_frozen_lamb_range range = frozen_lamb_range_of(c);
    return slc_frozen_lamb_move(&c->stream, &settings, &range, &numbers_of(c)->coefficient);
}

/* ---- 0/1 Adam in the middle of an interval ---- */

static slc_zero_one_range zero_one_range_of(const slc_kernel_case *c)
{
    return (slc_zero_one_range){.count = exchange_shape(c).count,
                                .value = c->array[3],
                                .exp_avg = c->array[1],
                                .exp_avg_sq = c->array[4],
                                .accumulator = c->array[2],
                                .kept = c->array[2],
                                .mask = true};
}

static sluice_status zero_one_compress(slc_kernel_case *c)
{
    const slc_compress_shape shape = exchange_shape(c);
    const slc_residue worker = residue_of(c);
    const slc_compress_input input = {
        .gradient_dtype = c->dtype,
        .momentum_dtype = SLUICE_FP32,
        .gradient = c->array[0],
        .momentum = c->array[1],
        .gradient_factor = 1,
        .factor = -0.9e-6,
        .rest = -0.1e-6,
        .moves = {.exp_avg_sq = c->array[4], .accumulator = c->array[3], .rescale = 1, .epsilon = 1e-8}};
    return slc_compress_worker(&c->stream, &shape, &input, &worker, packets_of(c, 0), slc_compress_stride(&shape));
}

static sluice_status zero_one_gradient(slc_kernel_case *c)
{
    const slc_compress_shape shape = exchange_shape(c);
    const slc_adamw_settings settings = settings_with_decay();
    const slc_zero_one_range range = zero_one_range_of(c);
    const slc_compress_results results = results_of(c, &shape);
    return slc_zero_one_gradient(&c->stream, &settings, &results, &range, &numbers_of(c)->finite);
}

static sluice_status zero_one_local(slc_kernel_case *c)
{
    const slc_adamw_settings settings = settings_with_decay();
    const slc_zero_one_range range = zero_one_range_of(c);
    return slc_zero_one_local(&c->stream, &settings, c->dtype, c->array[0], &range);
}

static sluice_status zero_one_exchanged(slc_kernel_case *c)
{
    const slc_compress_shape shape = exchange_shape(c);
    const slc_adamw_settings settings = settings_with_decay();
    const slc_zero_one_range range = zero_one_range_of(c);
    const slc_compress_results results = results_of(c, &shape);
    return slc_zero_one_exchanged(&c->stream, &settings, -1, 1, &results, &range, &numbers_of(c)->finite);
}

const slc_kernel_row slc_kernel_table[] = {
    {"layer_norm_forward", {8, 4}, NULL, layer_norm, SLC_GPU_TOKENS},
    {"layer_norm_backward", {12, 6}, NULL, layer_norm_backward, SLC_GPU_TOKENS},
    {"layer_norm_backward_add", {16, 8}, NULL, layer_norm_backward_add, SLC_GPU_TOKENS},
    {"gelu_forward", {8, 4}, NULL, gelu_forward, SLC_GPU_WIDE},
    {"gelu_backward", {12, 6}, NULL, gelu_backward, SLC_GPU_WIDE},
    {"gelu_erf_forward", {8, 4}, NULL, gelu_erf_forward, SLC_GPU_WIDE},
    {"gelu_erf_backward", {12, 6}, NULL, gelu_erf_backward, SLC_GPU_WIDE},
    {"dropout", {8, 4}, NULL, dropout, SLC_GPU_WIDE},
    {"residual_forward",
     {12, 6},
     NULL,
     residual_forward,
     SLC_GPU_TOKENS}, /* bias + dropout + residual; no mask is stored */
    {"residual_scale_forward", {12, 6}, NULL, residual_scale_forward, SLC_GPU_TOKENS},
    {"residual_scale_backward", {12, 6}, NULL, residual_scale_backward, SLC_GPU_TOKENS},
    {"bias_backward", {4, 2}, NULL, bias_backward, SLC_GPU_WIDE},
    {"convert_to", {6, 6}, NULL, convert, SLC_GPU_PARAMETERS},
    {"adamw", {28, 28}, optimizer_prepare, adamw, SLC_GPU_PARAMETERS},
    {"sgd", {20, 20}, optimizer_prepare, sgd, SLC_GPU_PARAMETERS},
    {"lamb_measure", {16, 14}, optimizer_prepare, lamb_measure, SLC_GPU_PARAMETERS},
    {"lamb_apply", {28, 28}, optimizer_prepare, lamb_apply, SLC_GPU_PARAMETERS},
    {"gradient_norm", {4, 2}, NULL, gradient_norm, SLC_GPU_PARAMETERS},
    {"all_finite", {4, 2}, NULL, all_finite, SLC_GPU_PARAMETERS},
    {"step_words_inspect", {4, 2}, NULL, step_words_inspect, SLC_GPU_PARAMETERS},
    {"reduce_two", {12, 6}, NULL, reduce_two, SLC_GPU_PARAMETERS},
    {"cross_entropy", {8, 6}, NULL, cross_entropy, SLC_GPU_LOGITS},
    /* Positions stay in the cache. Backward reads dout once and, of the table, only the rows that the tokens name: a
     * sixth. */
    {"likeness", {8, 4}, NULL, likeness, SLC_GPU_TOKENS},
    {"embedding_forward", {8, 4}, NULL, embedding_forward, SLC_GPU_TOKENS},
    {"embedding_backward", {5.3, 2.65}, NULL, embedding_backward, SLC_GPU_TOKENS},
    {"patches_unfold", {8, 6}, NULL, patches_unfold, SLC_GPU_IMAGES},
    {"pool_forward", {4, 2}, NULL, pool_forward, SLC_GPU_PATCHES},
    {"pool_backward", {4, 2}, NULL, pool_backward, SLC_GPU_PATCHES},
    {"patch_embedding_forward", {8, 4}, NULL, patch_embedding_forward, SLC_GPU_PATCHES},
    {"patch_embedding_backward", {8, 4}, NULL, patch_embedding_backward, SLC_GPU_PATCHES},
    {"compress_worker", {16.125, 12.125}, prepare_exchange, compress_worker, SLC_GPU_PARAMETERS},
    {"compress_server", {8.375, 8.375}, prepare_exchange, compress_server, SLC_GPU_PARAMETERS},
    {"compress_apply", {16.125, 14.125}, prepare_exchange, compress_apply, SLC_GPU_PARAMETERS},
    {"frozen_lamb_receive", {24.125, 24.125}, prepare_exchange, frozen_lamb_receive, SLC_GPU_PARAMETERS},
    {"frozen_lamb_move", {16, 16}, prepare_exchange, frozen_lamb_move, SLC_GPU_PARAMETERS},
    {"zero_one_compress", {24.125, 22.125}, prepare_exchange, zero_one_compress, SLC_GPU_PARAMETERS},
    {"zero_one_gradient", {20.125, 20.125}, prepare_exchange, zero_one_gradient, SLC_GPU_PARAMETERS},
    {"zero_one_local", {32, 30}, prepare_exchange, zero_one_local, SLC_GPU_PARAMETERS},
    {"zero_one_exchanged", {16.125, 16.125}, prepare_exchange, zero_one_exchanged, SLC_GPU_PARAMETERS},
};
const uint32_t slc_kernel_table_rows = sizeof slc_kernel_table / sizeof *slc_kernel_table;
