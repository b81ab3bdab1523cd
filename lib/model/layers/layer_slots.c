/* A layer's slots: its lists of operations between the runtime's begin and end of a slot.
 * lib/model/golden_models_test.c covers this file. */
#include "lib/model/layers/layer_slots.h"

#include "lib/base/status.h"
#include "lib/model/layers/layer_run.h"
#include "lib/model/layers/layers.h"

typedef struct {
    void (*tensors)(sluice_model *m, slc_model_layer *layer);
    slc_operations *forward, *recompute, *backward;
} layer_code;

static layer_code code_of(const sluice_model *m, uint32_t number)
{
    switch (m->layers[number].kind) {
    case SLC_LAYER_EMBED: return (layer_code){slc_embed_tensors, slc_embed_forward, NULL, slc_embed_backward};
    case SLC_LAYER_BLOCK:
        return (layer_code){slc_block_tensors, slc_block_forward, slc_block_recompute, slc_block_backward};
    default: break;
    }
    if (m->config.head == SLUICE_HEAD_CLASSES)
        return (layer_code){slc_class_head_tensors, slc_class_head_forward, NULL, slc_class_head_backward};
    return (layer_code){slc_token_head_tensors, slc_token_head_forward, NULL, slc_token_head_backward};
}

sluice_status slc_layer_slots_register(sluice_model *m, uint32_t number)
{
    const layer_code code = code_of(m, number);
    slc_layer_common_tensors(m, &m->layers[number]);
    code.tensors(m, &m->layers[number]);
    return slc_layer_register_tensors(m, number, code.forward, code.recompute, code.backward);
}

/* ---- Slots ---- */

static sluice_status go_on(const sluice_model *m)
{
    if (!m->check) return SLUICE_OK;
    const uint64_t before = slc_errors_set();
    const sluice_status given = m->check(m->check_context);
    const bool has_line = slc_errors_set() != before;
    sluice_status status = slc_error_bare(given, before);
    return has_line && status == given ? status : slc_error_context(status, "the program's check");
}

static sluice_status keep_targets(sluice_model *m)
{
    sluice_activation *targets = m->layers[m->layer_count - 1].tensors[SLC_TARGETS].activation;
    return slc_copy(m->stream, sluice_activation_data(targets), m->memory->targets,
                    slc_model_head_rows(m) * sizeof(int32_t));
}

/* Returns true if the pass only fills the cache, so that its head has nothing to answer. */
static bool is_unasked(const sluice_model *m)
{
    return m->cache.room && !m->host_logits;
}

sluice_status slc_layer_forward(sluice_model *m, uint32_t number, bool training)
{
    const layer_code code = code_of(m, number);
    slc_layer_run slot = slc_layer_run_of(m, number, SLUICE_FORWARD);
    bool head = number + 1 == m->layer_count;
    slot.training = training;
    sluice_status status = go_on(m);
    if (!status) status = sluice_forward_begin(slot.layer->layer);
    if (!status && head && !m->cache.room) status = keep_targets(m);
    if (!status && !(head && (training || is_unasked(m)))) status = code.forward(&slot);
    return status ? status : sluice_forward_end(slot.layer->layer);
}

static sluice_status layer_recompute(sluice_model *m, uint32_t number)
{
    slc_layer_run slot = slc_layer_run_of(m, number, SLUICE_FORWARD);
    slot.training = true;
    sluice_status status = sluice_recompute_begin(slot.layer->layer);
    if (!status) status = code_of(m, number).recompute(&slot);
    return status ? status : sluice_recompute_end(slot.layer->layer);
}

sluice_status slc_layer_backward(sluice_model *m, uint32_t number)
{
    const layer_code code = code_of(m, number);
    slc_layer_run slot = slc_layer_run_of(m, number, SLUICE_BACKWARD);
    slot.training = true;
    sluice_status status = go_on(m);
    if (!status && code.recompute && sluice_layer_recomputes(slot.layer->layer)) status = layer_recompute(m, number);
    if (!status) status = sluice_backward_begin(slot.layer->layer);
    if (!status) status = code.backward(&slot);
    return status ? status : sluice_backward_end(slot.layer->layer);
}
