/* GPT-2's first layer: token and position tables. wte belongs to it and is used by the head too, whose gradient is
 * there first: this layer's backward adds the rows of its tokens. */
#include "lib/kernels/embedding/embedding.h"
#include "lib/model/gpt2.h"

static sluice_status add_table(sluice_gpt2 *m, int which, bool tied, sluice_param **out)
{
    slc_gpt2_param_info info = slc_gpt2_outer_param_info(&m->config, which);
    const sluice_param_desc desc = {
        .name = info.name, .count = info.count, .no_decay = info.no_decay, .tied = tied, .no_backward_value = true};
    return sluice_param_add(m->embed.layer, &desc, out);
}

sluice_status slc_gpt2_embed_register(sluice_gpt2 *m)
{
    slc_gpt2_embed *embed = &m->embed;
    sluice_status status = sluice_layer_add(m->rt, "embed", &embed->layer);
    if (!status) status = add_table(m, SLC_GPT2_WTE, true, &embed->wte);
    if (!status) status = add_table(m, SLC_GPT2_WPE, false, &embed->wpe);

    const sluice_activation_desc tokens = {
        .name = "tokens", .bytes = m->rows * sizeof(int32_t), .last = SLUICE_BACKWARD, .last_forward_layer = "embed"};
    const sluice_activation_desc output = {.name = "x",
                                           .bytes = m->rows * m->config.channels * sizeof(float),
                                           .last_layer = "h.0",
                                           .last = SLUICE_BACKWARD,
                                           .last_forward_layer = "h.0"};
    if (!status) status = sluice_activation_add(embed->layer, &tokens, &embed->tokens);
    if (!status) status = sluice_activation_add(embed->layer, &output, &embed->output);
    const sluice_workspace_desc places = {
        "places", slc_embedding_backward_workspace_bytes(m->stream, m->batch, m->tokens, m->config.channels),
        SLUICE_BACKWARD, 0, UINT32_MAX};
    if (!status) status = sluice_workspace_add(embed->layer, &places, &embed->places);
    return status;
}

sluice_status slc_gpt2_embed_forward(sluice_gpt2 *m, const int32_t *tokens)
{
    slc_gpt2_embed *embed = &m->embed;
    sluice_status status = sluice_forward_begin(embed->layer);
    if (status) return status;

    int32_t *kept = sluice_activation_data(embed->tokens);
    const float *wte = sluice_param_value(embed->wte), *wpe = sluice_param_value(embed->wpe);
    if (!wte || !wpe) return SLUICE_ERR_ORDER;
    status = slc_copy(m->stream, kept, tokens, m->rows * sizeof *kept);
    if (!status)
        status = slc_embedding_forward(m->stream, SLUICE_FP32, m->batch, m->tokens, m->config.channels, kept, NULL,
                                       &(slc_embedding_tables){.token = wte, .position = wpe},
                                       sluice_activation_data(embed->output));
    return status ? status : sluice_forward_end(embed->layer);
}

sluice_status slc_gpt2_embed_backward(sluice_gpt2 *m)
{
    slc_gpt2_embed *embed = &m->embed;
    sluice_status status = sluice_backward_begin(embed->layer);
    if (status) return status;

    float *dwte = sluice_param_gradient(embed->wte), *dwpe = sluice_param_gradient(embed->wpe);
    if (!dwte || !dwpe) return SLUICE_ERR_ORDER;
    status = slc_embedding_backward(
        m->stream, SLUICE_FP32, SLUICE_FP32, m->batch, m->tokens, m->config.channels,
        sluice_activation_data(embed->tokens), NULL, sluice_activation_data(m->head.dstream),
        &(slc_embedding_gradients){.token = dwte, .position = dwpe}, sluice_workspace_data(embed->places));
    return status ? status : sluice_backward_end(embed->layer);
}
