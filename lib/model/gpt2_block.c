/* A transformer block of GPT-2. What backward needs and forward did not keep (outputs of the norms and of GELU) is made
 * again where it is needed, and where the plan recomputes the block, so is all that it keeps; its input is the output
 * of the layer before. The gradient of the residual stream is updated in place. */
#include "lib/kernels/attention/attention.h"
#include "lib/kernels/gelu/gelu.h"
#include "lib/kernels/layer_norm/layer_norm.h"
#include "lib/kernels/residual/residual.h"
#include "lib/model/gpt2.h"
#include "lib/model/linear.h"

#include <stdio.h>

typedef enum { QKV, PROJECTION, FC, MLP, LINEARS } linear_index;

/* Addresses of one slot. */
typedef struct {
    float *input, *qkv, *attention, *logsumexp, *mid, *hidden, *output;
    float *wide, *narrow, *mean, *deviation;
    void *scratch;
} block_memory;

static slc_linear_shape linear_shape(const sluice_gpt2 *m, linear_index which)
{
    uint64_t c = m->config.channels;
    const slc_linear_shape shapes[LINEARS] = {[QKV] = {m->rows, c, 3 * c},
                                              [PROJECTION] = {m->rows, c, c},
                                              [FC] = {m->rows, c, 4 * c},
                                              [MLP] = {m->rows, 4 * c, c}};
    return shapes[which];
}

static slc_gpt2_block_param weight_of(linear_index which)
{
    static const slc_gpt2_block_param weights[LINEARS] = {[QKV] = SLC_GPT2_QKV_WEIGHT,
                                                          [PROJECTION] = SLC_GPT2_PROJECTION_WEIGHT,
                                                          [FC] = SLC_GPT2_FC_WEIGHT,
                                                          [MLP] = SLC_GPT2_MLP_WEIGHT};
    return weights[which];
}

static slc_attention_shape attention_shape(const sluice_gpt2 *m)
{
    return (slc_attention_shape){.batch = m->batch,
                                 .tokens = m->tokens,
                                 .heads = m->config.heads,
                                 .head_size = m->config.channels / m->config.heads,
                                 .row_stride = 3 * m->config.channels,
                                 .causal = true};
}

/* ---- Registration ---- */

static sluice_status scratch_bytes(sluice_gpt2 *m, uint64_t *bytes)
{
    slc_attention_shape attention = attention_shape(m);
    *bytes = slc_attention_workspace_bytes(m->stream, &attention);
    uint64_t norm = slc_layer_norm_backward_workspace_bytes(m->stream, m->rows, m->config.channels);
    if (norm > *bytes) *bytes = norm;
    for (int i = 0; i < LINEARS; i++) {
        uint64_t need = 0;
        slc_linear_shape shape = linear_shape(m, (linear_index)i);
        sluice_status status = slc_linear_scratch_bytes(m->stream, &shape, &need);
        if (status) return status;
        if (need > *bytes) *bytes = need;
    }
    return SLUICE_OK;
}

static sluice_status register_params(sluice_gpt2 *m, slc_gpt2_block *block)
{
    sluice_status status = SLUICE_OK;
    for (int i = 0; !status && i < SLC_GPT2_BLOCK_PARAMS; i++) {
        slc_gpt2_param_info info = slc_gpt2_block_param_info(&m->config, (slc_gpt2_block_param)i);
        const sluice_param_desc desc = {.name = info.name, .count = info.count, .no_decay = info.no_decay};
        status = sluice_param_add(block->layer, &desc, &block->param[i]);
    }
    return status;
}

static sluice_status register_activations(sluice_gpt2 *m, slc_gpt2_block *block, const char *name, const char *next)
{
    uint64_t vector = m->rows * m->config.channels * sizeof(float);
    const struct {
        const char *name;
        uint64_t bytes;
        sluice_activation **out;
    } kept[] = {
        {"qkv", 3 * vector, &block->qkv},
        {"attention", vector, &block->attention},
        {"logsumexp", m->rows * m->config.heads * sizeof(float), &block->logsumexp},
        {"mid", vector, &block->mid},
        {"hidden", 4 * vector, &block->hidden},
    };
    sluice_status status = SLUICE_OK;
    for (size_t i = 0; !status && i < sizeof kept / sizeof *kept; i++) {
        const sluice_activation_desc desc = {.name = kept[i].name,
                                             .bytes = kept[i].bytes,
                                             .last = SLUICE_BACKWARD,
                                             .last_forward_layer = name,
                                             .recomputable = true};
        status = sluice_activation_add(block->layer, &desc, kept[i].out);
    }
    const sluice_activation_desc output = {
        .name = "x", .bytes = vector, .last_layer = next, .last = SLUICE_BACKWARD, .last_forward_layer = next};
    return status ? status : sluice_activation_add(block->layer, &output, &block->output);
}

static sluice_status register_workspaces(sluice_gpt2 *m, slc_gpt2_block *block)
{
    uint64_t vector = m->rows * m->config.channels * sizeof(float);
    sluice_status status = slc_gpt2_workspaces(block->layer, "wide", 4 * vector, block->wide);
    if (!status) status = slc_gpt2_workspaces(block->layer, "narrow", vector, block->narrow);
    if (!status) status = slc_gpt2_workspaces(block->layer, "stats", 2 * m->rows * sizeof(float), block->stats);
    if (!status) status = slc_gpt2_workspaces(block->layer, "scratch", m->scratch_bytes, block->scratch);
    return status;
}

sluice_status slc_gpt2_block_register(sluice_gpt2 *m, uint32_t index)
{
    slc_gpt2_block *block = &m->blocks[index];
    block->input = index ? m->blocks[index - 1].output : m->embed.output;
    char name[24], next[24] = "head";
    snprintf(name, sizeof name, "h.%u", index);
    if (index + 1 < m->config.layers) snprintf(next, sizeof next, "h.%u", index + 1);

    sluice_status status = SLUICE_OK;
    if (index == 0) status = scratch_bytes(m, &m->scratch_bytes);
    if (!status) status = sluice_layer_add(m->rt, name, &block->layer);
    if (!status) status = sluice_layer_can_recompute(block->layer, true);
    if (!status) status = register_params(m, block);
    if (!status) status = register_activations(m, block, name, next);
    if (!status) status = register_workspaces(m, block);
    return status;
}

/* ---- Compute ---- */

static block_memory memory_of(const sluice_gpt2 *m, const slc_gpt2_block *block, sluice_direction d)
{
    float *stats = sluice_workspace_data(block->stats[d]);
    return (block_memory){
        .input = sluice_activation_data(block->input),
        .qkv = sluice_activation_data(block->qkv),
        .attention = sluice_activation_data(block->attention),
        .logsumexp = sluice_activation_data(block->logsumexp),
        .mid = sluice_activation_data(block->mid),
        .hidden = sluice_activation_data(block->hidden),
        .output = sluice_activation_data(block->output),
        .wide = sluice_workspace_data(block->wide[d]),
        .narrow = sluice_workspace_data(block->narrow[d]),
        .mean = stats,
        .deviation = stats + m->rows,
        .scratch = block->scratch[d] ? sluice_workspace_data(block->scratch[d]) : NULL,
    };
}

static sluice_status linear(sluice_gpt2 *m, slc_gpt2_block *block, linear_index which, const float *x, float *y,
                            void *scratch)
{
    slc_linear_shape shape = linear_shape(m, which);
    slc_gpt2_block_param weight = weight_of(which);
    return slc_linear_forward(m->stream, &shape, x, block->param[weight], block->param[weight + 1], y, scratch,
                              m->scratch_bytes);
}

static sluice_status linear_params(sluice_gpt2 *m, slc_gpt2_block *block, linear_index which, const float *x,
                                   const float *dy, void *scratch)
{
    slc_linear_shape shape = linear_shape(m, which);
    slc_gpt2_block_param weight = weight_of(which);
    return slc_linear_backward_params(m->stream, &shape, x, dy, block->param[weight], block->param[weight + 1], scratch,
                                      m->scratch_bytes);
}

static sluice_status linear_input(sluice_gpt2 *m, slc_gpt2_block *block, linear_index which, const float *dy, float *dx,
                                  void *scratch)
{
    slc_linear_shape shape = linear_shape(m, which);
    return slc_linear_backward_input(m->stream, &shape, dy, block->param[weight_of(which)], dx, scratch,
                                     m->scratch_bytes);
}

/* gamma is the norm's first parameter, beta the next. With `residual`, x + residual is stored to `sum` and normalised.
 */
static sluice_status norm(sluice_gpt2 *m, slc_gpt2_block *block, slc_gpt2_block_param gamma, const float *x,
                          const float *residual, float *sum, float *y, const block_memory *mem)
{
    const float *g = sluice_param_value(block->param[gamma]), *b = sluice_param_value(block->param[gamma + 1]);
    if (!g || !b) return SLUICE_ERR_ORDER;
    return slc_layer_norm_forward(m->stream, SLUICE_FP32, m->rows, m->config.channels, x, residual, sum, g, b,
                                  SLC_GPT2_EPSILON, y, mem->mean, mem->deviation);
}

/* Adds the norm's share to the stream's gradient, in place. */
static sluice_status norm_backward(sluice_gpt2 *m, slc_gpt2_block *block, slc_gpt2_block_param gamma, const float *dy,
                                   const float *x, float *dstream, const block_memory *mem)
{
    bool fresh_gamma = false, fresh_beta = false;
    const float *g = sluice_param_value(block->param[gamma]);
    float *dg = sluice_param_gradient_fresh(block->param[gamma], &fresh_gamma);
    float *db = sluice_param_gradient_fresh(block->param[gamma + 1], &fresh_beta);
    if (!g || !dg || !db) return SLUICE_ERR_ORDER;
    return slc_layer_norm_backward(m->stream, SLUICE_FP32, SLUICE_FP32, m->rows, m->config.channels, dy, x, g,
                                   mem->mean, mem->deviation, dstream, dstream, dg, db, fresh_gamma && fresh_beta,
                                   mem->scratch);
}

/* Everything that backward reads. */
static sluice_status forward_kept(sluice_gpt2 *m, slc_gpt2_block *block, const block_memory *mem)
{
    slc_attention_shape shape = attention_shape(m);
    const uint64_t channels = m->config.channels;
    sluice_status status = norm(m, block, SLC_GPT2_LN1_GAMMA, mem->input, NULL, NULL, mem->narrow, mem);
    if (!status) status = linear(m, block, QKV, mem->narrow, mem->qkv, mem->scratch);
    if (!status)
        status = slc_attention_forward(m->stream, &shape, mem->qkv, mem->qkv + channels, mem->qkv + 2 * channels,
                                       mem->attention, mem->logsumexp, mem->scratch);
    if (!status) status = linear(m, block, PROJECTION, mem->attention, mem->mid, mem->scratch);
    if (!status) status = norm(m, block, SLC_GPT2_LN2_GAMMA, mem->mid, mem->input, mem->mid, mem->narrow, mem);
    if (!status) status = linear(m, block, FC, mem->narrow, mem->hidden, mem->scratch);
    return status;
}

sluice_status slc_gpt2_block_forward(sluice_gpt2 *m, slc_gpt2_block *block)
{
    sluice_status status = sluice_forward_begin(block->layer);
    if (status) return status;

    const block_memory mem = memory_of(m, block, SLUICE_FORWARD);
    uint64_t vector = m->rows * m->config.channels;
    status = forward_kept(m, block, &mem);
    if (!status) status = slc_gelu_forward(m->stream, SLC_GELU_TANH, SLUICE_FP32, 4 * vector, mem.hidden, mem.wide);
    if (!status) status = linear(m, block, MLP, mem.wide, mem.output, mem.scratch);
    if (!status) status = slc_add(m->stream, SLUICE_FP32, vector, mem.output, mem.mid, mem.output);
    return status ? status : sluice_forward_end(block->layer);
}

static sluice_status mlp_backward(sluice_gpt2 *m, slc_gpt2_block *block, float *dstream, const block_memory *mem)
{
    uint64_t hidden = 4 * m->rows * m->config.channels;
    sluice_status status = slc_gelu_forward(m->stream, SLC_GELU_TANH, SLUICE_FP32, hidden, mem->hidden, mem->wide);
    if (!status) status = linear_params(m, block, MLP, mem->wide, dstream, mem->scratch);
    if (!status) status = linear_input(m, block, MLP, dstream, mem->wide, mem->scratch);
    if (!status)
        status = slc_gelu_backward(m->stream, SLC_GELU_TANH, SLUICE_FP32, hidden, mem->hidden, mem->wide, mem->wide);
    if (!status) status = norm(m, block, SLC_GPT2_LN2_GAMMA, mem->mid, NULL, NULL, mem->narrow, mem);
    if (!status) status = linear_params(m, block, FC, mem->narrow, mem->wide, mem->scratch);
    if (!status) status = linear_input(m, block, FC, mem->wide, mem->narrow, mem->scratch);
    if (!status) status = norm_backward(m, block, SLC_GPT2_LN2_GAMMA, mem->narrow, mem->mid, dstream, mem);
    return status;
}

static sluice_status attention_backward(sluice_gpt2 *m, slc_gpt2_block *block, float *dstream, const block_memory *mem)
{
    slc_attention_shape shape = attention_shape(m);
    const uint64_t channels = m->config.channels;
    sluice_status status = linear_params(m, block, PROJECTION, mem->attention, dstream, mem->scratch);
    if (!status) status = linear_input(m, block, PROJECTION, dstream, mem->narrow, mem->scratch);
    if (!status)
        status = slc_attention_backward(m->stream, &shape, mem->qkv, mem->qkv + channels, mem->qkv + 2 * channels,
                                        mem->attention, mem->logsumexp, mem->narrow, mem->wide, mem->wide + channels,
                                        mem->wide + 2 * channels, SLUICE_FP32, NULL, false, mem->scratch);
    if (!status) status = norm(m, block, SLC_GPT2_LN1_GAMMA, mem->input, NULL, NULL, mem->narrow, mem);
    if (!status) status = linear_params(m, block, QKV, mem->narrow, mem->wide, mem->scratch);
    if (!status) status = linear_input(m, block, QKV, mem->wide, mem->narrow, mem->scratch);
    if (!status) status = norm_backward(m, block, SLC_GPT2_LN1_GAMMA, mem->narrow, mem->input, dstream, mem);
    return status;
}

/* The block's output is not made again: only the next layer read it, and its memory may be in other hands. */
static sluice_status recompute(sluice_gpt2 *m, slc_gpt2_block *block)
{
    sluice_status status = sluice_recompute_begin(block->layer);
    if (status) return status;
    const block_memory mem = memory_of(m, block, SLUICE_FORWARD);
    status = forward_kept(m, block, &mem);
    return status ? status : sluice_recompute_end(block->layer);
}

sluice_status slc_gpt2_block_backward(sluice_gpt2 *m, slc_gpt2_block *block)
{
    sluice_status status = sluice_layer_recomputes(block->layer) ? recompute(m, block) : SLUICE_OK;
    if (!status) status = sluice_backward_begin(block->layer);
    if (status) return status;

    const block_memory mem = memory_of(m, block, SLUICE_BACKWARD);
    float *dstream = sluice_activation_data(m->head.dstream);
    status = mlp_backward(m, block, dstream, &mem);
    if (!status) status = attention_backward(m, block, dstream, &mem);
    return status ? status : sluice_backward_end(block->layer);
}
