/* The last layer if the whole input has one class. ViT, BEiT: the first row or the mean of the patches, a norm, a
 * matrix. BERT: the first row, a dense layer and tanh, (dropout,) a matrix. There is one row for each sequence, so the
 * backward slot computes all of it again. */
#include "lib/kernels/cross_entropy/cross_entropy.h"
#include "lib/kernels/gelu/gelu.h"
#include "lib/kernels/pool/pool.h"
#include "lib/model/layers/logits.h"
#include "lib/model/layers/operations.h"

/* All live within a slot and have one row for each sequence. */
enum {
    LOGITS = SLC_HEAD_TENSORS,
    POOLED,
    DENSE, /* BERT only */
    ANSWER,
    STATS,
    DANSWER,
    DPOOLED,
    LOSSES,
    TENSORS
};
_Static_assert((int)TENSORS <= (int)SLC_TENSORS_MAX, "the head's tensors fit its table");

enum { DROPOUT_ANSWER };

void slc_class_head_tensors(sluice_model *m, slc_model_layer *layer)
{
    const sluice_model_config *c = &m->config;
    uint64_t rows = m->batch, vector = slc_layer_bytes(layer, rows * c->channels);
    const slc_layer_tensor table[TENSORS] = {
        [SLC_TARGETS] = {"targets", rows * sizeof(int32_t), .kept = true},
        [LOGITS] = {"logits", rows * slc_logits_stride(m, c->classes) * sizeof(float), .kept = false},
        [POOLED] = {"pooled", vector, .kept = false},
        [DENSE] = {"dense", slc_family_of(c->family)->dense_heads ? vector : 0, .kept = false},
        [ANSWER] = {"answer", vector, .kept = false},
        [STATS] = {"stats", 2 * rows * sizeof(float), .kept = false},
        [DANSWER] = {"d answer", vector, .kept = false},
        [DPOOLED] = {"d pooled", vector, .kept = false},
        [LOSSES] = {"losses", rows * sizeof(float), .kept = false},
    };
    for (int i = SLC_OWN_TENSORS; i < TENSORS; i++) layer->tensors[i] = table[i];
}

static slc_dense classifier(const slc_layer_run *slot)
{
    const sluice_model_config *c = &slot->m->config;
    slc_dense d = slc_dense_of(slot, SLC_DECODER_WEIGHT, slot->m->batch, c->channels, c->classes);
    d.fp32_out = true;
    return d;
}

static slc_dense pooler(const slc_layer_run *slot)
{
    uint64_t channels = slot->m->config.channels;
    return slc_dense_of(slot, SLC_TRANSFORM_WEIGHT, slot->m->batch, channels, channels);
}

static bool has_dense(const slc_layer_run *slot)
{
    return slc_family_of(slot->m->config.family)->dense_heads;
}

static slc_pool_kind pool_kind(const slc_layer_run *slot)
{
    const sluice_model_config *c = &slot->m->config;
    return slc_family_of(c->family)->mean_pooling && !c->first_row_pooling ? SLC_POOL_MEAN_OF_REST : SLC_POOL_FIRST;
}

static sluice_status pool(slc_layer_run *slot)
{
    slc_layer_run_next(slot);
    const sluice_model *m = slot->m;
    const void *x = slc_layer_run_tensor(slot, SLC_INPUT);
    void *y = slc_layer_run_tensor(slot, POOLED);
    return slot->scan ? SLUICE_OK
                      : slc_pool_forward(m->stream, slot->layer->dtype, pool_kind(slot), m->batch, m->tokens,
                                         m->config.channels, x, y);
}

static sluice_status pool_backward(slc_layer_run *slot)
{
    slc_layer_run_next(slot);
    const sluice_model *m = slot->m;
    const void *dy = slc_layer_run_tensor(slot, DPOOLED);
    void *dx = slc_layer_run_tensor(slot, SLC_GRADIENT);
    return slot->scan ? SLUICE_OK
                      : slc_pool_backward(m->stream, slot->layer->dtype, pool_kind(slot), m->batch, m->tokens,
                                          m->config.channels, dy, dx);
}

static sluice_status squash(slc_layer_run *slot)
{
    slc_layer_run_next(slot);
    const void *x = slc_layer_run_tensor(slot, DENSE);
    void *y = slc_layer_run_tensor(slot, ANSWER);
    uint64_t count = (uint64_t)slot->m->batch * slot->m->config.channels;
    return slot->scan ? SLUICE_OK : slc_tanh_forward(slot->m->stream, slot->layer->dtype, count, x, y);
}

/* DENSE holds the input of tanh; its output is computed there again, because ANSWER may have been through dropout. */
static sluice_status squash_backward(slc_layer_run *slot)
{
    slc_layer_run_next(slot);
    sluice_stream *stream = slot->m->stream;
    sluice_dtype dtype = slot->layer->dtype;
    void *x = slc_layer_run_tensor(slot, DENSE), *dy = slc_layer_run_tensor(slot, DANSWER);
    uint64_t count = (uint64_t)slot->m->batch * slot->m->config.channels;
    if (slot->scan) return SLUICE_OK;
    sluice_status status = slc_tanh_forward(stream, dtype, count, x, x);
    return status ? status : slc_tanh_backward(stream, dtype, count, x, dy, dy);
}

static sluice_status drop(slc_layer_run *slot, uint32_t tensor)
{
    if (!has_dense(slot) || slot->m->config.dropout == 0) return SLUICE_OK;
    return slc_apply_dropout(slot, DROPOUT_ANSWER, tensor, slot->m->config.channels);
}

static sluice_status make_logits(slc_layer_run *slot)
{
    slc_dense d = classifier(slot), p = pooler(slot);
    const slc_view none = SLC_ALL(SLC_NO_TENSOR);
    sluice_status status = pool(slot);
    if (has_dense(slot)) {
        if (!status) status = slc_apply_dense(slot, &p, SLC_ALL(POOLED), SLC_ALL(DENSE), none);
        if (!status) status = squash(slot);
    } else if (!status) {
        status = slc_apply_norm(slot, SLC_HEAD_NORM_WEIGHT, slot->m->batch, SLC_ALL(POOLED), SLC_ALL(ANSWER), STATS);
    }
    if (!status) status = drop(slot, ANSWER);
    const slc_view logits = {.tensor = LOGITS, .stride = slc_logits_stride(slot->m, d.outputs)};
    return status ? status : slc_apply_dense(slot, &d, SLC_ALL(ANSWER), logits, none);
}

/* scale 0: computes the losses only, and those without smoothing, as evaluations want them. */
static sluice_status make_losses(slc_layer_run *slot, float scale)
{
    slc_layer_run_next(slot);
    const sluice_model *m = slot->m;
    float *logits = slc_layer_run_tensor(slot, LOGITS), *losses = slc_layer_run_tensor(slot, LOSSES);
    const int32_t *targets = slc_layer_run_tensor(slot, SLC_TARGETS);
    if (slot->scan) return SLUICE_OK;
    uint64_t classes = m->config.classes;
    sluice_status status =
        slc_cross_entropy(m->stream, m->batch, classes, slc_logits_stride(m, classes), logits, slot->layer->dtype,
                          targets, scale != 0 ? m->label_smoothing : 0, scale, losses);
    return status ? status : slc_copy(m->stream, m->memory->losses, losses, m->batch * sizeof *losses);
}

static sluice_status give_logits(slc_layer_run *slot)
{
    slc_layer_run_next(slot);
    sluice_model *m = slot->m;
    const float *logits = slc_layer_run_tensor(slot, LOGITS);
    if (slot->scan || !m->host_logits) return SLUICE_OK;
    return slc_logits_give(m, logits, m->batch, m->config.classes, m->host_logits);
}

sluice_status slc_class_head_forward(slc_layer_run *slot)
{
    sluice_status status = slc_apply_take_input(slot);
    if (!status) status = make_logits(slot);
    if (!status) status = give_logits(slot);
    if (!status && (slot->scan || slot->m->memory->target_count)) status = make_losses(slot, 0);
    return status;
}

sluice_status slc_class_head_backward(slc_layer_run *slot)
{
    slc_dense d = classifier(slot), p = pooler(slot);
    uint64_t each = sizeof(float) / sluice_dtype_bytes(slot->layer->dtype);
    uint64_t stride = slc_logits_stride(slot->m, d.outputs) * each;
    const slc_view dlogits = {.tensor = LOGITS, .stride = stride}, none = SLC_ALL(SLC_NO_TENSOR);
    sluice_status status = slc_apply_take_input(slot);
    if (!status) status = make_logits(slot);
    if (!status) status = make_losses(slot, slot->scan ? 1 : (float)(1.0 / slot->m->memory->divisor));
    if (!status) status = slc_apply_dense_params(slot, &d, SLC_ALL(ANSWER), dlogits);
    if (!status) status = slc_apply_dense_input(slot, &d, dlogits, SLC_ALL(DANSWER), false, none);
    if (!status) status = drop(slot, DANSWER);
    if (has_dense(slot)) {
        if (!status) status = squash_backward(slot);
        if (!status) status = slc_apply_dense_params(slot, &p, SLC_ALL(POOLED), SLC_ALL(DANSWER));
        if (!status) status = slc_apply_dense_input(slot, &p, SLC_ALL(DANSWER), SLC_ALL(DPOOLED), false, none);
    } else if (!status) {
        status = slc_apply_norm_backward(slot, SLC_HEAD_NORM_WEIGHT, slot->m->batch, SLC_ALL(DANSWER), SLC_ALL(POOLED),
                                         STATS, none, SLC_ALL(DPOOLED));
    }
    if (!status) status = pool_backward(slot);
    return status ? status : slc_apply_give_gradient(slot);
}
