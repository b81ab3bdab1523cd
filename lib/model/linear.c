/* The three products of a dense layer. A parameter's first gradient of a step is stored, later ones are added. */
#include "lib/model/linear.h"

#include "lib/kernels/gemm/gemm.h"
#include "lib/kernels/residual/residual.h"

static slc_gemm_shape forward_shape(const slc_linear_shape *s)
{
    return (slc_gemm_shape){.bias = true, .m = s->rows, .n = s->outputs, .k = s->inputs};
}

static slc_gemm_shape weight_shape(const slc_linear_shape *s, bool fresh)
{
    return (slc_gemm_shape){.transpose_a = true, .accumulate = !fresh, .m = s->inputs, .n = s->outputs, .k = s->rows};
}

static slc_gemm_shape input_shape(const slc_linear_shape *s)
{
    return (slc_gemm_shape){.transpose_b = true, .m = s->rows, .n = s->inputs, .k = s->outputs};
}

sluice_status slc_linear_scratch_bytes(const slc_stream *stream, const slc_linear_shape *shape, uint64_t *bytes)
{
    const slc_gemm_shape products[] = {forward_shape(shape), weight_shape(shape, true), weight_shape(shape, false),
                                       input_shape(shape)};
    *bytes = slc_bias_backward_workspace_bytes(stream, shape->rows, shape->outputs);
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        uint64_t need = 0;
        sluice_status status = slc_gemm_workspace_bytes(stream, &products[i], &need);
        if (status) return status;
        if (need > *bytes) *bytes = need;
    }
    return SLUICE_OK;
}

sluice_status slc_linear_forward(slc_stream *stream, const slc_linear_shape *shape, const float *x,
                                 sluice_param *weight, sluice_param *bias, float *y, void *scratch,
                                 uint64_t scratch_bytes)
{
    const float *w = sluice_param_value(weight), *b = sluice_param_value(bias);
    if (!w || !b) return SLUICE_ERR_ORDER;
    slc_gemm_shape product = forward_shape(shape);
    return slc_gemm(stream, &product, x, w, b, NULL, y, scratch, scratch_bytes);
}

sluice_status slc_linear_backward_params(slc_stream *stream, const slc_linear_shape *shape, const float *x,
                                         const float *dy, sluice_param *weight, sluice_param *bias, void *scratch,
                                         uint64_t scratch_bytes)
{
    bool fresh_weight = false, fresh_bias = false;
    float *dw = sluice_param_gradient_fresh(weight, &fresh_weight);
    float *db = sluice_param_gradient_fresh(bias, &fresh_bias);
    if (!dw || !db) return SLUICE_ERR_ORDER;
    slc_gemm_shape product = weight_shape(shape, fresh_weight);
    sluice_status status = slc_gemm(stream, &product, x, dy, NULL, NULL, dw, scratch, scratch_bytes);
    if (!status)
        status = slc_bias_backward(stream, SLUICE_FP32, SLUICE_FP32, shape->rows, shape->outputs, dy, 0, db, fresh_bias,
                                   scratch);
    return status;
}

sluice_status slc_linear_backward_input(slc_stream *stream, const slc_linear_shape *shape, const float *dy,
                                        sluice_param *weight, float *dx, void *scratch, uint64_t scratch_bytes)
{
    const float *w = sluice_param_value(weight);
    if (!w) return SLUICE_ERR_ORDER;
    slc_gemm_shape product = input_shape(shape);
    return slc_gemm(stream, &product, dy, w, NULL, NULL, dx, scratch, scratch_bytes);
}
