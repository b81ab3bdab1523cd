/* A transformer block. With norms before the branches (GPT-2, ViT, BEiT):
 *   mid = x + s1 projection(attention(norm1 x)); out = mid + s2 mlp(gelu(fc(norm2 mid)))
 * With norms after them (BERT):
 *   y = norm1(mid), mid = x + projection(attention(x)); out = norm2(sum), sum = y + mlp(gelu(fc y))
 * Values that backward needs and forward did not keep are computed again where they are needed. If the plan recomputes
 * the block, all values that it keeps are computed again too; its input is the output of the previous layer that ran.
 * Without dropout, stochastic depth and layer scale, the product at the end of a branch adds the residual itself. In
 * training s1 and s2 hold the factor of the block's branches.
 * lib/model/golden_models_test.c covers this file. */
#include "lib/model/layers/layers.h"

#include "lib/model/cache.h"
#include "lib/model/layers/operations.h"
#include "lib/model/layers/layer_run.h"

enum {
    /* kept tensors */
    QKV = SLC_OWN_TENSORS,
    ATTENTION,
    LOGSUMEXP,
    MID,
    HIDDEN,
    SUM,       /* BERT only */
    SUM_STATS, /* BERT only */
    BRANCH1,   /* kept if there is layer scale, not kept for what is dropped */
    BRANCH2,
    /* tensors inside a slot */
    NORMED_INPUT, /* if the norms come before the branches */
    NORMED,       /* the input of fc */
    STATS,
    ACTIVATED,
    DACTIVATED,
    DNORMED,
    DNORMED_INPUT,
    DATTENTION,
    DQKV,
    DBRANCH,
    TENSORS
};
_Static_assert((int)TENSORS <= (int)SLC_TENSORS_MAX, "a block's tensors fit its table");

/* Places of a block's draws. */
enum { DROPOUT_ATTENTION = 1, DROPOUT_BRANCH1, DROPOUT_BRANCH2, PATH_BRANCH1, PATH_BRANCH2 };
static const slc_branch_draws draws1 = {DROPOUT_BRANCH1, PATH_BRANCH1}, draws2 = {DROPOUT_BRANCH2, PATH_BRANCH2};

static bool norms_after(const slc_layer_run *run)
{
    return slc_family_of(run->m->config.family)->norms_after;
}

/* Returns true if anything comes between a branch's product and the residual. */
static bool has_branches(const sluice_model_config *c)
{
    return c->dropout > 0 || c->layer_scale > 0 || c->drop_path > 0;
}

void slc_block_tensors(sluice_model *m, slc_model_layer *layer)
{
    const sluice_model_config *c = &m->config;
    bool after = slc_family_of(c->family)->norms_after, branches = has_branches(c), scales = c->layer_scale > 0;
    uint64_t vector = slc_layer_bytes(layer, m->rows * c->channels);
    uint64_t hidden = slc_layer_bytes(layer, m->rows * c->hidden), stats = 2 * m->rows * sizeof(float);
    const slc_layer_tensor table[TENSORS] = {
        [QKV] = {"qkv", 3 * vector, .kept = true},
        [ATTENTION] = {"attention", vector, .kept = true},
        [LOGSUMEXP] = {"logsumexp", m->rows * c->heads * sizeof(float), .kept = true},
        [MID] = {"mid", vector, .kept = true},
        [HIDDEN] = {"hidden", hidden, .kept = true},
        [SUM] = {"sum", after ? vector : 0, .kept = true},
        [SUM_STATS] = {"sum stats", after ? stats : 0, .kept = true},
        [BRANCH1] = {"branch 1", branches ? vector : 0, .kept = scales},
        [BRANCH2] = {"branch 2", branches ? vector : 0, .kept = scales},
        [NORMED_INPUT] = {"normed input", vector, .kept = false},
        [NORMED] = {"normed", vector, .kept = false},
        [STATS] = {"stats", stats, .kept = false},
        [ACTIVATED] = {"activated", hidden, .kept = false},
        [DACTIVATED] = {"d activated", hidden, .kept = false},
        [DNORMED] = {"d normed", vector, .kept = false},
        [DNORMED_INPUT] = {"d normed input", vector, .kept = false},
        [DATTENTION] = {"d attention", vector, .kept = false},
        [DQKV] = {"d qkv", 3 * vector, .kept = false},
        [DBRANCH] = {"d branch", branches ? vector : 0, .kept = false},
    };
    for (int i = SLC_OWN_TENSORS; i < TENSORS; i++) layer->tensors[i] = table[i];
}

/* ---- Products ---- */

static slc_dense dense(const slc_layer_run *run, slc_param_place weight)
{
    const sluice_model *m = run->m;
    uint64_t channels = m->config.channels, hidden = m->config.hidden;
    uint64_t inputs = weight == SLC_MLP_WEIGHT ? hidden : channels;
    uint64_t outputs = weight == SLC_FC_WEIGHT ? hidden : weight == SLC_QKV_WEIGHT ? 3 * channels : channels;
    slc_dense d = slc_dense_of(run, weight, m->rows, inputs, outputs);
    d.in_branch = (weight == SLC_PROJECTION_WEIGHT || weight == SLC_MLP_WEIGHT) && !has_branches(&m->config);
    return d;
}

/* Either one product makes q, k and v, or three products make one each. */
enum { QKV_PRODUCTS_MAX = 3 };
static uint32_t qkv_products(const slc_layer_run *run, slc_dense products[QKV_PRODUCTS_MAX])
{
    static const slc_param_place each[] = {SLC_QUERY_WEIGHT, SLC_KEY_WEIGHT, SLC_VALUE_WEIGHT};
    if (run->layer->params[SLC_QKV_WEIGHT]) {
        products[0] = dense(run, SLC_QKV_WEIGHT);
        return 1;
    }
    for (uint32_t i = 0; i < QKV_PRODUCTS_MAX; i++) products[i] = dense(run, each[i]);
    return QKV_PRODUCTS_MAX;
}

static slc_view part_of(const slc_layer_run *run, uint32_t tensor, uint32_t index)
{
    uint64_t channels = run->m->config.channels;
    return (slc_view){.tensor = tensor, .first = index * channels, .stride = 3 * channels};
}

static sluice_status make_qkv(slc_layer_run *run, uint32_t input)
{
    slc_dense products[QKV_PRODUCTS_MAX];
    uint32_t count = qkv_products(run, products);
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; !status && i < count; i++)
        status = slc_apply_dense(run, &products[i], SLC_ALL(input), part_of(run, QKV, i), SLC_ALL(SLC_NO_TENSOR));
    return status;
}

static sluice_status qkv_params(slc_layer_run *run, uint32_t input)
{
    slc_dense products[QKV_PRODUCTS_MAX];
    uint32_t count = qkv_products(run, products);
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; !status && i < count; i++)
        status = slc_apply_dense_params(run, &products[i], SLC_ALL(input), part_of(run, DQKV, i));
    return status;
}

/* dx = (dx if `add`) + the sum over the products. */
static sluice_status qkv_input(slc_layer_run *run, uint32_t dx, bool add)
{
    slc_dense products[QKV_PRODUCTS_MAX];
    uint32_t count = qkv_products(run, products);
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; !status && i < count; i++)
        status = slc_apply_dense_input(run, &products[i], part_of(run, DQKV, i), SLC_ALL(dx), add || i > 0,
                                       SLC_ALL(SLC_NO_TENSOR));
    return status;
}

/* out = residual + branch(x). */
static sluice_status branch(slc_layer_run *run, slc_param_place weight, uint32_t x, uint32_t residual, uint32_t out)
{
    slc_dense d = dense(run, weight);
    bool first = weight == SLC_PROJECTION_WEIGHT;
    uint32_t kept = first ? BRANCH1 : BRANCH2;
    if (!has_branches(&run->m->config)) return slc_apply_dense(run, &d, SLC_ALL(x), SLC_ALL(out), SLC_ALL(residual));
    slc_param_place scale = first ? SLC_SCALE1 : SLC_SCALE2;
    if (!run->layer->params[scale]) scale = SLC_NO_PARAM;
    sluice_status status = slc_apply_dense(run, &d, SLC_ALL(x), SLC_ALL(kept), SLC_ALL(SLC_NO_TENSOR));
    if (!status) status = slc_apply_branch(run, first ? draws1 : draws2, scale, kept, residual, out);
    return status;
}

/* Computes the gradient of the branch's product from the gradient of the residual stream; *out is the tensor that holds
 * it. */
static sluice_status branch_gradient(slc_layer_run *run, slc_param_place weight, uint32_t *out)
{
    bool first = weight == SLC_PROJECTION_WEIGHT;
    *out = SLC_GRADIENT;
    if (!has_branches(&run->m->config)) return SLUICE_OK;
    *out = DBRANCH;
    slc_param_place scale = first ? SLC_SCALE1 : SLC_SCALE2;
    bool scales = run->layer->params[scale] != NULL;
    uint32_t kept = !scales ? SLC_NO_TENSOR : first ? BRANCH1 : BRANCH2;
    return slc_apply_branch_backward(run, first ? draws1 : draws2, scales ? scale : SLC_NO_PARAM, SLC_GRADIENT, kept,
                                     DBRANCH);
}

/* ---- Attention ---- */

/* Returns the shape of a block's attention, in which a row has q, k and v next to each other. `dropout` must live as
 * long as the shape. While lifetimes are recorded, the shape has every option that a later one could have, because the
 * size of the workspace depends on them. */
static slc_attention_shape attention_shape(slc_layer_run *run, slc_dropout *dropout)
{
    static const uint8_t something;
    bool relative = run->layer->params[SLC_RELATIVE_TABLE] != NULL;
    const sluice_model *m = run->m;
    const sluice_model_config *c = &m->config;
    *dropout = slc_layer_run_dropout(run, DROPOUT_ATTENTION, (uint64_t)c->heads * m->tokens * m->tokens);
    uint32_t side = c->patch_size ? c->image_size / c->patch_size : 0;
    return (slc_attention_shape){
        .dtype = run->layer->dtype,
        .batch = m->sequences,
        .tokens = m->tokens,
        .heads = c->heads,
        .head_size = c->channels / c->heads,
        .row_stride = 3ull * c->channels,
        .causal = slc_family_of(c->family)->causal,
        .key_mask = run->scan   ? (m->mask ? &something : NULL)
                    : m->masked ? sluice_activation_data(m->mask)
                                : NULL,
        .relative = run->scan && relative ? &something : slc_layer_run_value(run, SLC_RELATIVE_TABLE),
        .window_h = side,
        .window_w = side,
        .dropout = slc_layer_run_drops(run) ? dropout : NULL,
    };
}

typedef struct {
    unsigned char *q, *k, *v;
} three;

static three three_of(slc_layer_run *run, uint32_t tensor)
{
    unsigned char *base = slc_layer_run_tensor(run, tensor);
    uint64_t part = slc_layer_bytes(run->layer, run->m->config.channels);
    return base ? (three){base, base + part, base + 2 * part} : (three){0};
}

static sluice_status attend(slc_layer_run *run)
{
    slc_layer_run_next(run);
    slc_dropout dropout;
    const slc_attention_shape shape = attention_shape(run, &dropout);
    three in = three_of(run, QKV);
    void *out = slc_layer_run_tensor(run, ATTENTION), *logsumexp = slc_layer_run_tensor(run, LOGSUMEXP);
    void *scratch = slc_layer_run_scratch(run, slc_attention_workspace_bytes(run->m->stream, &shape));
    if (run->scan) return SLUICE_OK;
    const slc_attention_forward_args args = {
        .shape = shape, .q = in.q, .k = in.k, .v = in.v, .out = out, .logsumexp = logsumexp, .workspace = scratch};
    return slc_attention_forward(run->m->stream, &args);
}

/* Computes attention for the queries of the new tokens alone; their keys and values go into the cache. */
static sluice_status attend_with_cache(slc_layer_run *run)
{
    slc_layer_run_next(run);
    slc_dropout dropout;
    slc_attention_shape shape = attention_shape(run, &dropout);
    shape.key_mask = NULL;
    shape.dropout = NULL;
    three in = three_of(run, QKV);
    void *out = slc_layer_run_tensor(run, ATTENTION);
    void *scratch = slc_layer_run_scratch(run, slc_attention_extend_workspace_bytes(run->m->stream, &shape));
    if (run->scan) return SLUICE_OK;
    const slc_attention_forward_args args = {.shape = shape,
                                             .q = in.q,
                                             .k = in.k,
                                             .v = in.v,
                                             .out = out,
                                             .cache = slc_model_cache_of(run->m, run->number - 1),
                                             .workspace = scratch};
    return slc_attention_extend(run->m->stream, &args);
}

static sluice_status attend_backward(slc_layer_run *run)
{
    slc_layer_run_next(run);
    slc_dropout dropout;
    const slc_attention_shape shape = attention_shape(run, &dropout);
    three in = three_of(run, QKV), gradient = three_of(run, DQKV);
    const void *out = slc_layer_run_tensor(run, ATTENTION), *dout = slc_layer_run_tensor(run, DATTENTION);
    const float *logsumexp = slc_layer_run_tensor(run, LOGSUMEXP);
    void *scratch = slc_layer_run_scratch(run, slc_attention_workspace_bytes(run->m->stream, &shape));
    if (run->scan) return SLUICE_OK;
    bool fresh = false, relative = run->layer->params[SLC_RELATIVE_TABLE] != NULL;
    void *dtable = slc_layer_run_gradient(run, SLC_RELATIVE_TABLE, &fresh);
    if (relative && (!dtable || !shape.relative)) return SLUICE_ERR_ORDER;
    const slc_attention_backward_args args = {
        .shape = shape,
        .q = in.q,
        .k = in.k,
        .v = in.v,
        .out = out,
        .dout = dout,
        .logsumexp = logsumexp,
        .dq = gradient.q,
        .dk = gradient.k,
        .dv = gradient.v,
        .gradient = relative ? slc_layer_run_gradient_dtype(run, SLC_RELATIVE_TABLE) : SLUICE_FP32,
        .drelative = dtable,
        .fresh = fresh,
        .workspace = scratch};
    return slc_attention_backward(run->m->stream, &args);
}

/* ---- Forward ---- */

static uint64_t hidden_elements(const slc_layer_run *run)
{
    return run->m->rows * run->m->config.hidden;
}

/* Computes all that backward reads, except BERT's `sum`. */
static sluice_status to_hidden(slc_layer_run *run)
{
    bool after = norms_after(run);
    uint64_t rows = run->m->rows;
    slc_dense fc = dense(run, SLC_FC_WEIGHT);
    sluice_status status = slc_apply_take_input(run);
    if (!status && !after)
        status = slc_apply_norm(run, SLC_NORM1_WEIGHT, rows, SLC_ALL(SLC_INPUT), SLC_ALL(NORMED_INPUT), STATS);
    if (!status) status = make_qkv(run, after ? SLC_INPUT : NORMED_INPUT);
    if (!status) status = run->m->cache.room ? attend_with_cache(run) : attend(run);
    if (!status) status = branch(run, SLC_PROJECTION_WEIGHT, ATTENTION, SLC_INPUT, MID);
    if (!status)
        status = slc_apply_norm(run, after ? SLC_NORM1_WEIGHT : SLC_NORM2_WEIGHT, rows, SLC_ALL(MID), SLC_ALL(NORMED),
                                STATS);
    if (!status) status = slc_apply_dense(run, &fc, SLC_ALL(NORMED), SLC_ALL(HIDDEN), SLC_ALL(SLC_NO_TENSOR));
    return status;
}

static sluice_status from_hidden(slc_layer_run *run, uint32_t out)
{
    sluice_status status = slc_apply_gelu(run, hidden_elements(run), HIDDEN, ACTIVATED);
    if (status) return status;
    return branch(run, SLC_MLP_WEIGHT, ACTIVATED, norms_after(run) ? NORMED : MID, out);
}

static sluice_status last_norm(slc_layer_run *run, uint32_t out)
{
    return slc_apply_norm(run, SLC_NORM2_WEIGHT, run->m->rows, SLC_ALL(SUM), SLC_ALL(out), SUM_STATS);
}

sluice_status slc_block_forward(slc_layer_run *run)
{
    bool after = norms_after(run);
    sluice_status status = to_hidden(run);
    if (!status) status = from_hidden(run, after ? SUM : SLC_OUTPUT);
    if (!status && after) status = last_norm(run, SLC_OUTPUT);
    return status || !run->m->observation.wanted ? status : slc_apply_observe(run);
}

/* The block's output is not computed again: only the next layer reads it, and other buffers may lie in its memory by
 * now. The MLP's product is needed only if a norm or a scale follows it. */
sluice_status slc_block_recompute(slc_layer_run *run)
{
    bool after = norms_after(run), scales = run->layer->params[SLC_SCALE2] != NULL;
    sluice_status status = to_hidden(run);
    if (status || (!after && !scales)) return status;
    if (after) {
        status = from_hidden(run, SUM);
        return status ? status : last_norm(run, NORMED);
    }
    slc_dense mlp = dense(run, SLC_MLP_WEIGHT);
    status = slc_apply_gelu(run, hidden_elements(run), HIDDEN, ACTIVATED);
    return status ? status : slc_apply_dense(run, &mlp, SLC_ALL(ACTIVATED), SLC_ALL(BRANCH2), SLC_ALL(SLC_NO_TENSOR));
}

/* ---- Backward ---- */

/* Computes the gradient of fc's input, in DNORMED, from that of the MLP's product (+ `residual`; SLC_NO_TENSOR:
 * none). */
static sluice_status mlp_backward(slc_layer_run *run, uint32_t residual)
{
    bool after = norms_after(run);
    uint64_t hidden = hidden_elements(run);
    slc_dense fc = dense(run, SLC_FC_WEIGHT), mlp = dense(run, SLC_MLP_WEIGHT);
    uint32_t dout = SLC_NO_TENSOR;
    sluice_status status = branch_gradient(run, SLC_MLP_WEIGHT, &dout);
    if (!status) status = slc_apply_gelu(run, hidden, HIDDEN, ACTIVATED);
    if (!status) status = slc_apply_dense_params(run, &mlp, SLC_ALL(ACTIVATED), SLC_ALL(dout));
    if (!status)
        status = slc_apply_dense_input(run, &mlp, SLC_ALL(dout), SLC_ALL(DACTIVATED), false, SLC_ALL(SLC_NO_TENSOR));
    if (!status) status = slc_apply_gelu_backward(run, hidden, HIDDEN, DACTIVATED, DACTIVATED);
    if (!status)
        status = slc_apply_norm(run, after ? SLC_NORM1_WEIGHT : SLC_NORM2_WEIGHT, run->m->rows, SLC_ALL(MID),
                                SLC_ALL(NORMED), STATS);
    if (!status) status = slc_apply_dense_params(run, &fc, SLC_ALL(NORMED), SLC_ALL(DACTIVATED));
    if (!status)
        status = slc_apply_dense_input(run, &fc, SLC_ALL(DACTIVATED), SLC_ALL(DNORMED), false, SLC_ALL(residual));
    return status;
}

/* Computes the gradient of q, k and v from that of the residual stream at `mid`. */
static sluice_status attention_backward(slc_layer_run *run)
{
    slc_dense projection = dense(run, SLC_PROJECTION_WEIGHT);
    uint32_t dout = SLC_NO_TENSOR;
    sluice_status status = branch_gradient(run, SLC_PROJECTION_WEIGHT, &dout);
    if (!status) status = slc_apply_dense_params(run, &projection, SLC_ALL(ATTENTION), SLC_ALL(dout));
    if (!status)
        status =
            slc_apply_dense_input(run, &projection, SLC_ALL(dout), SLC_ALL(DATTENTION), false, SLC_ALL(SLC_NO_TENSOR));
    if (!status) status = attend_backward(run);
    return status;
}

static sluice_status backward_norms_before(slc_layer_run *run)
{
    uint64_t rows = run->m->rows;
    const slc_view gradient = SLC_ALL(SLC_GRADIENT);
    sluice_status status = mlp_backward(run, SLC_NO_TENSOR);
    if (!status)
        status = slc_apply_norm_backward(run, SLC_NORM2_WEIGHT, rows, SLC_ALL(DNORMED), SLC_ALL(MID), STATS, gradient,
                                         gradient);
    if (!status) status = attention_backward(run);
    if (!status) status = slc_apply_norm(run, SLC_NORM1_WEIGHT, rows, SLC_ALL(SLC_INPUT), SLC_ALL(NORMED_INPUT), STATS);
    if (!status) status = qkv_params(run, NORMED_INPUT);
    if (!status) status = qkv_input(run, DNORMED_INPUT, false);
    if (!status)
        status = slc_apply_norm_backward(run, SLC_NORM1_WEIGHT, rows, SLC_ALL(DNORMED_INPUT), SLC_ALL(SLC_INPUT), STATS,
                                         gradient, gradient);
    return status;
}

static sluice_status backward_norms_after(slc_layer_run *run)
{
    uint64_t rows = run->m->rows;
    const slc_view gradient = SLC_ALL(SLC_GRADIENT), none = SLC_ALL(SLC_NO_TENSOR);
    sluice_status status =
        slc_apply_norm_backward(run, SLC_NORM2_WEIGHT, rows, gradient, SLC_ALL(SUM), SUM_STATS, none, gradient);
    if (!status) status = mlp_backward(run, SLC_GRADIENT);
    if (!status)
        status =
            slc_apply_norm_backward(run, SLC_NORM1_WEIGHT, rows, SLC_ALL(DNORMED), SLC_ALL(MID), STATS, none, gradient);
    if (!status) status = attention_backward(run);
    if (!status) status = qkv_params(run, SLC_INPUT);
    if (!status) status = qkv_input(run, SLC_GRADIENT, true);
    return status;
}

sluice_status slc_block_backward(slc_layer_run *run)
{
    sluice_status status = slc_apply_take_input(run);
    if (!status) status = norms_after(run) ? backward_norms_after(run) : backward_norms_before(run);
    return status ? status : slc_apply_give_gradient(run);
}
