/* The last layer if the whole input has one class. ViT and BEiT take the first row or the mean of the patches, then a
 * norm and a matrix. BERT takes the first row, then, where norms of blocks come before branches, a norm and dropout,
 * then a dense layer with tanh, dropout if there is any, and a matrix. There is one row for each sequence, so the
 * backward slot computes all of it again. lib/model/golden_models_test.c covers this file. */
#include "lib/model/layers/layers.h"

#include "lib/kernels/gelu/gelu.h"
#include "lib/kernels/pool/pool.h"
#include "lib/model/layers/logits.h"
#include "lib/model/layers/operations.h"
#include "lib/model/layers/layer_run.h"

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
    OF_TRUNK, /* the norm of POOLED, where the family has one before the head */
    TENSORS
};
_Static_assert((int)TENSORS <= (int)SLC_TENSORS_MAX, "the head's tensors fit its table");

enum { DROPOUT_ANSWER, DROPOUT_POOLED };

void slc_class_head_tensors(sluice_model *m, slc_model_layer *layer)
{
    const sluice_model_config *c = &m->config;
    uint64_t rows = slc_model_most_sequences(m), vector = slc_layer_bytes(layer, rows * c->channels);
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
        [OF_TRUNK] = {"normed input", slc_family_of(c->family)->norm_before_head ? vector : 0, .kept = false},
    };
    for (int i = SLC_OWN_TENSORS; i < TENSORS; i++) layer->tensors[i] = table[i];
}

static slc_dense classifier(const slc_layer_run *run)
{
    const sluice_model_config *c = &run->m->config;
    slc_dense d = slc_dense_of(run, SLC_DECODER_WEIGHT, run->m->sequences, c->channels, c->classes);
    d.fp32_out = true;
    return d;
}

static slc_dense pooler(const slc_layer_run *run)
{
    uint64_t channels = run->m->config.channels;
    return slc_dense_of(run, SLC_TRANSFORM_WEIGHT, run->m->sequences, channels, channels);
}

static bool has_dense(const slc_layer_run *run)
{
    return slc_family_of(run->m->config.family)->dense_heads;
}

static slc_pool_kind pool_kind(const slc_layer_run *run)
{
    const sluice_model_config *c = &run->m->config;
    return slc_family_of(c->family)->mean_pooling && !c->first_row_pooling ? SLC_POOL_MEAN_OF_REST : SLC_POOL_FIRST;
}

static slc_pool_args pool_args(const slc_layer_run *run, const void *from, void *to)
{
    const sluice_model *m = run->m;
    return (slc_pool_args){.dtype = run->layer->dtype,
                           .kind = pool_kind(run),
                           .batch = m->sequences,
                           .tokens = m->tokens,
                           .channels = m->config.channels,
                           .from = from,
                           .to = to};
}

static sluice_status pool(slc_layer_run *run)
{
    slc_layer_run_next(run);
    const void *x = slc_layer_run_tensor(run, SLC_INPUT);
    void *y = slc_layer_run_tensor(run, POOLED);
    const slc_pool_args args = pool_args(run, x, y);
    return run->scan ? SLUICE_OK : slc_pool_forward(run->m->stream, &args);
}

static sluice_status pool_backward(slc_layer_run *run)
{
    slc_layer_run_next(run);
    const void *dy = slc_layer_run_tensor(run, DPOOLED);
    void *dx = slc_layer_run_tensor(run, SLC_GRADIENT);
    const slc_pool_args args = pool_args(run, dy, dx);
    return run->scan ? SLUICE_OK : slc_pool_backward(run->m->stream, &args);
}

static sluice_status squash(slc_layer_run *run)
{
    slc_layer_run_next(run);
    const void *x = slc_layer_run_tensor(run, DENSE);
    void *y = slc_layer_run_tensor(run, ANSWER);
    uint64_t count = (uint64_t)run->m->sequences * run->m->config.channels;
    return run->scan ? SLUICE_OK : slc_tanh_forward(run->m->stream, run->layer->dtype, count, x, y);
}

/* Computes the gradient through tanh. DENSE holds the input of tanh; the output is computed there again, because ANSWER
 * may have been through dropout. */
static sluice_status squash_backward(slc_layer_run *run)
{
    slc_layer_run_next(run);
    sluice_stream *stream = run->m->stream;
    sluice_dtype dtype = run->layer->dtype;
    void *x = slc_layer_run_tensor(run, DENSE), *dy = slc_layer_run_tensor(run, DANSWER);
    uint64_t count = (uint64_t)run->m->sequences * run->m->config.channels;
    if (run->scan) return SLUICE_OK;
    sluice_status status = slc_tanh_forward(stream, dtype, count, x, x);
    return status ? status : slc_tanh_backward(stream, dtype, count, x, dy, dy);
}

static sluice_status drop(slc_layer_run *run, uint32_t place, uint32_t tensor)
{
    if (!has_dense(run) || run->m->config.dropout == 0) return SLUICE_OK;
    return slc_apply_dropout(run, place, tensor, run->m->config.channels);
}

/* A dense layer and tanh. */
static sluice_status make_answer(slc_layer_run *run)
{
    slc_dense p = pooler(run);
    const uint32_t input = slc_layer_norms_trunk(run) ? OF_TRUNK : POOLED;
    sluice_status status = SLUICE_OK;
    if (slc_layer_norms_trunk(run))
        status =
            slc_apply_norm(run, SLC_TRUNK_NORM_WEIGHT, run->m->sequences, SLC_ALL(POOLED), SLC_ALL(OF_TRUNK), STATS);
    if (!status && slc_family_of(run->m->config.family)->drops_pooled) status = drop(run, DROPOUT_POOLED, input);
    if (!status) status = slc_apply_dense(run, &p, SLC_ALL(input), SLC_ALL(DENSE), SLC_ALL(SLC_NO_TENSOR));
    return status ? status : squash(run);
}

/* Computes DPOOLED from DANSWER. */
static sluice_status answer_backward(slc_layer_run *run)
{
    slc_dense p = pooler(run);
    const slc_view none = SLC_ALL(SLC_NO_TENSOR), dpooled = SLC_ALL(DPOOLED);
    sluice_status status = squash_backward(run);
    if (!status)
        status =
            slc_apply_dense_params(run, &p, SLC_ALL(slc_layer_norms_trunk(run) ? OF_TRUNK : POOLED), SLC_ALL(DANSWER));
    if (!status) status = slc_apply_dense_input(run, &p, SLC_ALL(DANSWER), dpooled, false, none);
    if (!status && slc_family_of(run->m->config.family)->drops_pooled) status = drop(run, DROPOUT_POOLED, DPOOLED);
    if (status || !slc_layer_norms_trunk(run)) return status;
    return slc_apply_norm_backward(run, SLC_TRUNK_NORM_WEIGHT, run->m->sequences, dpooled, SLC_ALL(POOLED), STATS, none,
                                   dpooled);
}

static sluice_status make_logits(slc_layer_run *run)
{
    slc_dense d = classifier(run);
    const slc_view none = SLC_ALL(SLC_NO_TENSOR);
    sluice_status status = pool(run);
    if (!status && has_dense(run)) {
        status = make_answer(run);
    } else if (!status) {
        status = slc_apply_norm(run, SLC_HEAD_NORM_WEIGHT, run->m->sequences, SLC_ALL(POOLED), SLC_ALL(ANSWER), STATS);
    }
    if (!status) status = drop(run, DROPOUT_ANSWER, ANSWER);
    const slc_view logits = {.tensor = LOGITS, .stride = slc_logits_stride(run->m, d.outputs)};
    return status ? status : slc_apply_dense(run, &d, SLC_ALL(ANSWER), logits, none);
}

static sluice_status make_losses(slc_layer_run *run, float scale)
{
    const sluice_model *m = run->m;
    return slc_apply_losses(run, LOGITS, LOSSES, 0, m->sequences, m->config.classes, scale);
}

static sluice_status give_logits(slc_layer_run *run)
{
    slc_layer_run_next(run);
    sluice_model *m = run->m;
    const float *logits = slc_layer_run_tensor(run, LOGITS);
    if (run->scan || !m->host_logits) return SLUICE_OK;
    return slc_logits_give(m, logits, m->sequences, m->config.classes, m->host_logits);
}

sluice_status slc_class_head_forward(slc_layer_run *run)
{
    sluice_status status = slc_apply_take_input(run);
    if (!status) status = make_logits(run);
    if (!status) status = give_logits(run);
    if (!status && (run->scan || run->m->memory->target_count)) status = make_losses(run, 0);
    return status;
}

sluice_status slc_class_head_backward(slc_layer_run *run)
{
    slc_dense d = classifier(run);
    uint64_t each = sizeof(float) / sluice_dtype_bytes(run->layer->dtype);
    uint64_t stride = slc_logits_stride(run->m, d.outputs) * each;
    const slc_view dlogits = {.tensor = LOGITS, .stride = stride}, none = SLC_ALL(SLC_NO_TENSOR);
    sluice_status status = slc_apply_take_input(run);
    if (!status) status = make_logits(run);
    if (!status) status = make_losses(run, run->scan ? 1 : (float)(1.0 / run->m->memory->divisor));
    if (!status) status = slc_apply_dense_params(run, &d, SLC_ALL(ANSWER), dlogits);
    if (!status) status = slc_apply_dense_input(run, &d, dlogits, SLC_ALL(DANSWER), false, none);
    if (!status) status = drop(run, DROPOUT_ANSWER, DANSWER);
    if (!status && has_dense(run)) {
        status = answer_backward(run);
    } else if (!status) {
        status = slc_apply_norm_backward(run, SLC_HEAD_NORM_WEIGHT, run->m->sequences, SLC_ALL(DANSWER),
                                         SLC_ALL(POOLED), STATS, none, SLC_ALL(DPOOLED));
    }
    if (!status) status = pool_backward(run);
    return status ? status : slc_apply_give_gradient(run);
}
