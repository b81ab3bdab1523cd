/* The operations of operations.h: they translate tensors and parameters to the kernels' arguments. A parameter's first
 * gradient of a step is stored, later ones are added. */
#include "lib/model/layers/operations.h"

#include "lib/kernels/convert/convert.h"
#include "lib/kernels/layer_norm/layer_norm.h"
#include "lib/kernels/residual/residual.h"

static void *at(slc_layer_run *slot, slc_view view, sluice_dtype dtype)
{
    unsigned char *base = slc_layer_run_tensor(slot, view.tensor);
    return base ? base + view.first * sluice_dtype_bytes(dtype) : NULL;
}

/* ---- Dense layers ---- */

slc_dense slc_dense_of(const slc_layer_run *slot, slc_param_place weight, uint64_t rows, uint64_t inputs,
                       uint64_t outputs)
{
    slc_param_place bias = (slc_param_place)(weight + 1);
    return (slc_dense){.weight = weight,
                       .rows = rows,
                       .inputs = inputs,
                       .outputs = outputs,
                       .bias = slot->layer->params[bias] ? bias : SLC_NO_PARAM};
}

static bool inputs_first(const slc_layer_run *slot, const slc_dense *d)
{
    return slc_family_of(slot->m->config.family)->inputs_first && !d->by_rows;
}

static sluice_status product(slc_layer_run *slot, const slc_gemm_shape *shape, const void *a, const void *b,
                             const void *bias, const void *residual, void *c)
{
    uint64_t bytes = 0;
    sluice_status status = slc_gemm_workspace_bytes(slot->m->stream, shape, &bytes);
    if (status) return status;
    void *scratch = slc_layer_run_scratch(slot, bytes);
    if (slot->scan) return SLUICE_OK;
    return slc_gemm(slot->m->stream, shape, a, b, bias, residual, c, scratch, bytes);
}

sluice_status slc_apply_dense(slc_layer_run *slot, const slc_dense *d, slc_view x, slc_view y, slc_view residual)
{
    slc_layer_run_next(slot);
    sluice_dtype dtype = slot->layer->dtype, out = d->fp32_out ? SLUICE_FP32 : dtype;
    const slc_gemm_shape shape = {.dtype = dtype,
                                  .out = out,
                                  .transpose_b = !inputs_first(slot, d),
                                  .bias = d->bias != SLC_NO_PARAM,
                                  .residual = residual.tensor != SLC_NO_TENSOR,
                                  .m = d->rows,
                                  .n = d->outputs,
                                  .k = d->inputs,
                                  .lda = x.stride,
                                  .ldc = y.stride};
    const void *from = at(slot, x, dtype), *add = at(slot, residual, out);
    void *to = at(slot, y, out);
    const void *weight = slc_layer_run_value(slot, d->weight), *bias = slc_layer_run_value(slot, d->bias);
    if (!slot->scan && (!weight || (shape.bias && !bias))) return SLUICE_ERR_ORDER;
    return product(slot, &shape, from, weight, bias, add, to);
}

sluice_status slc_apply_dense_params(slc_layer_run *slot, const slc_dense *d, slc_view x, slc_view dy)
{
    slc_layer_run_next(slot);
    sluice_dtype dtype = slot->layer->dtype;
    const void *input = at(slot, x, dtype), *output = at(slot, dy, dtype);
    bool fresh = true, fresh_bias = true, first = inputs_first(slot, d);
    void *dweight = slc_layer_run_gradient(slot, d->weight, &fresh);
    void *dbias = slc_layer_run_gradient(slot, d->bias, &fresh_bias);
    if (!slot->scan && (!dweight || (d->bias && !dbias))) return SLUICE_ERR_ORDER;
    const slc_gemm_shape shape = {.dtype = dtype,
                                  .out = slc_layer_run_gradient_dtype(slot, d->weight),
                                  .transpose_a = true,
                                  .accumulate = !fresh || slot->scan,
                                  .m = first ? d->inputs : d->outputs,
                                  .n = first ? d->outputs : d->inputs,
                                  .k = d->rows,
                                  .lda = first ? x.stride : dy.stride,
                                  .ldb = first ? dy.stride : x.stride};
    slc_gemm_shape stored = shape;
    stored.accumulate = false;
    sluice_status status = SLUICE_OK;
    if (slot->scan) status = product(slot, &stored, NULL, NULL, NULL, NULL, NULL);
    if (!status) status = product(slot, &shape, first ? input : output, first ? output : input, NULL, NULL, dweight);
    if (status || !d->bias) return status;
    void *scratch =
        slc_layer_run_scratch(slot, slc_bias_backward_workspace_bytes(slot->m->stream, d->rows, d->outputs));
    if (slot->scan) return SLUICE_OK;
    return slc_bias_backward(slot->m->stream, dtype, slc_layer_run_gradient_dtype(slot, d->bias), d->rows, d->outputs,
                             output, dy.stride, dbias, fresh_bias, scratch);
}

sluice_status slc_apply_dense_input(slc_layer_run *slot, const slc_dense *d, slc_view dy, slc_view dx, bool add,
                                    slc_view residual)
{
    slc_layer_run_next(slot);
    sluice_dtype dtype = slot->layer->dtype;
    const slc_gemm_shape shape = {.dtype = dtype,
                                  .out = dtype,
                                  .transpose_b = inputs_first(slot, d),
                                  .accumulate = add,
                                  .residual = residual.tensor != SLC_NO_TENSOR,
                                  .m = d->rows,
                                  .n = d->inputs,
                                  .k = d->outputs,
                                  .lda = dy.stride,
                                  .ldc = dx.stride};
    const void *from = at(slot, dy, dtype), *more = at(slot, residual, dtype);
    void *to = at(slot, dx, dtype);
    const void *weight = slc_layer_run_value(slot, d->weight);
    if (!slot->scan && !weight) return SLUICE_ERR_ORDER;
    return product(slot, &shape, from, weight, NULL, more, to);
}

/* ---- Norms ---- */

sluice_status slc_apply_norm(slc_layer_run *slot, slc_param_place weight, uint64_t rows, slc_view x, slc_view y,
                             uint32_t stats)
{
    slc_layer_run_next(slot);
    sluice_dtype dtype = slot->layer->dtype;
    const void *from = at(slot, x, dtype);
    void *to = at(slot, y, dtype);
    float *mean = slc_layer_run_tensor(slot, stats);
    if (slot->scan) return SLUICE_OK;
    const void *gamma = slc_layer_run_value(slot, weight),
               *beta = slc_layer_run_value(slot, (slc_param_place)(weight + 1));
    if (!gamma || !beta) return SLUICE_ERR_ORDER;
    return slc_layer_norm_forward(slot->m->stream, dtype, rows, slot->m->config.channels, from, NULL, NULL, gamma, beta,
                                  (float)slot->m->config.epsilon, to, mean, mean + rows);
}

sluice_status slc_apply_norm_backward(slc_layer_run *slot, slc_param_place weight, uint64_t rows, slc_view dy,
                                      slc_view x, uint32_t stats, slc_view add, slc_view dx)
{
    slc_layer_run_next(slot);
    sluice_dtype dtype = slot->layer->dtype;
    sluice_stream *stream = slot->m->stream;
    uint64_t channels = slot->m->config.channels;
    const void *from = at(slot, dy, dtype), *normed = at(slot, x, dtype), *more = at(slot, add, dtype);
    void *to = at(slot, dx, dtype);
    const float *mean = slc_layer_run_tensor(slot, stats);
    void *scratch = slc_layer_run_scratch(slot, slc_layer_norm_backward_workspace_bytes(stream, rows, channels));
    if (slot->scan) return SLUICE_OK;
    slc_param_place bias = (slc_param_place)(weight + 1);
    bool fresh = false, fresh_bias = false;
    const void *gamma = slc_layer_run_value(slot, weight);
    void *dgamma = slc_layer_run_gradient(slot, weight, &fresh),
         *dbeta = slc_layer_run_gradient(slot, bias, &fresh_bias);
    if (!gamma || !dgamma || !dbeta) return SLUICE_ERR_ORDER;
    return slc_layer_norm_backward(stream, dtype, slc_layer_run_gradient_dtype(slot, weight), rows, channels, from,
                                   normed, gamma, mean, mean + rows, more, to, dgamma, dbeta, fresh && fresh_bias,
                                   scratch);
}

/* ---- Elementwise ---- */

static slc_gelu_kind gelu_kind(const slc_layer_run *slot)
{
    return slot->m->config.gelu_tanh ? SLC_GELU_TANH : SLC_GELU_ERF;
}

sluice_status slc_apply_gelu(slc_layer_run *slot, uint64_t count, uint32_t x, uint32_t y)
{
    slc_layer_run_next(slot);
    const void *from = slc_layer_run_tensor(slot, x);
    void *to = slc_layer_run_tensor(slot, y);
    return slot->scan ? SLUICE_OK
                      : slc_gelu_forward(slot->m->stream, gelu_kind(slot), slot->layer->dtype, count, from, to);
}

sluice_status slc_apply_gelu_backward(slc_layer_run *slot, uint64_t count, uint32_t x, uint32_t dy, uint32_t dx)
{
    slc_layer_run_next(slot);
    const void *input = slc_layer_run_tensor(slot, x), *from = slc_layer_run_tensor(slot, dy);
    void *to = slc_layer_run_tensor(slot, dx);
    return slot->scan ? SLUICE_OK
                      : slc_gelu_backward(slot->m->stream, gelu_kind(slot), slot->layer->dtype, count, input, from, to);
}

sluice_status slc_apply_branch(slc_layer_run *slot, uint32_t place, slc_param_place scale, uint32_t x,
                               uint32_t residual, uint32_t out)
{
    slc_layer_run_next(slot);
    const sluice_model *m = slot->m;
    const slc_dropout dropout = slc_layer_run_dropout(slot, place, (uint64_t)m->tokens * m->config.channels);
    const void *from = slc_layer_run_tensor(slot, x), *add = slc_layer_run_tensor(slot, residual);
    void *to = slc_layer_run_tensor(slot, out);
    if (slot->scan) return SLUICE_OK;
    const void *factor = slc_layer_run_value(slot, scale);
    if (scale && !factor) return SLUICE_ERR_ORDER;
    return slc_residual_forward(m->stream, slot->layer->dtype, m->rows, m->config.channels, from, NULL, &dropout,
                                factor, add, to);
}

sluice_status slc_apply_branch_backward(slc_layer_run *slot, uint32_t place, slc_param_place scale, uint32_t dout,
                                        uint32_t x, uint32_t dx)
{
    slc_layer_run_next(slot);
    const sluice_model *m = slot->m;
    uint64_t channels = m->config.channels;
    const slc_dropout dropout = slc_layer_run_dropout(slot, place, (uint64_t)m->tokens * channels);
    const void *from = slc_layer_run_tensor(slot, dout), *input = slc_layer_run_tensor(slot, x);
    void *to = slc_layer_run_tensor(slot, dx);
    void *scratch = slc_layer_run_scratch(slot, slc_residual_backward_workspace_bytes(m->stream, m->rows, channels));
    if (slot->scan) return SLUICE_OK;
    bool fresh = false;
    const void *factor = slc_layer_run_value(slot, scale);
    void *dscale = slc_layer_run_gradient(slot, scale, &fresh);
    if (scale && (!factor || !dscale)) return SLUICE_ERR_ORDER;
    sluice_dtype gradient = scale ? slc_layer_run_gradient_dtype(slot, scale) : SLUICE_FP32;
    return slc_residual_backward(m->stream, slot->layer->dtype, gradient, m->rows, channels, from, input, NULL,
                                 &dropout, factor, to, dscale, fresh, scratch);
}

sluice_status slc_apply_dropout(slc_layer_run *slot, uint32_t place, uint32_t x, uint64_t per_sequence)
{
    slc_layer_run_next(slot);
    const sluice_model *m = slot->m;
    void *data = slc_layer_run_tensor(slot, x);
    if (slot->scan || !slc_layer_run_drops(slot)) return SLUICE_OK;
    const slc_dropout dropout = slc_layer_run_dropout(slot, place, per_sequence);
    return slc_dropout_apply(m->stream, &dropout, slot->layer->dtype, m->batch * per_sequence, data, data);
}

/* ---- Conversions between types ---- */

static sluice_status convert(slc_layer_run *slot, sluice_dtype from, uint32_t x, sluice_dtype to, uint32_t y,
                             uint64_t count)
{
    slc_layer_run_next(slot);
    const void *source = slc_layer_run_tensor(slot, x);
    void *target = slc_layer_run_tensor(slot, y);
    return slot->scan ? SLUICE_OK : slc_convert(slot->m->stream, from, source, to, target, count);
}

sluice_status slc_apply_take_input(slc_layer_run *slot)
{
    const slc_model_layer *layer = slot->layer;
    if (layer->below == layer->dtype) return SLUICE_OK;
    return convert(slot, layer->below, SLC_SOURCE, layer->dtype, SLC_INPUT, slot->m->rows * slot->m->config.channels);
}

sluice_status slc_apply_give_gradient(slc_layer_run *slot)
{
    const slc_model_layer *layer = slot->layer;
    if (layer->below == layer->dtype) return SLUICE_OK;
    return convert(slot, layer->dtype, SLC_GRADIENT, layer->below, SLC_GRADIENT_BELOW,
                   slot->m->rows * slot->m->config.channels);
}
