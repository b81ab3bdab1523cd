/* GPT-2 in float64, put together from the kernels' references. Forward keeps every intermediate of the batch; backward
 * walks them in reverse and adds to the gradients. Nothing is fused, nothing is clever. */
#include "tests/support/model/gpt2_ref.h"

#include "lib/base/status.h"
#include "lib/kernels/attention/attention.h"
#include "lib/kernels/cross_entropy/cross_entropy.h"
#include "lib/kernels/embedding/embedding.h"
#include "lib/kernels/gelu/gelu.h"
#include "lib/kernels/gemm/gemm.h"
#include "lib/kernels/layer_norm/layer_norm.h"
#include "lib/kernels/residual/residual.h"
#include "lib/model/params.h"

#include <stdlib.h>
#include <string.h>

/* A block's parameters in registration order; a weight or gamma is followed by its bias or beta. */
enum { LN1 = 0, QKV = 2, PROJECTION = 4, LN2 = 6, FC = 8, MLP = 10, BLOCK_PARAMS = 12, FIRST_BLOCK = 2 };

typedef struct {
    double *y, *mean, *rstd;
} norm_values;

typedef struct {
    norm_values norm1, norm2;
    double *x, *third[3], *attention, *logsumexp, *mid, *hidden, *active; /* third: q, k, v */
} block_values;

typedef struct {
    const sluice_model_config *config;
    const double *params;
    double *gradients;
    uint64_t rows;
    slc_attention_shape shape;
    double *memory; /* holds all arrays below */
    block_values *blocks;
    norm_values norm;
    double *last, *logits, *losses, *weights; /* after the blocks; weights: scratch of attention */
    double *dx, *dnorm, *dthird[3], *dwide;   /* gradients on their way down */
} pass;

/* The index, among all parameters' elements, at which a parameter begins. */
static uint64_t offset_of(const pass *s, uint32_t index)
{
    uint64_t at = 0;
    slc_param_info info;
    for (uint32_t i = 0; i < index && slc_param_info_at(s->config, i, &info); i++) at += info.count;
    return at;
}

/* ---- Layers with parameters: their number is the first one's; backward adds to their gradients ---- */

static void norm(const pass *s, uint32_t number, const double *x, const norm_values *v)
{
    const double *gamma = s->params + offset_of(s, number);
    slc_layer_norm_forward_ref(&(slc_layer_norm_forward_args){.rows = s->rows,
                                                              .channels = s->config->channels,
                                                              .epsilon = 1e-5,
                                                              .x = x,
                                                              .gamma = gamma,
                                                              .beta = gamma + s->config->channels,
                                                              .y = v->y,
                                                              .mean = v->mean,
                                                              .rstd = v->rstd});
}

/* dx += the derivative of norm. */
static void norm_backward(const pass *s, uint32_t number, const double *x, const norm_values *v)
{
    uint64_t gamma = offset_of(s, number), channels = s->config->channels;
    slc_layer_norm_backward_ref(&(slc_layer_norm_backward_args){.rows = s->rows,
                                                                .channels = channels,
                                                                .dy = s->dnorm,
                                                                .x = x,
                                                                .gamma = s->params + gamma,
                                                                .mean = v->mean,
                                                                .rstd = v->rstd,
                                                                .dx_add = s->dx,
                                                                .dx = s->dx,
                                                                .dgamma = s->gradients + gamma,
                                                                .dbeta = s->gradients + gamma + channels});
}

/* Columns [first, first + out) of a layer that has `row` outputs: y = x w + b (+ residual). */
static void linear(const pass *s, uint32_t number, uint64_t in, uint64_t row, uint64_t first, uint64_t out,
                   const double *x, const double *residual, double *y)
{
    const double *w = s->params + offset_of(s, number), *b = w + in * row;
    const slc_gemm_shape shape = {
        .bias = true, .residual = residual != NULL, .m = s->rows, .n = out, .k = in, .ldb = row};
    slc_gemm_ref(&shape, &(slc_gemm_operands){.a = x, .b = w + first, .bias = b + first, .residual = residual, .c = y});
}

/* Stores dx, or adds to it if `adds`. */
static void linear_backward(const pass *s, uint32_t number, uint64_t in, uint64_t row, uint64_t first, uint64_t out,
                            const double *x, const double *dy, double *dx, bool adds)
{
    uint64_t w = offset_of(s, number) + first, b = w + in * row;
    const slc_gemm_shape inputs = {
        .transpose_b = true, .accumulate = adds, .m = s->rows, .n = in, .k = out, .ldb = row};
    const slc_gemm_shape matrix = {
        .transpose_a = true, .accumulate = true, .m = in, .n = out, .k = s->rows, .ldc = row};
    slc_gemm_ref(&inputs, &(slc_gemm_operands){.a = dy, .b = s->params + w, .c = dx});
    slc_gemm_ref(&matrix, &(slc_gemm_operands){.a = x, .b = dy, .c = s->gradients + w});
    slc_bias_backward_ref(
        &(slc_bias_backward_args){.rows = s->rows, .columns = out, .dy = dy, .dbias = s->gradients + b});
}

/* ---- The model ---- */

static double *take_place(double **at, uint64_t count)
{
    double *piece = *at;
    *at += count;
    return piece;
}

static sluice_status pass_create(const sluice_model_config *c, uint32_t batch, uint32_t length, pass *s)
{
    uint64_t rows = (uint64_t)batch * length, vector = rows * c->channels, tail = rows * (c->vocabulary + 3) + length;
    s->rows = rows;
    s->shape = (slc_attention_shape){
        .batch = batch, .tokens = length, .heads = c->heads, .head_size = c->channels / c->heads, .causal = true};
    s->blocks = calloc(c->layers, sizeof *s->blocks);
    s->memory = calloc(c->layers * (16 * vector + (4 + c->heads) * rows) + 11 * vector + tail, sizeof *s->memory);
    if (!s->blocks || !s->memory) return slc_error(SLUICE_ERR_MEMORY, "gpt2 reference");
    double *at = s->memory;
    for (uint32_t i = 0; i < c->layers; i++) {
        block_values *b = &s->blocks[i];
        b->norm1 = (norm_values){take_place(&at, vector), take_place(&at, rows), take_place(&at, rows)};
        b->norm2 = (norm_values){take_place(&at, vector), take_place(&at, rows), take_place(&at, rows)};
        b->x = take_place(&at, vector);
        for (int j = 0; j < 3; j++) b->third[j] = take_place(&at, vector);
        b->attention = take_place(&at, vector);
        b->logsumexp = take_place(&at, c->heads * rows);
        b->mid = take_place(&at, vector);
        b->hidden = take_place(&at, 4 * vector);
        b->active = take_place(&at, 4 * vector);
    }
    s->norm = (norm_values){take_place(&at, vector), take_place(&at, rows), take_place(&at, rows)};
    s->last = take_place(&at, vector);
    s->dx = take_place(&at, vector);
    s->dnorm = take_place(&at, vector);
    for (int j = 0; j < 3; j++) s->dthird[j] = take_place(&at, vector);
    s->dwide = take_place(&at, 4 * vector);
    s->logits = take_place(&at, rows * c->vocabulary);
    s->losses = take_place(&at, rows);
    s->weights = take_place(&at, length);
    return SLUICE_OK;
}

static void block_forward(const pass *s, uint32_t index, double *out)
{
    const uint32_t number = FIRST_BLOCK + index * BLOCK_PARAMS;
    const uint64_t ch = s->config->channels;
    const block_values *b = &s->blocks[index];
    norm(s, number + LN1, b->x, &b->norm1);
    for (uint64_t j = 0; j < 3; j++) linear(s, number + QKV, ch, 3 * ch, j * ch, ch, b->norm1.y, NULL, b->third[j]);
    slc_attention_forward_ref(&(slc_attention_forward_args){.shape = s->shape,
                                                            .q = b->third[0],
                                                            .k = b->third[1],
                                                            .v = b->third[2],
                                                            .out = b->attention,
                                                            .logsumexp = b->logsumexp,
                                                            .workspace = s->weights});
    linear(s, number + PROJECTION, ch, ch, 0, ch, b->attention, b->x, b->mid);
    norm(s, number + LN2, b->mid, &b->norm2);
    linear(s, number + FC, ch, 4 * ch, 0, 4 * ch, b->norm2.y, NULL, b->hidden);
    slc_gelu_forward_ref(SLC_GELU_TANH, 4 * s->rows * ch, b->hidden, b->active);
    linear(s, number + MLP, 4 * ch, ch, 0, ch, b->active, b->mid, out);
}

static void block_backward(const pass *s, uint32_t index)
{
    const uint32_t number = FIRST_BLOCK + index * BLOCK_PARAMS;
    const uint64_t ch = s->config->channels;
    const block_values *b = &s->blocks[index];
    linear_backward(s, number + MLP, 4 * ch, ch, 0, ch, b->active, s->dx, s->dwide, false);
    slc_gelu_backward_ref(SLC_GELU_TANH, 4 * s->rows * ch, b->hidden, s->dwide, s->dwide);
    linear_backward(s, number + FC, ch, 4 * ch, 0, 4 * ch, b->norm2.y, s->dwide, s->dnorm, false);
    norm_backward(s, number + LN2, b->mid, &b->norm2);
    linear_backward(s, number + PROJECTION, ch, ch, 0, ch, b->attention, s->dx, s->dnorm, false);
    slc_attention_backward_ref(&(slc_attention_backward_args){.shape = s->shape,
                                                              .q = b->third[0],
                                                              .k = b->third[1],
                                                              .v = b->third[2],
                                                              .out = b->attention,
                                                              .dout = s->dnorm,
                                                              .logsumexp = b->logsumexp,
                                                              .dq = s->dthird[0],
                                                              .dk = s->dthird[1],
                                                              .dv = s->dthird[2]});
    for (uint64_t j = 0; j < 3; j++)
        linear_backward(s, number + QKV, ch, 3 * ch, j * ch, ch, b->norm1.y, s->dthird[j], s->dnorm, j > 0);
    norm_backward(s, number + LN1, b->x, &b->norm1);
}

/* The head's logits are x wte'. */
static void forward(const pass *s, const int32_t *token)
{
    const sluice_model_config *c = s->config;
    const slc_embedding_forward_args embedding = {
        .batch = s->shape.batch,
        .length = s->shape.tokens,
        .channels = c->channels,
        .tokens = token,
        .tables = {.token = s->params, .position = s->params + offset_of(s, 1)},
        .out = c->layers ? s->blocks[0].x : s->last};
    const slc_gemm_shape head = {.transpose_b = true, .m = s->rows, .n = c->vocabulary, .k = c->channels};
    slc_embedding_forward_ref(&embedding);
    for (uint32_t l = 0; l < c->layers; l++) block_forward(s, l, l + 1 < c->layers ? s->blocks[l + 1].x : s->last);
    norm(s, FIRST_BLOCK + c->layers * BLOCK_PARAMS, s->last, &s->norm);
    slc_gemm_ref(&head, &(slc_gemm_operands){.a = s->norm.y, .b = s->params, .c = s->logits});
}

/* The logits hold their gradients by now. */
static void backward(const pass *s, const int32_t *token)
{
    const sluice_model_config *c = s->config;
    const slc_embedding_backward_args embedding = {
        .batch = s->shape.batch,
        .length = s->shape.tokens,
        .channels = c->channels,
        .tokens = token,
        .dout = s->dx,
        .gradients = {.token = s->gradients, .position = s->gradients + offset_of(s, 1)}};
    const slc_gemm_shape inputs = {.m = s->rows, .n = c->channels, .k = c->vocabulary};
    const slc_gemm_shape table = {
        .transpose_a = true, .accumulate = true, .m = c->vocabulary, .n = c->channels, .k = s->rows};
    slc_gemm_ref(&inputs, &(slc_gemm_operands){.a = s->logits, .b = s->params, .c = s->dnorm});
    slc_gemm_ref(&table, &(slc_gemm_operands){.a = s->logits, .b = s->norm.y, .c = s->gradients});
    norm_backward(s, FIRST_BLOCK + c->layers * BLOCK_PARAMS, s->last, &s->norm);
    for (uint32_t l = c->layers; l-- > 0;) block_backward(s, l);
    slc_embedding_backward_ref(&embedding);
}

sluice_status slc_gpt2_ref(const sluice_model_config *config, uint32_t batch, uint32_t length, const int32_t *token,
                           const int32_t *target, const double *params, double *loss, double *logits, double *gradients)
{
    pass s = {.config = config, .params = params, .gradients = gradients};
    sluice_status status = pass_create(config, batch, length, &s);
    if (status) goto destroy;
    double count = 0, sum = 0;
    for (uint64_t i = 0; i < s.rows; i++) count += target[i] >= 0;
    forward(&s, token);
    if (logits) memcpy(logits, s.logits, s.rows * config->vocabulary * sizeof *logits);
    slc_cross_entropy_ref(&(slc_cross_entropy_args){.rows = s.rows,
                                                    .classes = config->vocabulary,
                                                    .stride = config->vocabulary,
                                                    .logits = s.logits,
                                                    .targets = target,
                                                    .gradient_scale = (float)(1 / count),
                                                    .losses = s.losses});
    for (uint64_t i = 0; i < s.rows; i++) sum += s.losses[i];
    *loss = sum / count;
    if (gradients) memset(gradients, 0, sluice_model_param_count(config) * sizeof *gradients);
    if (gradients) backward(&s, token);

destroy:
    free(s.memory);
    free(s.blocks);
    return status;
}
