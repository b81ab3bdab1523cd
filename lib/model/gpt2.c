/* GPT-2's life and its micro-batch: every layer's forward in order, then every layer's backward in reverse. */
#include "lib/model/gpt2.h"

#include "lib/base/status.h"
#include "lib/kernels/gemm/gemm.h"

#include <stdlib.h>

static sluice_status check_config(const sluice_gpt2_config *c, uint32_t batch, uint32_t tokens)
{
    if (!c->layers || !c->channels || !c->heads || !c->context || !c->vocabulary)
        return slc_error(SLUICE_ERR_ARGUMENT, "gpt2: layers, channels, heads, context and vocabulary must be positive");
    if (c->channels % c->heads)
        return slc_error(SLUICE_ERR_ARGUMENT, "gpt2: %u channels cannot be split among %u heads; make one a multiple",
                         c->channels, c->heads);
    if (!batch || !tokens) return slc_error(SLUICE_ERR_ARGUMENT, "gpt2: a micro-batch needs at least one token");
    if (tokens > c->context)
        return slc_error(SLUICE_ERR_ARGUMENT, "gpt2: sequences of %u tokens exceed the model's context of %u", tokens,
                         c->context);
    return SLUICE_OK;
}

/* What GEMM packs is never more than its largest operands. */
static uint64_t gemm_own_bytes(const sluice_gpt2 *m)
{
    uint64_t channels = m->config.channels, wide = 4 * channels;
    if (m->config.vocabulary > wide) wide = m->config.vocabulary;
    uint64_t operands = (m->rows + channels) * wide * sizeof(float);
    return m->stream->threads * (operands < SLC_GEMM_OWN_BYTES ? operands : SLC_GEMM_OWN_BYTES);
}

sluice_status slc_gpt2_workspaces(sluice_layer *layer, const char *name, uint64_t bytes, sluice_workspace *out[2])
{
    sluice_status status = SLUICE_OK;
    for (int d = 0; !status && bytes && d < 2; d++) {
        const sluice_workspace_desc desc = {name, bytes, (sluice_direction)d, 0, UINT32_MAX};
        status = sluice_workspace_add(layer, &desc, &out[d]);
    }
    return status;
}

static sluice_status register_layers(sluice_gpt2 *m)
{
    sluice_status status = slc_gpt2_embed_register(m);
    for (uint32_t i = 0; !status && i < m->config.layers; i++) status = slc_gpt2_block_register(m, i);
    if (!status) status = slc_gpt2_head_register(m);
    if (!status) status = sluice_runtime_reserve(m->rt, "loss values", m->rows * sizeof(float));
    if (!status) status = sluice_runtime_reserve(m->rt, "GEMM's own buffers", gemm_own_bytes(m));
    return status;
}

sluice_status sluice_gpt2_create(sluice_runtime *rt, const sluice_gpt2_config *config, uint32_t batch, uint32_t tokens,
                                 sluice_gpt2 **out)
{
    sluice_status status = check_config(config, batch, tokens);
    if (status) return status;
    sluice_gpt2 *m = calloc(1, sizeof *m);
    if (!m) return slc_error(SLUICE_ERR_MEMORY, "gpt2");
    m->rt = rt;
    m->stream = sluice_runtime_stream(rt);
    m->config = *config;
    m->batch = batch;
    m->tokens = tokens;
    m->rows = (uint64_t)batch * tokens;
    m->blocks = calloc(config->layers, sizeof *m->blocks);
    m->host_losses = malloc(m->rows * sizeof *m->host_losses);
    if (!m->blocks || !m->host_losses) {
        status = slc_error(SLUICE_ERR_MEMORY, "gpt2 of %u layers", config->layers);
        goto destroy;
    }
    status = register_layers(m);
    if (status) goto destroy;
    *out = m;
    return SLUICE_OK;

destroy:
    sluice_gpt2_destroy(m);
    return status;
}

void sluice_gpt2_destroy(sluice_gpt2 *m)
{
    if (!m) return;
    free(m->host_losses);
    free(m->blocks);
    free(m);
}

void sluice_gpt2_check(sluice_gpt2 *m, sluice_status (*check)(void *context), void *context)
{
    m->check = check;
    m->check_context = context;
}

static sluice_status go_on(const sluice_gpt2 *m)
{
    return m->check ? m->check(m->check_context) : SLUICE_OK;
}

static sluice_status check_batch(sluice_gpt2 *m, const int32_t *tokens, const int32_t *targets)
{
    uint32_t vocabulary = m->config.vocabulary;
    m->target_count = 0;
    for (uint64_t i = 0; i < m->rows; i++) {
        if ((uint32_t)tokens[i] >= vocabulary)
            return slc_error(SLUICE_ERR_ARGUMENT, "gpt2: token %d at %llu is outside the vocabulary of %u", tokens[i],
                             (unsigned long long)i, vocabulary);
        if (targets[i] == -1) continue;
        if ((uint32_t)targets[i] >= vocabulary)
            return slc_error(SLUICE_ERR_ARGUMENT, "gpt2: target %d at %llu is outside the vocabulary of %u", targets[i],
                             (unsigned long long)i, vocabulary);
        m->target_count++;
    }
    if (m->target_count == 0) return slc_error(SLUICE_ERR_ARGUMENT, "gpt2: every target of the micro-batch is -1");
    return SLUICE_OK;
}

static sluice_status forward_trunk(sluice_gpt2 *m, const int32_t *tokens)
{
    sluice_status status = go_on(m);
    if (!status) status = slc_gpt2_embed_forward(m, tokens);
    for (uint32_t i = 0; !status && i < m->config.layers; i++) {
        status = go_on(m);
        if (!status) status = slc_gpt2_block_forward(m, &m->blocks[i]);
    }
    return status ? status : go_on(m);
}

static sluice_status mean_loss(sluice_gpt2 *m, double *loss)
{
    sluice_status status = slc_stream_synchronize(m->stream);
    if (status) return status;
    double sum = 0;
    for (uint64_t i = 0; i < m->rows; i++) sum += m->host_losses[i];
    *loss = sum / (double)m->target_count;
    return SLUICE_OK;
}

sluice_status sluice_gpt2_forward(sluice_gpt2 *m, const int32_t *tokens, const int32_t *targets)
{
    sluice_status status = check_batch(m, tokens, targets);
    if (!status) status = forward_trunk(m, tokens);
    if (!status) status = slc_gpt2_head_forward(m, targets);
    return status;
}

sluice_status sluice_gpt2_backward(sluice_gpt2 *m, double *loss)
{
    sluice_status status = go_on(m);
    if (!status) status = slc_gpt2_head_backward(m);
    for (uint32_t i = m->config.layers; !status && i-- > 0;) {
        status = go_on(m);
        if (!status) status = slc_gpt2_block_backward(m, &m->blocks[i]);
    }
    if (!status) status = go_on(m);
    if (!status) status = slc_gpt2_embed_backward(m);
    return status ? status : mean_loss(m, loss);
}

sluice_status sluice_gpt2_evaluate(sluice_gpt2 *m, const int32_t *tokens, const int32_t *targets, double *loss,
                                   float *logits)
{
    sluice_status status = check_batch(m, tokens, targets);
    if (!status) status = sluice_evaluate_begin(m->rt);
    if (!status) status = forward_trunk(m, tokens);
    if (!status) status = slc_gpt2_head_evaluate(m, targets, logits);
    if (!status) status = sluice_evaluate_end(m->rt);
    return status ? status : mean_loss(m, loss);
}
