/* The last layer if every position answers with a token: a norm, the product with the vocabulary's matrix, and the
 * loss. BERT has a dense layer with GELU before these, and before that a norm where norms of blocks come before
 * branches. Logits are the biggest tensor in a small model's step. So they are computed, turned into their gradient and
 * used up one chunk of rows at a time, all in the backward slot. If few rows have targets, chunks hold these alone.
 * lib/model/golden_models_test.c covers this file. */
#include "lib/model/layers/layers.h"

#include "lib/kernels/residual/residual.h"
#include "lib/base/integer.h"
#include "lib/model/layers/logits.h"
#include "lib/model/layers/operations.h"
#include "lib/model/layers/layer_run.h"

/* All live within a slot and hold a chunk of rows, except losses, which hold all rows. */
enum {
    LOGITS = SLC_HEAD_TENSORS,
    TRANSFORMED, /* BERT only */
    ACTIVATED,   /* BERT only */
    NORMED,
    STATS,
    DNORMED,
    DACTIVATED, /* BERT only */
    LOSSES,
    PICKED, /* rows of the input that have targets, where the model picks them; and their gradient */
    DPICKED,
    OF_TRUNK, /* the input's norm, where the family has one before the head */
    OF_TRUNK_STATS,
    TENSORS
};
_Static_assert((int)TENSORS <= (int)SLC_TENSORS_MAX, "the head's tensors fit its table");

/* A chunk: rows that follow each other among all rows, or, if `picked`, among the picked ones. */
typedef struct {
    uint64_t first, rows;
    bool picked;
} chunk;

static bool transforms(const slc_layer_run *run)
{
    return run->layer->params[SLC_TRANSFORM_WEIGHT] != NULL;
}

static slc_view input_of(const slc_layer_run *run, chunk k)
{
    return k.picked ? SLC_ALL(PICKED) : SLC_FROM(SLC_INPUT, k.first * run->m->config.channels);
}

/* The input of the dense layer that the head begins with. */
static slc_view transformed_input(const slc_layer_run *run, chunk k)
{
    return slc_layer_norms_trunk(run) ? SLC_ALL(OF_TRUNK) : input_of(run, k);
}

static slc_view gradient_of(const slc_layer_run *run, chunk k)
{
    return k.picked ? SLC_ALL(DPICKED) : SLC_FROM(SLC_GRADIENT, k.first * run->m->config.channels);
}

void slc_token_head_tensors(sluice_model *m, slc_model_layer *layer)
{
    const sluice_model_config *c = &m->config;
    bool transform = slc_family_of(c->family)->dense_heads, of_trunk = slc_family_of(c->family)->norm_before_head;
    uint64_t vector = slc_layer_bytes(layer, slc_model_head_chunk(m) * c->channels);
    const slc_layer_tensor table[TENSORS] = {
        [SLC_TARGETS] = {"targets", m->rows * sizeof(int32_t), .kept = true},
        [LOGITS] = {"logits", slc_model_head_chunk(m) * slc_logits_stride(m, c->vocabulary) * sizeof(float),
                    .kept = false},
        [TRANSFORMED] = {"transformed", transform ? vector : 0, .kept = false},
        [ACTIVATED] = {"activated", transform ? vector : 0, .kept = false},
        [NORMED] = {"normed", vector, .kept = false},
        [STATS] = {"stats", 2 * slc_model_head_chunk(m) * sizeof(float), .kept = false},
        [DNORMED] = {"d normed", vector, .kept = false},
        [DACTIVATED] = {"d activated", transform ? vector : 0, .kept = false},
        [LOSSES] = {"losses", m->rows * sizeof(float), .kept = false},
        [PICKED] = {"picked", slc_model_picks(m) ? vector : 0, .kept = false},
        [DPICKED] = {"d picked", slc_model_picks(m) ? vector : 0, .kept = false},
        [OF_TRUNK] = {"normed input", of_trunk ? vector : 0, .kept = false},
        [OF_TRUNK_STATS] = {"stats of the input", of_trunk ? 2 * slc_model_head_chunk(m) * sizeof(float) : 0,
                            .kept = false},
    };
    for (int i = SLC_OWN_TENSORS; i < TENSORS; i++) layer->tensors[i] = table[i];
}

static slc_dense decoder(const slc_layer_run *run, uint64_t rows)
{
    const sluice_model_config *c = &run->m->config;
    bool tied = !run->layer->params[SLC_DECODER_WEIGHT];
    slc_dense d = slc_dense_of(run, SLC_DECODER_WEIGHT, rows, c->channels, c->vocabulary);
    if (tied) d.weight = SLC_TOKEN_TABLE;
    d.by_rows = true;
    d.fp32_out = true;
    return d;
}

static slc_dense transform(const slc_layer_run *run, uint64_t rows)
{
    uint64_t channels = run->m->config.channels;
    return slc_dense_of(run, SLC_TRANSFORM_WEIGHT, rows, channels, channels);
}

/* ---- One chunk ---- */

static sluice_status make_logits(slc_layer_run *run, chunk k)
{
    uint64_t channels = run->m->config.channels;
    slc_dense d = decoder(run, k.rows), t = transform(run, k.rows);
    const slc_view none = SLC_ALL(SLC_NO_TENSOR), input = input_of(run, k);
    sluice_status status = SLUICE_OK;
    if (slc_layer_norms_trunk(run))
        status = slc_apply_norm(run, SLC_TRUNK_NORM_WEIGHT, k.rows, input, SLC_ALL(OF_TRUNK), OF_TRUNK_STATS);
    if (!status && transforms(run)) {
        status = slc_apply_dense(run, &t, transformed_input(run, k), SLC_ALL(TRANSFORMED), none);
        if (!status) status = slc_apply_gelu(run, k.rows * channels, TRANSFORMED, ACTIVATED);
    }
    if (!status)
        status = slc_apply_norm(run, SLC_HEAD_NORM_WEIGHT, k.rows, transforms(run) ? SLC_ALL(ACTIVATED) : input,
                                SLC_ALL(NORMED), STATS);
    const slc_view logits = {.tensor = LOGITS, .stride = slc_logits_stride(run->m, d.outputs)};
    return status ? status : slc_apply_dense(run, &d, SLC_ALL(NORMED), logits, none);
}

static sluice_status make_losses(slc_layer_run *run, chunk k, float scale)
{
    return slc_apply_losses(run, LOGITS, LOSSES, k.first, k.rows, run->m->config.vocabulary, scale);
}

static sluice_status use_up(slc_layer_run *run, chunk k)
{
    const sluice_model *m = run->m;
    uint64_t elements = k.rows * m->config.channels;
    slc_dense d = decoder(run, k.rows), t = transform(run, k.rows);
    /* bf16 gradients lie at the beginning of each row of fp32 logits */
    uint64_t each = sizeof(float) / sluice_dtype_bytes(run->layer->dtype);
    uint64_t stride = slc_logits_stride(m, m->config.vocabulary) * each;
    const slc_view dlogits = {.tensor = LOGITS, .stride = stride}, none = SLC_ALL(SLC_NO_TENSOR);
    const slc_view input = input_of(run, k), gradient = gradient_of(run, k);
    bool more = transforms(run);
    sluice_status status = slc_apply_dense_params(run, &d, SLC_ALL(NORMED), dlogits);
    if (!status) status = slc_apply_dense_input(run, &d, dlogits, SLC_ALL(DNORMED), false, none);
    if (!status)
        status = slc_apply_norm_backward(run, SLC_HEAD_NORM_WEIGHT, k.rows, SLC_ALL(DNORMED),
                                         more ? SLC_ALL(ACTIVATED) : input, STATS, none,
                                         more ? SLC_ALL(DACTIVATED) : gradient);
    if (status || !more) return status;
    status = slc_apply_gelu_backward(run, elements, TRANSFORMED, DACTIVATED, DACTIVATED);
    if (!status) status = slc_apply_dense_params(run, &t, transformed_input(run, k), SLC_ALL(DACTIVATED));
    const slc_view dinput = slc_layer_norms_trunk(run) ? SLC_ALL(DNORMED) : gradient;
    if (!status) status = slc_apply_dense_input(run, &t, SLC_ALL(DACTIVATED), dinput, false, none);
    if (status || !slc_layer_norms_trunk(run)) return status;
    return slc_apply_norm_backward(run, SLC_TRUNK_NORM_WEIGHT, k.rows, dinput, input, OF_TRUNK_STATS, none, gradient);
}

/* Gives a chunk's logits to the caller. BEiT's first rows are not patches, so their logits are not part of the result.
 */
static sluice_status give_logits(slc_layer_run *run, chunk k)
{
    slc_layer_run_next(run);
    sluice_model *m = run->m;
    const float *logits = slc_layer_run_tensor(run, LOGITS);
    if (run->scan || !m->host_logits) return SLUICE_OK;
    uint64_t classes = m->config.vocabulary, skipped = slc_model_sees(&m->config);
    sluice_status status = SLUICE_OK;
    for (uint64_t i = 0, rows; !status && i < k.rows; i += rows) {
        uint64_t row = k.first + i, sequence = row / m->tokens, position = row % m->tokens;
        rows = position < skipped ? skipped - position : slc_least(k.rows - i, m->tokens - position);
        if (position < skipped) continue;
        float *to = m->host_logits + (sequence * (m->tokens - skipped) + position - skipped) * classes;
        status = slc_logits_give(m, logits + i * slc_logits_stride(m, classes), rows, classes, to);
    }
    return status;
}

/* ---- All chunks ---- */

typedef sluice_status chunk_operations(slc_layer_run *run, chunk k);

static sluice_status over_chunks(slc_layer_run *run, uint64_t rows, bool picked, chunk_operations *operations)
{
    uint64_t most = slc_model_head_chunk(run->m);
    uint32_t begin = run->operation;
    sluice_status status = SLUICE_OK;
    for (uint64_t first = 0; !status && first < rows; first += most) {
        run->operation = begin;
        status = operations(run, (chunk){first, slc_least(most, rows - first), picked});
    }
    /* Every chunk reads a part of it, so it must live until the end of the last chunk. */
    slc_layer_run_tensor(run, SLC_INPUT);
    return status;
}

static sluice_status evaluate_chunk(slc_layer_run *run, chunk k)
{
    sluice_status status = make_logits(run, k);
    if (!status) status = give_logits(run, k);
    if (!status && (run->scan || run->m->memory->target_count)) status = make_losses(run, k, 0);
    return status;
}

/* Makes and gives the logits after the pass's last token, which are the only ones that are wanted. */
static sluice_status answer_last(slc_layer_run *run)
{
    sluice_status status = make_logits(run, (chunk){run->m->rows - 1, 1, false});
    slc_layer_run_next(run);
    const float *logits = slc_layer_run_tensor(run, LOGITS);
    if (status || run->scan || !run->m->host_logits) return status;
    return slc_logits_give(run->m, logits, 1, run->m->config.vocabulary, run->m->host_logits);
}

static sluice_status train_chunk(slc_layer_run *run, chunk k)
{
    float scale = run->scan ? 1 : (float)(1.0 / run->m->memory->divisor);
    sluice_status status = k.picked ? slc_apply_pick(run, k.first, k.rows, SLC_INPUT, PICKED) : SLUICE_OK;
    if (!status) status = make_logits(run, k);
    if (!status) status = make_losses(run, k, scale);
    if (!status) status = use_up(run, k);
    return status || !k.picked ? status : slc_apply_pick_backward(run, k.first, k.rows, DPICKED, SLC_GRADIENT);
}

static sluice_status train_picked(slc_layer_run *run, uint64_t picked)
{
    sluice_status status = slc_apply_zero(run, run->m->rows, SLC_GRADIENT);
    return status ? status : over_chunks(run, picked, true, train_chunk);
}

/* Asks for the scratch of every number of rows that may be picked. */
static sluice_status scan_picked(slc_layer_run *run)
{
    const uint64_t step = slc_model_pick_step(run->m);
    const uint64_t most = slc_least(slc_model_head_chunk(run->m), run->m->rows - 1);
    const uint32_t begin = run->operation;
    sluice_status status = SLUICE_OK;
    for (uint64_t rows = step; !status && slc_model_picks(run->m) && rows <= most; rows += step) {
        run->operation = begin;
        status = train_picked(run, rows);
    }
    run->operation = begin;
    return status;
}

sluice_status slc_token_head_forward(slc_layer_run *run)
{
    sluice_status status = slc_apply_take_input(run);
    if (!status && run->m->cache.room) return answer_last(run);
    return status ? status : over_chunks(run, run->m->rows, false, evaluate_chunk);
}

sluice_status slc_token_head_backward(slc_layer_run *run)
{
    const uint64_t picked = run->scan ? 0 : run->m->memory->picked;
    sluice_status status = slc_apply_take_input(run);
    if (!status && run->scan) status = scan_picked(run);
    if (!status) status = picked ? train_picked(run, picked) : over_chunks(run, run->m->rows, false, train_chunk);
    return status ? status : slc_apply_give_gradient(run);
}
