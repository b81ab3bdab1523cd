/* The first layer. Text: tables of tokens, positions and types, and in BERT a norm after them. Images: unfolded patches
 * times a matrix, a first row of its own, positions. If the head uses the token table too, it belongs to this layer.
 * The layer keeps for each token where its row lies in the table that the runtime gives. That may be the whole table:
 * then the head's gradient is in it first, and this layer's backward adds the rows of its tokens. Or it is a table of
 * these rows only.
 * lib/model/golden_models_test.c covers this file. */
#include "lib/model/layers/layers.h"

#include "lib/kernels/embedding/embedding.h"
#include "lib/kernels/patches/patches.h"
#include "lib/model/layers/operations.h"
#include "lib/model/layers/layer_run.h"

enum {
    /* kept tensors */
    PLACES = SLC_OWN_TENSORS, /* where the tokens' rows lie */
    TYPES,
    PLACE_ORDER, /* GPU only: places in the order of their rows, and of their types */
    TYPE_ORDER,
    COLUMNS, /* unfolded patches */
    MASKED,
    SUM, /* BERT only: the input of the norm */
    SUM_STATS,
    /* tensors inside a slot */
    PIXELS,    /* GPU only: its kernels read no memory of the host */
    PROJECTED, /* patches times the matrix */
    DPROJECTED,
    DSUM,
    TENSORS
};
_Static_assert((int)TENSORS <= (int)SLC_TENSORS_MAX, "the embedding's tensors fit its table");

enum { DROPOUT_OUTPUT };

static uint64_t patch_elements(const sluice_model_config *c)
{
    return (uint64_t)c->image_channels * c->patch_size * c->patch_size;
}

void slc_embed_tensors(sluice_model *m, slc_model_layer *layer)
{
    const sluice_model_config *c = &m->config;
    bool sees = slc_model_sees(c), norm = slc_family_of(c->family)->norm_of_embeddings;
    uint64_t patches = (uint64_t)m->sequences * slc_model_patches(c);
    uint64_t vector = slc_layer_bytes(layer, m->rows * c->channels);
    uint64_t projected = slc_layer_bytes(layer, patches * c->channels);
    const slc_layer_tensor table[TENSORS] = {
        [PLACES] = {"tokens", sees ? 0 : m->rows * sizeof(int32_t), .kept = true},
        [TYPES] = {"types", c->types ? m->rows * sizeof(int32_t) : 0, .kept = true},
        [PLACE_ORDER] = {"order of tokens", m->apart && !sees ? m->rows * sizeof(uint32_t) : 0, .kept = true},
        [TYPE_ORDER] = {"order of types", m->apart && c->types ? m->rows * sizeof(uint32_t) : 0, .kept = true},
        [COLUMNS] = {"patches", sees ? slc_layer_bytes(layer, patches * patch_elements(c)) : 0, .kept = true},
        [MASKED] = {"masked patches", c->mask_token ? patches : 0, .kept = true},
        [SUM] = {"sum", norm ? vector : 0, .kept = true},
        [SUM_STATS] = {"sum stats", norm ? 2 * m->rows * sizeof(float) : 0, .kept = true},
        [PIXELS] = {"pixels", m->apart && sees ? slc_model_pixels(m) * sizeof(float) : 0, .kept = false},
        [PROJECTED] = {"projected", sees ? projected : 0, .kept = false},
        [DPROJECTED] = {"d projected", sees ? projected : 0, .kept = false},
        [DSUM] = {"d sum", norm ? vector : 0, .kept = false},
    };
    for (int i = SLC_OWN_TENSORS; i < TENSORS; i++) layer->tensors[i] = table[i];
}

static sluice_status drop(slc_layer_run *run, uint32_t tensor)
{
    const sluice_model *m = run->m;
    if (m->config.dropout == 0) return SLUICE_OK;
    return slc_apply_dropout(run, DROPOUT_OUTPUT, tensor, (uint64_t)m->tokens * m->config.channels);
}

/* NULL if the layer has no such tensor. */
static void *tensor_if_any(slc_layer_run *run, uint32_t tensor)
{
    return slc_layer_run_tensor(run, run->layer->tensors[tensor].bytes ? tensor : SLC_NO_TENSOR);
}

/* ---- Text ---- */

/* Keeps the micro-batch for backward and for the blocks. */
static sluice_status take_text(slc_layer_run *run)
{
    slc_layer_run_next(run);
    sluice_model *m = run->m;
    int32_t *places = slc_layer_run_tensor(run, PLACES), *types = tensor_if_any(run, TYPES);
    uint32_t *place_order = tensor_if_any(run, PLACE_ORDER), *type_order = tensor_if_any(run, TYPE_ORDER);
    if (run->scan) return SLUICE_OK;
    const uint64_t bytes = m->rows * sizeof *places;
    sluice_status status = slc_copy(m->stream, places, m->in.places, bytes);
    if (!status && types && m->in.types)
        status = slc_copy(m->stream, types, m->in.types, bytes);
    else if (!status && types)
        status = slc_fill_zero(m->stream, types, bytes);
    if (!status && place_order) status = slc_copy(m->stream, place_order, m->in.place_order, bytes);
    if (!status && type_order) status = slc_copy(m->stream, type_order, m->in.type_order, bytes);
    if (!status && m->masked)
        status = slc_copy(m->stream, sluice_activation_data(m->mask), m->in.attention_mask, m->rows);
    return status;
}

static uint32_t first_position(const slc_layer_run *run)
{
    return slc_model_position_rows(&run->m->config) - run->m->config.context;
}

static sluice_status look_up(slc_layer_run *run, uint32_t out)
{
    slc_layer_run_next(run);
    const sluice_model *m = run->m;
    bool typed = run->layer->params[SLC_TYPE_TABLE] != NULL;
    const int32_t *places = slc_layer_run_tensor(run, PLACES),
                  *types = slc_layer_run_tensor(run, typed ? TYPES : SLC_NO_TENSOR);
    void *to = slc_layer_run_tensor(run, out);
    if (run->scan) return SLUICE_OK;
    slc_embedding_tables tables = {.token = slc_layer_run_value(run, SLC_TOKEN_TABLE),
                                   .position = slc_layer_run_value(run, SLC_POSITION_TABLE),
                                   .type = slc_layer_run_value(run, SLC_TYPE_TABLE)};
    if (tables.position) /* the first token of this pass has the position after the cache's */
        tables.position =
            (const unsigned char *)tables.position +
            slc_layer_bytes(run->layer, (uint64_t)(first_position(run) + m->cache.tokens) * m->config.channels);
    if (!tables.token || !tables.position || (typed && !tables.type)) return SLUICE_ERR_ORDER;
    const slc_embedding_forward_args args = {.dtype = run->layer->dtype,
                                             .batch = m->sequences,
                                             .length = m->tokens,
                                             .channels = m->config.channels,
                                             .tokens = places,
                                             .types = types,
                                             .tables = tables,
                                             .out = to};
    return slc_embedding_forward(m->stream, &args);
}

/* Adds the gradients of the rows that were looked up. The kernel adds, so a fresh gradient must be zeroed first, which
 * sluice_param_gradient does. */
static sluice_status look_up_backward(slc_layer_run *run, uint32_t dout)
{
    slc_layer_run_next(run);
    const sluice_model *m = run->m;
    sluice_param *const *params = run->layer->params;
    bool typed = params[SLC_TYPE_TABLE] != NULL;
    const int32_t *places = slc_layer_run_tensor(run, PLACES),
                  *types = slc_layer_run_tensor(run, typed ? TYPES : SLC_NO_TENSOR);
    const uint32_t *place_order = tensor_if_any(run, PLACE_ORDER), *type_order = tensor_if_any(run, TYPE_ORDER);
    const void *from = slc_layer_run_tensor(run, dout);
    void *scratch = slc_layer_run_scratch(
        run, slc_embedding_backward_workspace_bytes(m->stream, m->sequences, m->tokens, m->config.channels));
    if (run->scan) return SLUICE_OK;
    const sluice_dtype dtype = slc_layer_run_gradient_dtype(run, SLC_TOKEN_TABLE);
    unsigned char *position = sluice_param_gradient(params[SLC_POSITION_TABLE]);
    if (position) position += (uint64_t)first_position(run) * m->config.channels * sluice_dtype_bytes(dtype);
    const slc_embedding_gradients gradients = {.token = sluice_param_gradient(params[SLC_TOKEN_TABLE]),
                                               .position = position,
                                               .type = typed ? sluice_param_gradient(params[SLC_TYPE_TABLE]) : NULL,
                                               .padded =
                                                   slc_family_of(m->config.family)->padding && m->padding_place >= 0,
                                               .padding = m->padding_place,
                                               .token_order = place_order,
                                               .type_order = type_order};
    if (!gradients.token || !gradients.position || (typed && !gradients.type)) return SLUICE_ERR_ORDER;
    const slc_embedding_backward_args args = {.dtype = run->layer->dtype,
                                              .gradient = dtype,
                                              .batch = m->sequences,
                                              .length = m->tokens,
                                              .channels = m->config.channels,
                                              .tokens = places,
                                              .types = types,
                                              .dout = from,
                                              .gradients = gradients,
                                              .workspace = scratch};
    return slc_embedding_backward(m->stream, &args);
}

static sluice_status text_forward(slc_layer_run *run)
{
    bool norm = run->layer->params[SLC_EMBED_NORM_WEIGHT] != NULL;
    sluice_status status = take_text(run);
    if (!status) status = look_up(run, norm ? SUM : SLC_OUTPUT);
    if (!status && norm)
        status = slc_apply_norm(run, SLC_EMBED_NORM_WEIGHT, run->m->rows, SLC_ALL(SUM), SLC_ALL(SLC_OUTPUT), SUM_STATS);
    return status ? status : drop(run, SLC_OUTPUT);
}

static sluice_status text_backward(slc_layer_run *run)
{
    bool norm = run->layer->params[SLC_EMBED_NORM_WEIGHT] != NULL;
    sluice_status status = drop(run, SLC_GRADIENT);
    if (!status && norm)
        status = slc_apply_norm_backward(run, SLC_EMBED_NORM_WEIGHT, run->m->rows, SLC_ALL(SLC_GRADIENT), SLC_ALL(SUM),
                                         SUM_STATS, SLC_ALL(SLC_NO_TENSOR), SLC_ALL(DSUM));
    return status ? status : look_up_backward(run, norm ? DSUM : SLC_GRADIENT);
}

/* ---- Images ---- */

static slc_dense projection(const slc_layer_run *run)
{
    const sluice_model_config *c = &run->m->config;
    return slc_dense_of(run, SLC_PATCH_WEIGHT, (uint64_t)run->m->sequences * slc_model_patches(c), patch_elements(c),
                        c->channels);
}

static sluice_status take_images(slc_layer_run *run)
{
    slc_layer_run_next(run);
    sluice_model *m = run->m;
    const sluice_model_config *c = &m->config;
    void *columns = slc_layer_run_tensor(run, COLUMNS), *masked = tensor_if_any(run, MASKED);
    float *placed = tensor_if_any(run, PIXELS);
    if (run->scan) return SLUICE_OK;
    const slc_patch_shape shape = {.batch = m->sequences,
                                   .image_channels = c->image_channels,
                                   .height = c->image_size,
                                   .width = c->image_size,
                                   .patch = c->patch_size};
    sluice_status status = SLUICE_OK;
    if (placed) status = slc_copy(m->stream, placed, m->in.pixels, slc_model_pixels(m) * sizeof *placed);
    if (!status)
        status = slc_patches_unfold(m->stream, &(slc_patches_unfold_args){.dtype = run->layer->dtype,
                                                                          .shape = shape,
                                                                          .pixels = placed ? placed : m->in.pixels,
                                                                          .columns = columns});
    uint64_t patches = (uint64_t)m->sequences * slc_model_patches(c);
    if (!status && masked && m->in.masked_patches)
        status = slc_copy(m->stream, masked, m->in.masked_patches, patches);
    else if (!status && masked)
        status = slc_fill_zero(m->stream, masked, patches);
    return status;
}

static sluice_status assemble(slc_layer_run *run)
{
    slc_layer_run_next(run);
    const sluice_model *m = run->m;
    bool masks = run->layer->params[SLC_MASK_TOKEN] != NULL;
    const slc_patch_embedding_forward_args args = {.dtype = run->layer->dtype,
                                                   .batch = m->sequences,
                                                   .patches = m->tokens - 1,
                                                   .channels = m->config.channels,
                                                   .x = slc_layer_run_tensor(run, PROJECTED),
                                                   .cls = slc_layer_run_value(run, SLC_CLS_TOKEN),
                                                   .masked = slc_layer_run_tensor(run, masks ? MASKED : SLC_NO_TENSOR),
                                                   .mask_token = slc_layer_run_value(run, SLC_MASK_TOKEN),
                                                   .position = slc_layer_run_value(run, SLC_POSITION_TABLE),
                                                   .out = slc_layer_run_tensor(run, SLC_OUTPUT)};
    if (run->scan) return SLUICE_OK;
    if (!args.cls || (masks && !args.mask_token)) return SLUICE_ERR_ORDER;
    return slc_patch_embedding_forward(m->stream, &args);
}

static sluice_status assemble_backward(slc_layer_run *run)
{
    slc_layer_run_next(run);
    const sluice_model *m = run->m;
    bool masks = run->layer->params[SLC_MASK_TOKEN] != NULL, fresh = false, also = false;
    void *dcls = slc_layer_run_gradient(run, SLC_CLS_TOKEN, &fresh);
    void *dmask = slc_layer_run_gradient(run, SLC_MASK_TOKEN, &also);
    void *dposition = slc_layer_run_gradient(run, SLC_POSITION_TABLE, &also);
    const slc_patch_embedding_backward_args args = {.dtype = run->layer->dtype,
                                                    .gradient = slc_layer_run_gradient_dtype(run, SLC_CLS_TOKEN),
                                                    .batch = m->sequences,
                                                    .patches = m->tokens - 1,
                                                    .channels = m->config.channels,
                                                    .dout = slc_layer_run_tensor(run, SLC_GRADIENT),
                                                    .masked = slc_layer_run_tensor(run, masks ? MASKED : SLC_NO_TENSOR),
                                                    .dx = slc_layer_run_tensor(run, DPROJECTED),
                                                    .dcls = dcls,
                                                    .dmask_token = dmask,
                                                    .dposition = dposition,
                                                    .fresh = fresh};
    if (run->scan) return SLUICE_OK;
    return dcls && (!masks || dmask) ? slc_patch_embedding_backward(m->stream, &args) : SLUICE_ERR_ORDER;
}

static sluice_status images_forward(slc_layer_run *run)
{
    slc_dense d = projection(run);
    sluice_status status = take_images(run);
    if (!status) status = slc_apply_dense(run, &d, SLC_ALL(COLUMNS), SLC_ALL(PROJECTED), SLC_ALL(SLC_NO_TENSOR));
    if (!status) status = assemble(run);
    return status ? status : drop(run, SLC_OUTPUT);
}

static sluice_status images_backward(slc_layer_run *run)
{
    slc_dense d = projection(run);
    sluice_status status = drop(run, SLC_GRADIENT);
    if (!status) status = assemble_backward(run);
    return status ? status : slc_apply_dense_params(run, &d, SLC_ALL(COLUMNS), SLC_ALL(DPROJECTED));
}

sluice_status slc_embed_forward(slc_layer_run *run)
{
    return slc_model_sees(&run->m->config) ? images_forward(run) : text_forward(run);
}

sluice_status slc_embed_backward(slc_layer_run *run)
{
    return slc_model_sees(&run->m->config) ? images_backward(run) : text_backward(run);
}
