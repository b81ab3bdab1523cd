/* GPT-2's last layer: norm, product with wte, loss. Logits are the biggest thing of a small model's step, so they are
 * made, turned into their gradient and used up SLC_GPT2_CHUNK rows at a time, all in the backward slot. */
#include "lib/kernels/cross_entropy/cross_entropy.h"
#include "lib/kernels/gemm/gemm.h"
#include "lib/kernels/layer_norm/layer_norm.h"
#include "lib/model/gpt2.h"

/* Addresses of one slot. */
typedef struct {
    const float *input, *wte, *gamma, *beta;
    const int32_t *targets;
    float *logits, *normed, *dnormed, *mean, *deviation, *losses;
    void *scratch;
} head_memory;

typedef struct {
    float *dstream, *dwte, *dgamma, *dbeta;
    bool fresh_wte, fresh_norm; /* until the first chunk has stored */
    float scale;                /* 1 / targets */
} head_gradients;

static uint64_t chunk_rows(const sluice_gpt2 *m)
{
    return m->rows < SLC_GPT2_CHUNK ? m->rows : SLC_GPT2_CHUNK;
}

static slc_gemm_shape logits_shape(const sluice_gpt2 *m, uint64_t rows)
{
    return (slc_gemm_shape){.transpose_b = true, .m = rows, .n = m->config.vocabulary, .k = m->config.channels};
}

static slc_gemm_shape dnormed_shape(const sluice_gpt2 *m, uint64_t rows)
{
    return (slc_gemm_shape){.m = rows, .n = m->config.channels, .k = m->config.vocabulary};
}

static slc_gemm_shape dwte_shape(const sluice_gpt2 *m, uint64_t rows, bool fresh)
{
    return (slc_gemm_shape){
        .transpose_a = true, .accumulate = !fresh, .m = m->config.vocabulary, .n = m->config.channels, .k = rows};
}

/* ---- Registration ---- */

static sluice_status scratch_for(sluice_gpt2 *m, uint64_t rows, uint64_t *bytes)
{
    const slc_gemm_shape products[] = {logits_shape(m, rows), dnormed_shape(m, rows), dwte_shape(m, rows, true),
                                       dwte_shape(m, rows, false)};
    uint64_t norm = slc_layer_norm_backward_workspace_bytes(m->stream, rows, m->config.channels);
    if (norm > *bytes) *bytes = norm;
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        uint64_t need = 0;
        sluice_status status = slc_gemm_workspace_bytes(m->stream, &products[i], &need);
        if (status) return status;
        if (need > *bytes) *bytes = need;
    }
    return SLUICE_OK;
}

static sluice_status register_params(sluice_gpt2 *m)
{
    slc_gpt2_head *head = &m->head;
    slc_gpt2_param_info gamma = slc_gpt2_outer_param_info(&m->config, SLC_GPT2_LNF_GAMMA);
    slc_gpt2_param_info beta = slc_gpt2_outer_param_info(&m->config, SLC_GPT2_LNF_BETA);
    const sluice_param_desc gamma_desc = {.name = gamma.name, .count = gamma.count, .no_decay = gamma.no_decay};
    const sluice_param_desc beta_desc = {.name = beta.name, .count = beta.count, .no_decay = beta.no_decay};
    sluice_status status = sluice_param_add(head->layer, &gamma_desc, &head->gamma);
    if (!status) status = sluice_param_add(head->layer, &beta_desc, &head->beta);
    head->wte = m->embed.wte;
    if (!status) status = sluice_param_use(head->layer, head->wte);
    return status;
}

static sluice_status register_activations(sluice_gpt2 *m)
{
    slc_gpt2_head *head = &m->head;
    const sluice_activation_desc targets = {
        .name = "targets", .bytes = m->rows * sizeof(int32_t), .last = SLUICE_BACKWARD, .last_forward_layer = "head"};
    const sluice_activation_desc dstream = {.name = "dx",
                                            .bytes = m->rows * m->config.channels * sizeof(float),
                                            .first = SLUICE_BACKWARD,
                                            .last_layer = "embed",
                                            .last = SLUICE_BACKWARD};
    sluice_status status = sluice_activation_add(head->layer, &targets, &head->targets);
    if (!status) status = sluice_activation_add(head->layer, &dstream, &head->dstream);
    return status;
}

static sluice_status register_workspaces(sluice_gpt2 *m)
{
    slc_gpt2_head *head = &m->head;
    uint64_t chunk = chunk_rows(m), vector = chunk * m->config.channels * sizeof(float);
    const struct {
        const char *name;
        uint64_t bytes;
        sluice_workspace **out;
    } spaces[] = {
        {"logits", chunk * m->config.vocabulary * sizeof(float), head->logits},
        {"normed", vector, head->normed},
        {"dnormed", vector, head->dnormed},
        {"stats", 2 * chunk * sizeof(float), head->stats},
        {"losses", m->rows * sizeof(float), head->losses},
        {"scratch", m->head_scratch_bytes, head->scratch},
    };
    sluice_status status = SLUICE_OK;
    for (size_t i = 0; !status && i < sizeof spaces / sizeof *spaces; i++)
        status = slc_gpt2_workspaces(head->layer, spaces[i].name, spaces[i].bytes, spaces[i].out);
    return status;
}

sluice_status slc_gpt2_head_register(sluice_gpt2 *m)
{
    uint64_t tail = m->rows % chunk_rows(m);
    m->head.input = m->blocks[m->config.layers - 1].output;
    sluice_status status = scratch_for(m, chunk_rows(m), &m->head_scratch_bytes);
    if (!status && tail) status = scratch_for(m, tail, &m->head_scratch_bytes);
    if (!status) status = sluice_layer_add(m->rt, "head", &m->head.layer);
    if (!status) status = register_params(m);
    if (!status) status = register_activations(m);
    if (!status) status = register_workspaces(m);
    return status;
}

/* ---- Compute ---- */

static sluice_status memory_of(sluice_gpt2 *m, sluice_direction d, head_memory *mem)
{
    const slc_gpt2_head *head = &m->head;
    float *stats = sluice_workspace_data(head->stats[d]);
    *mem = (head_memory){
        .input = sluice_activation_data(head->input),
        .wte = sluice_param_value(head->wte),
        .gamma = sluice_param_value(head->gamma),
        .beta = sluice_param_value(head->beta),
        .targets = sluice_activation_data(head->targets),
        .logits = sluice_workspace_data(head->logits[d]),
        .normed = sluice_workspace_data(head->normed[d]),
        .dnormed = sluice_workspace_data(head->dnormed[d]),
        .mean = stats,
        .deviation = stats + chunk_rows(m),
        .losses = sluice_workspace_data(head->losses[d]),
        .scratch = head->scratch[d] ? sluice_workspace_data(head->scratch[d]) : NULL,
    };
    return mem->wte && mem->gamma && mem->beta ? SLUICE_OK : SLUICE_ERR_ORDER;
}

static sluice_status chunk_logits(sluice_gpt2 *m, const head_memory *mem, uint64_t first, uint64_t rows)
{
    uint64_t channels = m->config.channels;
    slc_gemm_shape product = logits_shape(m, rows);
    sluice_status status =
        slc_layer_norm_forward(m->stream, SLUICE_FP32, rows, channels, mem->input + first * channels, NULL, NULL,
                               mem->gamma, mem->beta, SLC_GPT2_EPSILON, mem->normed, mem->mean, mem->deviation);
    if (status) return status;
    return slc_gemm(m->stream, &product, mem->normed, mem->wte, NULL, NULL, mem->logits, mem->scratch,
                    m->head_scratch_bytes);
}

static sluice_status chunk_backward(sluice_gpt2 *m, const head_memory *mem, head_gradients *grad, uint64_t first,
                                    uint64_t rows)
{
    uint64_t channels = m->config.channels;
    slc_gemm_shape into_wte = dwte_shape(m, rows, grad->fresh_wte), into_normed = dnormed_shape(m, rows);
    sluice_status status = chunk_logits(m, mem, first, rows);
    if (!status)
        status = slc_cross_entropy(m->stream, rows, m->config.vocabulary, mem->logits, SLUICE_FP32,
                                   mem->targets + first, grad->scale, mem->losses + first);
    if (!status)
        status = slc_gemm(m->stream, &into_wte, mem->logits, mem->normed, NULL, NULL, grad->dwte, mem->scratch,
                          m->head_scratch_bytes);
    if (!status)
        status = slc_gemm(m->stream, &into_normed, mem->logits, mem->wte, NULL, NULL, mem->dnormed, mem->scratch,
                          m->head_scratch_bytes);
    if (!status)
        status = slc_layer_norm_backward(m->stream, SLUICE_FP32, SLUICE_FP32, rows, channels, mem->dnormed,
                                         mem->input + first * channels, mem->gamma, mem->mean, mem->deviation, NULL,
                                         grad->dstream + first * channels, grad->dgamma, grad->dbeta, grad->fresh_norm,
                                         mem->scratch);
    grad->fresh_wte = grad->fresh_norm = false;
    return status;
}

sluice_status slc_gpt2_head_forward(sluice_gpt2 *m, const int32_t *targets)
{
    sluice_status status = sluice_forward_begin(m->head.layer);
    if (!status)
        status = slc_copy(m->stream, sluice_activation_data(m->head.targets), targets, m->rows * sizeof *targets);
    return status ? status : sluice_forward_end(m->head.layer);
}

static sluice_status gradients_of(sluice_gpt2 *m, head_gradients *grad)
{
    bool fresh_beta = false;
    *grad = (head_gradients){.dstream = sluice_activation_data(m->head.dstream),
                             .scale = (float)(1.0 / (double)m->target_count)};
    grad->dwte = sluice_param_gradient_fresh(m->head.wte, &grad->fresh_wte);
    grad->dgamma = sluice_param_gradient_fresh(m->head.gamma, &grad->fresh_norm);
    grad->dbeta = sluice_param_gradient_fresh(m->head.beta, &fresh_beta);
    return grad->dwte && grad->dgamma && grad->dbeta ? SLUICE_OK : SLUICE_ERR_ORDER;
}

sluice_status slc_gpt2_head_backward(sluice_gpt2 *m)
{
    sluice_status status = sluice_backward_begin(m->head.layer);
    if (status) return status;

    head_memory mem;
    head_gradients grad;
    status = memory_of(m, SLUICE_BACKWARD, &mem);
    if (!status) status = gradients_of(m, &grad);
    for (uint64_t first = 0; !status && first < m->rows; first += SLC_GPT2_CHUNK) {
        uint64_t left = m->rows - first;
        status = chunk_backward(m, &mem, &grad, first, left < SLC_GPT2_CHUNK ? left : SLC_GPT2_CHUNK);
    }
    if (!status) status = slc_copy(m->stream, m->host_losses, mem.losses, m->rows * sizeof(float));
    return status ? status : sluice_backward_end(m->head.layer);
}

sluice_status slc_gpt2_head_evaluate(sluice_gpt2 *m, const int32_t *targets, float *logits)
{
    sluice_status status = sluice_forward_begin(m->head.layer);
    if (status) return status;

    head_memory mem;
    status = memory_of(m, SLUICE_FORWARD, &mem);
    if (!status)
        status = slc_copy(m->stream, sluice_activation_data(m->head.targets), targets, m->rows * sizeof *targets);
    for (uint64_t first = 0; !status && first < m->rows; first += SLC_GPT2_CHUNK) {
        uint64_t left = m->rows - first, rows = left < SLC_GPT2_CHUNK ? left : SLC_GPT2_CHUNK;
        uint64_t classes = m->config.vocabulary;
        status = chunk_logits(m, &mem, first, rows);
        if (!status && logits)
            status = slc_copy(m->stream, logits + first * classes, mem.logits, rows * classes * sizeof(float));
        if (!status)
            status = slc_cross_entropy(m->stream, rows, classes, mem.logits, SLUICE_FP32, mem.targets + first, 0,
                                       mem.losses + first);
    }
    if (!status) status = slc_copy(m->stream, m->host_losses, mem.losses, m->rows * sizeof(float));
    return status ? status : sluice_forward_end(m->head.layer);
}
