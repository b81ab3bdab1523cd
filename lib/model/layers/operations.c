/* The operations of operations.h: they translate tensors and parameters to the kernels' arguments. A parameter's first
 * gradient of a step is stored, later ones are added. lib/model/golden_models_test.c covers this file. */
#include "lib/model/layers/operations.h"

#include "lib/kernels/convert/convert.h"
#include "lib/kernels/cross_entropy/cross_entropy.h"
#include "lib/kernels/embedding/embedding.h"
#include "lib/kernels/layer_norm/layer_norm.h"
#include "lib/kernels/likeness/likeness.h"
#include "lib/kernels/residual/residual.h"
#include "lib/model/layers/layer_run.h"
#include "lib/model/layers/logits.h"
#include "lib/model/blocks/observation.h"

static void *at(slc_layer_run *run, slc_view view, sluice_dtype dtype)
{
    unsigned char *base = slc_layer_run_tensor(run, view.tensor);
    return base ? base + view.first * sluice_dtype_bytes(dtype) : NULL;
}

/* ---- Dense layers ---- */

slc_dense slc_dense_of(const slc_layer_run *run, slc_param_place weight, uint64_t rows, uint64_t inputs,
                       uint64_t outputs)
{
    slc_param_place bias = (slc_param_place)(weight + 1);
    return (slc_dense){.weight = weight,
                       .rows = rows,
                       .inputs = inputs,
                       .outputs = outputs,
                       .bias = run->layer->params[bias] ? bias : SLC_NO_PARAM};
}

static bool inputs_first(const slc_layer_run *run, const slc_dense *d)
{
    return slc_family_of(run->m->config.family)->inputs_first && !d->by_rows;
}

/* Returns true if the product has a factor. In a model whose branches are scaled, a product that ends a branch alone
 * has one, be it 1. */
static bool has_factor(const slc_layer_run *run, const slc_dense *d)
{
    return d->in_branch && run->m->scales_branches;
}

static sluice_status product(slc_layer_run *run, const slc_gemm_shape *shape, const void *a, const void *b,
                             const void *bias, const void *residual, void *c)
{
    uint64_t bytes = 0;
    sluice_status status = slc_gemm_workspace_bytes(run->m->stream, shape, &bytes);
    if (status) return status;
    void *scratch = slc_layer_run_scratch(run, bytes);
    if (run->scan) return SLUICE_OK;
    const slc_gemm_operands operands = {
        .a = a, .b = b, .bias = bias, .residual = residual, .c = c, .factor = slc_layer_run_factor(run)};
    return slc_gemm(run->m->stream, shape, &operands, scratch, bytes);
}

sluice_status slc_apply_dense(slc_layer_run *run, const slc_dense *d, slc_view x, slc_view y, slc_view residual)
{
    slc_layer_run_next(run);
    sluice_dtype dtype = run->layer->dtype, out = d->fp32_out ? SLUICE_FP32 : dtype;
    const slc_gemm_shape shape = {.dtype = dtype,
                                  .out = out,
                                  .transpose_b = !inputs_first(run, d),
                                  .bias = d->bias != SLC_NO_PARAM,
                                  .residual = residual.tensor != SLC_NO_TENSOR,
                                  .factor = has_factor(run, d),
                                  .m = d->rows,
                                  .n = d->outputs,
                                  .k = d->inputs,
                                  .lda = x.stride,
                                  .ldc = y.stride};
    const void *from = at(run, x, dtype), *add = at(run, residual, out);
    void *to = at(run, y, out);
    const void *weight = slc_layer_run_value(run, d->weight), *bias = slc_layer_run_value(run, d->bias);
    if (!run->scan && (!weight || (shape.bias && !bias))) return SLUICE_ERR_ORDER;
    return product(run, &shape, from, weight, bias, add, to);
}

sluice_status slc_apply_dense_params(slc_layer_run *run, const slc_dense *d, slc_view x, slc_view dy)
{
    slc_layer_run_next(run);
    sluice_dtype dtype = run->layer->dtype;
    const void *input = at(run, x, dtype), *output = at(run, dy, dtype);
    bool fresh = true, fresh_bias = true, first = inputs_first(run, d);
    void *dweight = slc_layer_run_gradient(run, d->weight, &fresh);
    void *dbias = slc_layer_run_gradient(run, d->bias, &fresh_bias);
    if (!run->scan && (!dweight || (d->bias && !dbias))) return SLUICE_ERR_ORDER;
    const slc_gemm_shape shape = {.dtype = dtype,
                                  .out = slc_layer_run_gradient_dtype(run, d->weight),
                                  .transpose_a = true,
                                  .accumulate = !fresh || run->scan,
                                  .factor = has_factor(run, d),
                                  .m = first ? d->inputs : d->outputs,
                                  .n = first ? d->outputs : d->inputs,
                                  .k = d->rows,
                                  .lda = first ? x.stride : dy.stride,
                                  .ldb = first ? dy.stride : x.stride};
    slc_gemm_shape stored = shape;
    stored.accumulate = false;
    sluice_status status = SLUICE_OK;
    if (run->scan) status = product(run, &stored, NULL, NULL, NULL, NULL, NULL);
    if (!status) status = product(run, &shape, first ? input : output, first ? output : input, NULL, NULL, dweight);
    if (status || !d->bias) return status;
    void *scratch = slc_layer_run_scratch(run, slc_bias_backward_workspace_bytes(run->m->stream, d->rows, d->outputs));
    if (run->scan) return SLUICE_OK;
    const slc_bias_backward_args args = {.dtype = dtype,
                                         .gradient = slc_layer_run_gradient_dtype(run, d->bias),
                                         .rows = d->rows,
                                         .columns = d->outputs,
                                         .stride = dy.stride,
                                         .dy = output,
                                         .dbias = dbias,
                                         .fresh = fresh_bias,
                                         .workspace = scratch,
                                         .factor = has_factor(run, d) ? slc_layer_run_factor(run) : 1};
    return slc_bias_backward(run->m->stream, &args);
}

sluice_status slc_apply_dense_input(slc_layer_run *run, const slc_dense *d, slc_view dy, slc_view dx, bool add,
                                    slc_view residual)
{
    slc_layer_run_next(run);
    sluice_dtype dtype = run->layer->dtype;
    const slc_gemm_shape shape = {.dtype = dtype,
                                  .out = dtype,
                                  .transpose_b = inputs_first(run, d),
                                  .accumulate = add,
                                  .residual = residual.tensor != SLC_NO_TENSOR,
                                  .factor = has_factor(run, d),
                                  .m = d->rows,
                                  .n = d->inputs,
                                  .k = d->outputs,
                                  .lda = dy.stride,
                                  .ldc = dx.stride};
    const void *from = at(run, dy, dtype), *more = at(run, residual, dtype);
    void *to = at(run, dx, dtype);
    const void *weight = slc_layer_run_value(run, d->weight);
    if (!run->scan && !weight) return SLUICE_ERR_ORDER;
    return product(run, &shape, from, weight, NULL, more, to);
}

/* ---- Norms ---- */

sluice_status slc_apply_norm(slc_layer_run *run, slc_param_place weight, uint64_t rows, slc_view x, slc_view y,
                             uint32_t stats)
{
    slc_layer_run_next(run);
    sluice_dtype dtype = run->layer->dtype;
    float *mean = slc_layer_run_tensor(run, stats);
    const slc_layer_norm_forward_args args = {.dtype = dtype,
                                              .rows = rows,
                                              .channels = run->m->config.channels,
                                              .epsilon = run->m->config.epsilon,
                                              .x = at(run, x, dtype),
                                              .gamma = slc_layer_run_value(run, weight),
                                              .beta = slc_layer_run_value(run, (slc_param_place)(weight + 1)),
                                              .y = at(run, y, dtype),
                                              .mean = mean,
                                              .rstd = mean ? mean + rows : NULL};
    if (run->scan) return SLUICE_OK;
    return args.gamma && args.beta ? slc_layer_norm_forward(run->m->stream, &args) : SLUICE_ERR_ORDER;
}

sluice_status slc_apply_norm_backward(slc_layer_run *run, slc_param_place weight, uint64_t rows, slc_view dy,
                                      slc_view x, uint32_t stats, slc_view add, slc_view dx)
{
    slc_layer_run_next(run);
    sluice_dtype dtype = run->layer->dtype;
    sluice_stream *stream = run->m->stream;
    uint64_t channels = run->m->config.channels;
    const float *mean = slc_layer_run_tensor(run, stats);
    slc_param_place bias = (slc_param_place)(weight + 1);
    bool fresh = false, fresh_bias = false;
    void *dgamma = slc_layer_run_gradient(run, weight, &fresh), *dbeta = slc_layer_run_gradient(run, bias, &fresh_bias);
    const slc_layer_norm_backward_args args = {
        .dtype = dtype,
        .gradient = slc_layer_run_gradient_dtype(run, weight),
        .rows = rows,
        .channels = channels,
        .dy = at(run, dy, dtype),
        .x = at(run, x, dtype),
        .gamma = slc_layer_run_value(run, weight),
        .mean = mean,
        .rstd = mean ? mean + rows : NULL,
        .dx_add = at(run, add, dtype),
        .dx = at(run, dx, dtype),
        .dgamma = dgamma,
        .dbeta = dbeta,
        .fresh = fresh && fresh_bias,
        .workspace = slc_layer_run_scratch(run, slc_layer_norm_backward_workspace_bytes(stream, rows, channels))};
    if (run->scan) return SLUICE_OK;
    return args.gamma && dgamma && dbeta ? slc_layer_norm_backward(stream, &args) : SLUICE_ERR_ORDER;
}

/* ---- Elementwise ---- */

static slc_gelu_kind gelu_kind(const slc_layer_run *run)
{
    return run->m->config.gelu_tanh ? SLC_GELU_TANH : SLC_GELU_ERF;
}

sluice_status slc_apply_gelu(slc_layer_run *run, uint64_t count, uint32_t x, uint32_t y)
{
    slc_layer_run_next(run);
    const void *from = slc_layer_run_tensor(run, x);
    void *to = slc_layer_run_tensor(run, y);
    return run->scan ? SLUICE_OK : slc_gelu_forward(run->m->stream, gelu_kind(run), run->layer->dtype, count, from, to);
}

sluice_status slc_apply_gelu_backward(slc_layer_run *run, uint64_t count, uint32_t x, uint32_t dy, uint32_t dx)
{
    slc_layer_run_next(run);
    const void *input = slc_layer_run_tensor(run, x), *from = slc_layer_run_tensor(run, dy);
    void *to = slc_layer_run_tensor(run, dx);
    return run->scan ? SLUICE_OK
                     : slc_gelu_backward(run->m->stream, gelu_kind(run), run->layer->dtype, count, input, from, to);
}

sluice_status slc_apply_branch(slc_layer_run *run, slc_branch_draws place, slc_param_place scale, uint32_t x,
                               uint32_t residual, uint32_t out)
{
    slc_layer_run_next(run);
    const sluice_model *m = run->m;
    const slc_dropout dropout = slc_layer_run_dropout(run, place.dropout, (uint64_t)m->tokens * m->config.channels);
    const slc_drop_path path = slc_layer_run_path(run, place.path);
    const slc_residual_forward_args args = {.dtype = run->layer->dtype,
                                            .rows = m->rows,
                                            .channels = m->config.channels,
                                            .x = slc_layer_run_tensor(run, x),
                                            .scale = slc_layer_run_value(run, scale),
                                            .dropout = &dropout,
                                            .residual = slc_layer_run_tensor(run, residual),
                                            .out = slc_layer_run_tensor(run, out),
                                            .path = &path,
                                            .factor = slc_layer_run_factor(run)};
    if (run->scan) return SLUICE_OK;
    return scale && !args.scale ? SLUICE_ERR_ORDER : slc_residual_forward(m->stream, &args);
}

sluice_status slc_apply_branch_backward(slc_layer_run *run, slc_branch_draws place, slc_param_place scale,
                                        uint32_t dout, uint32_t x, uint32_t dx)
{
    slc_layer_run_next(run);
    const sluice_model *m = run->m;
    uint64_t channels = m->config.channels;
    const slc_dropout dropout = slc_layer_run_dropout(run, place.dropout, (uint64_t)m->tokens * channels);
    const slc_drop_path path = slc_layer_run_path(run, place.path);
    bool fresh = false;
    void *dscale = slc_layer_run_gradient(run, scale, &fresh);
    void *scratch = slc_layer_run_scratch(run, slc_residual_backward_workspace_bytes(m->stream, m->rows, channels));
    const slc_residual_backward_args args = {.dtype = run->layer->dtype,
                                             .gradient = scale ? slc_layer_run_gradient_dtype(run, scale) : SLUICE_FP32,
                                             .rows = m->rows,
                                             .channels = channels,
                                             .dout = slc_layer_run_tensor(run, dout),
                                             .x = slc_layer_run_tensor(run, x),
                                             .scale = slc_layer_run_value(run, scale),
                                             .dropout = &dropout,
                                             .dx = slc_layer_run_tensor(run, dx),
                                             .dscale = dscale,
                                             .fresh = fresh,
                                             .workspace = scratch,
                                             .path = &path,
                                             .factor = slc_layer_run_factor(run)};
    if (run->scan) return SLUICE_OK;
    return scale && (!args.scale || !dscale) ? SLUICE_ERR_ORDER : slc_residual_backward(m->stream, &args);
}

sluice_status slc_apply_dropout(slc_layer_run *run, uint32_t place, uint32_t x, uint64_t per_sequence)
{
    slc_layer_run_next(run);
    const sluice_model *m = run->m;
    void *data = slc_layer_run_tensor(run, x);
    if (run->scan || !slc_layer_run_drops(run)) return SLUICE_OK;
    const slc_dropout dropout = slc_layer_run_dropout(run, place, per_sequence);
    return slc_dropout_apply(m->stream, &dropout, run->layer->dtype, m->sequences * per_sequence, data, data);
}

/* ---- Observing ---- */

sluice_status slc_apply_observe(slc_layer_run *run)
{
    slc_layer_run_next(run);
    sluice_model *m = run->m;
    const uint64_t bytes = slc_observation_bytes(m);
    const slc_likeness_args args = {.dtype = run->layer->dtype,
                                    .rows = m->rows,
                                    .channels = m->config.channels,
                                    .x = slc_layer_run_tensor(run, SLC_INPUT),
                                    .y = slc_layer_run_tensor(run, SLC_OUTPUT),
                                    .out = slc_layer_run_scratch(run, bytes)};
    if (run->scan || !run->training || !m->observation.on) return SLUICE_OK;
    sluice_status status = slc_likeness(m->stream, &args);
    return status ? status : slc_copy(m->stream, slc_observation_take(m, run->number - 1), args.out, bytes);
}

/* ---- Losses ---- */

sluice_status slc_apply_losses(slc_layer_run *run, uint32_t logits, uint32_t losses, uint64_t first, uint64_t rows,
                               uint64_t classes, float scale)
{
    slc_layer_run_next(run);
    const sluice_model *m = run->m;
    float *row = slc_layer_run_tensor(run, logits), *loss = slc_layer_run_tensor(run, losses);
    const int32_t *targets = slc_layer_run_tensor(run, SLC_TARGETS);
    if (run->scan) return SLUICE_OK;
    sluice_status status =
        slc_cross_entropy(m->stream, &(slc_cross_entropy_args){.gradient = run->layer->dtype,
                                                               .rows = rows,
                                                               .classes = classes,
                                                               .stride = slc_logits_stride(m, classes),
                                                               .logits = row,
                                                               .targets = targets + first,
                                                               .smoothing = scale != 0 ? m->label_smoothing : 0,
                                                               .gradient_scale = scale,
                                                               .losses = loss + first});
    return status ? status : slc_copy(m->stream, m->memory->losses + first, loss + first, rows * sizeof *loss);
}

/* ---- Rows that have targets ---- */

sluice_status slc_apply_pick(slc_layer_run *run, uint64_t first, uint64_t rows, uint32_t x, uint32_t y)
{
    slc_layer_run_next(run);
    const sluice_model *m = run->m;
    const void *from = slc_layer_run_tensor(run, x);
    void *to = slc_layer_run_tensor(run, y);
    if (run->scan) return SLUICE_OK;
    return slc_embedding_forward(m->stream, &(slc_embedding_forward_args){.dtype = run->layer->dtype,
                                                                          .batch = 1,
                                                                          .length = rows,
                                                                          .channels = m->config.channels,
                                                                          .tokens = m->memory->rows + first,
                                                                          .tables = {.token = from},
                                                                          .out = to});
}

sluice_status slc_apply_zero(slc_layer_run *run, uint64_t rows, uint32_t dx)
{
    slc_layer_run_next(run);
    void *to = slc_layer_run_tensor(run, dx);
    if (run->scan) return SLUICE_OK;
    return slc_fill_zero(run->m->stream, to, slc_layer_bytes(run->layer, rows * run->m->config.channels));
}

sluice_status slc_apply_pick_backward(slc_layer_run *run, uint64_t first, uint64_t rows, uint32_t dy, uint32_t dx)
{
    slc_layer_run_next(run);
    const sluice_model *m = run->m;
    const uint64_t channels = m->config.channels;
    const void *from = slc_layer_run_tensor(run, dy);
    void *to = slc_layer_run_tensor(run, dx);
    void *scratch = slc_layer_run_scratch(run, slc_embedding_backward_workspace_bytes(m->stream, 1, rows, channels));
    if (run->scan) return SLUICE_OK;
    return slc_embedding_backward(
        m->stream, &(slc_embedding_backward_args){.dtype = run->layer->dtype,
                                                  .gradient = run->layer->dtype,
                                                  .batch = 1,
                                                  .length = rows,
                                                  .channels = channels,
                                                  .tokens = m->memory->rows + first,
                                                  .dout = from,
                                                  .gradients = {.token = to, .token_order = m->memory->pick_order},
                                                  .workspace = scratch});
}

/* ---- Conversions between types ---- */

static sluice_status convert(slc_layer_run *run, sluice_dtype from, uint32_t x, sluice_dtype to, uint32_t y,
                             uint64_t count)
{
    slc_layer_run_next(run);
    const void *source = slc_layer_run_tensor(run, x);
    void *target = slc_layer_run_tensor(run, y);
    return run->scan ? SLUICE_OK : slc_convert(run->m->stream, from, source, to, target, count);
}

sluice_status slc_apply_take_input(slc_layer_run *run)
{
    const slc_model_layer *layer = run->layer;
    if (layer->below == layer->dtype) return SLUICE_OK;
    return convert(run, layer->below, SLC_SOURCE, layer->dtype, SLC_INPUT, run->m->rows * run->m->config.channels);
}

sluice_status slc_apply_give_gradient(slc_layer_run *run)
{
    const slc_model_layer *layer = run->layer;
    if (layer->below == layer->dtype) return SLUICE_OK;
    return convert(run, layer->dtype, SLC_GRADIENT, layer->below, SLC_GRADIENT_BELOW,
                   run->m->rows * run->m->config.channels);
}
