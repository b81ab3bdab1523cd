/* One short call a kernel; the table is at the end. */
#include "bench/kernel_table.h"

#include "lib/kernels/convert/convert.h"
#include "lib/kernels/dropout/dropout.h"
#include "lib/kernels/gelu/gelu.h"
#include "lib/kernels/layer_norm/layer_norm.h"
#include "lib/kernels/residual/residual.h"

static const slc_dropout tenth = {.probability = 0.1f, .seed = 1};

static sluice_status layer_norm(slc_kernel_case *c)
{
    return slc_layer_norm_forward(&c->stream, c->dtype, c->rows, c->channels, c->array[0], NULL, NULL, c->vector[0],
                                  c->vector[1], 1e-5f, c->array[3], c->statistic[0], c->statistic[1]);
}

static sluice_status residual_layer_norm(slc_kernel_case *c)
{
    return slc_layer_norm_forward(&c->stream, c->dtype, c->rows, c->channels, c->array[0], c->array[1], c->array[2],
                                  c->vector[0], c->vector[1], 1e-5f, c->array[3], c->statistic[0], c->statistic[1]);
}

static sluice_status norm_backward(slc_kernel_case *c, const void *add)
{
    return slc_layer_norm_backward(&c->stream, c->dtype, c->dtype, c->rows, c->channels, c->array[0], c->array[1],
                                   c->vector[0], c->statistic[0], c->statistic[1], add, c->array[3], c->vector[2],
                                   c->vector[3], 1, c->workspace);
}

static sluice_status layer_norm_backward(slc_kernel_case *c)
{
    return norm_backward(c, NULL);
}

static sluice_status layer_norm_backward_add(slc_kernel_case *c)
{
    return norm_backward(c, c->array[2]);
}

static sluice_status gelu_forward(slc_kernel_case *c)
{
    return slc_gelu_forward(&c->stream, SLC_GELU_TANH, c->dtype, c->count, c->array[0], c->array[3]);
}

static sluice_status gelu_backward(slc_kernel_case *c)
{
    return slc_gelu_backward(&c->stream, SLC_GELU_TANH, c->dtype, c->count, c->array[0], c->array[1], c->array[3]);
}

static sluice_status gelu_erf_forward(slc_kernel_case *c)
{
    return slc_gelu_forward(&c->stream, SLC_GELU_ERF, c->dtype, c->count, c->array[0], c->array[3]);
}

static sluice_status gelu_erf_backward(slc_kernel_case *c)
{
    return slc_gelu_backward(&c->stream, SLC_GELU_ERF, c->dtype, c->count, c->array[0], c->array[1], c->array[3]);
}

static sluice_status add(slc_kernel_case *c)
{
    return slc_add(&c->stream, c->dtype, c->count, c->array[0], c->array[1], c->array[3]);
}

static sluice_status dropout(slc_kernel_case *c)
{
    return slc_dropout_apply(&c->stream, &tenth, c->dtype, c->count, c->array[0], c->array[3]);
}

static sluice_status residual_forward(slc_kernel_case *c)
{
    return slc_residual_forward(&c->stream, c->dtype, c->rows, c->channels, c->array[0], c->vector[0], &tenth, NULL,
                                c->array[1], c->array[3]);
}

static sluice_status residual_scale_forward(slc_kernel_case *c)
{
    return slc_residual_forward(&c->stream, c->dtype, c->rows, c->channels, c->array[0], c->vector[0], &tenth,
                                c->vector[1], c->array[1], c->array[3]);
}

static sluice_status residual_scale_backward(slc_kernel_case *c)
{
    return slc_residual_backward(&c->stream, c->dtype, c->dtype, c->rows, c->channels, c->array[0], c->array[1],
                                 c->vector[0], &tenth, c->vector[1], c->array[3], c->vector[2], 1, c->workspace);
}

static sluice_status bias_backward(slc_kernel_case *c)
{
    return slc_bias_backward(&c->stream, c->dtype, c->dtype, c->rows, c->channels, c->array[0], 0, c->vector[2], 1,
                             c->workspace);
}

static sluice_status convert(slc_kernel_case *c)
{
    sluice_dtype other = c->dtype == SLUICE_BF16 ? SLUICE_FP32 : SLUICE_BF16;
    return slc_convert(&c->stream, other, c->array[0], c->dtype, c->array[3], c->count);
}

const slc_kernel_row slc_kernel_table[] = {
    {"layer_norm_forward", {8, 4}, NULL, layer_norm},
    {"residual_layer_norm_forward", {16, 8}, NULL, residual_layer_norm},
    {"layer_norm_backward", {12, 6}, NULL, layer_norm_backward},
    {"layer_norm_backward_add", {16, 8}, NULL, layer_norm_backward_add},
    {"gelu_forward", {8, 4}, NULL, gelu_forward},
    {"gelu_backward", {12, 6}, NULL, gelu_backward},
    {"gelu_erf_forward", {8, 4}, NULL, gelu_erf_forward},
    {"gelu_erf_backward", {12, 6}, NULL, gelu_erf_backward},
    {"add", {12, 6}, NULL, add},
    {"dropout", {8, 4}, NULL, dropout},
    {"residual_forward", {12, 6}, NULL, residual_forward}, /* bias + dropout + residual; no mask is stored */
    {"residual_scale_forward", {12, 6}, NULL, residual_scale_forward},
    {"residual_scale_backward", {12, 6}, NULL, residual_scale_backward},
    {"bias_backward", {4, 2}, NULL, bias_backward},
    {"convert_to", {6, 6}, NULL, convert},
};
const uint32_t slc_kernel_table_rows = sizeof slc_kernel_table / sizeof *slc_kernel_table;
