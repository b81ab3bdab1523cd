/* The inside of the bundled models: the types and functions that their files share.
 *
 * A layer computes on tensors that it names in a table. Kept tensors live from the layer's forward to its backward (or
 * belong to another layer), the others within one slot. The layer's forward and backward are lists of operations
 * (operations.h). Before commit each list runs once without computing: every operation only says which tensors it
 * touches and how much scratch it needs. So the lifetimes that the runtime packs are those of the code that runs.
 *
 * Values kept from forward to backward for each token and channel: the residual stream before and inside each block, q
 * k v, the attention's output, the first half of the MLP before its GELU. These are 10 values, where storing every
 * input of every product takes 16; one more if a norm follows its branch (BERT), two more with layer scale (BEiT). The
 * outputs of norms and GELU are computed again in backward. The gradient of the residual stream is one buffer, updated
 * in place from the head down to the embedding. Logits exist only for SLC_HEAD_CHUNK rows at a time. */
#ifndef SLC_MODEL_MODEL_H
#define SLC_MODEL_MODEL_H

#include "lib/kernels/dropout/dropout.h"
#include "lib/kernels/kernel.h"
#include "lib/model/params.h"

#include <sluice/model.h>

enum { SLC_HEAD_CHUNK = 256, SLC_TENSORS_MAX = 28, SLC_OPERATIONS_MAX = 40 };

typedef struct {
    const char *name;
    uint64_t bytes; /* 0: the layer has no such tensor */
    bool kept;
    sluice_activation *activation; /* kept tensors: the layer's own activation or another layer's */
    /* Tensors that are not kept: the first and the last operation that touches it, by direction; first > last: none
     * does. */
    uint32_t first[2], last[2];
    sluice_workspace *space[2];
} slc_layer_tensor;

/* Tensors that every layer has; the layer's own follow. */
enum {
    SLC_NO_TENSOR,
    SLC_SOURCE,         /* the output of the previous layer, in that layer's type */
    SLC_INPUT,          /* the same in this layer's type: the same tensor if the types are equal */
    SLC_OUTPUT,         /* every layer but the head has it */
    SLC_GRADIENT,       /* gradient of the residual stream, in this layer's type */
    SLC_GRADIENT_BELOW, /* the same in the previous layer's type */
    SLC_OWN_TENSORS
};

typedef struct {
    sluice_layer *layer;
    char name[24];
    slc_layer_kind kind;
    sluice_dtype dtype, below; /* this layer's type; the previous layer's */
    sluice_param *params[SLC_PARAM_PLACES];
    slc_layer_tensor tensors[SLC_TENSORS_MAX];
    struct {
        uint64_t bytes;
        sluice_workspace *space;
    } scratch[2][SLC_OPERATIONS_MAX]; /* by direction and operation */
} slc_model_layer;

/* One run of a layer's list of operations. */
typedef struct {
    sluice_model *m;
    slc_model_layer *layer;
    uint32_t number; /* index of the layer */
    sluice_direction direction;
    bool scan; /* nothing is computed; the lists only record lifetimes */
    bool training;
    uint32_t operation; /* index of the operation that runs */
} slc_layer_run;

struct sluice_model {
    sluice_runtime *rt;
    sluice_model_config config;
    uint32_t batch, length;
    uint32_t tokens;        /* rows in a sequence */
    uint64_t rows, targets; /* batch * tokens; targets of a micro-batch */
    uint64_t dropout_seed;
    slc_stream *stream; /* belongs to the runtime */

    uint32_t layer_count; /* embed, blocks, head */
    slc_model_layer *layers;
    sluice_activation *gradient[2]; /* gradient of the residual stream, by type; NULL: no layer has this type */
    sluice_activation *mask;        /* padding mask; NULL: images */
    const sluice_batch *given;      /* the current micro-batch while a call runs; the caller owns it */
    bool masked;                    /* the micro-batch has an attention mask */

    uint64_t step, micro_batch; /* step and micro-batch of the last forward that began */
    uint64_t target_count;      /* targets of this micro-batch that are not -1 */
    sluice_param *look_up;      /* the token table if it is tied, else NULL */
    int32_t *host_places;  /* used if look_up is set: where each token's row lies in the table that the runtime gives */
    int32_t padding_place; /* place of the padding token's row; -1: the micro-batch has none */
    float *host_losses;    /* one for each target row */
    int32_t *host_targets; /* one for each target row */
    float *host_logits;    /* array of sluice_model_evaluate's caller that wants the logits, or NULL */

    sluice_status (*check)(void *context);
    void *check_context;
};

/* ---- slot.c ---- */

/* Fills the entries of the table that all layers have. */
void slc_layer_common_tensors(sluice_model *m, slc_model_layer *layer);
static inline uint64_t slc_layer_bytes(const slc_model_layer *layer, uint64_t elements)
{
    return elements * sluice_dtype_bytes(layer->dtype);
}
/* Adds kept tensors to the runtime, runs the lists without computing and adds workspaces. `recompute` may be NULL. */
typedef sluice_status slc_operations(slc_layer_run *slot);
sluice_status slc_layer_register_tensors(sluice_model *m, uint32_t number, slc_operations *forward,
                                         slc_operations *recompute, slc_operations *backward);

slc_layer_run slc_layer_run_of(sluice_model *m, uint32_t number, sluice_direction direction);
/* Begins the next operation. */
void slc_layer_run_next(slc_layer_run *slot);
/* Returns the tensor's address, valid while the operation runs; NULL for SLC_NO_TENSOR, and while lifetimes are
 * recorded. */
void *slc_layer_run_tensor(slc_layer_run *slot, uint32_t tensor);
/* Returns the scratch of this operation, or records that it needs `bytes`. */
void *slc_layer_run_scratch(slc_layer_run *slot, uint64_t bytes);
/* The parameter's value, its gradient and the gradient's type. The pointers are NULL if the layer has no such
 * parameter, and while lifetimes are recorded. *fresh: the gradient is to be stored, not added to. Errors (a call in a
 * wrong order) show as failures of the runtime. */
const void *slc_layer_run_value(slc_layer_run *slot, slc_param_place place);
void *slc_layer_run_gradient(slc_layer_run *slot, slc_param_place place, bool *fresh);
sluice_dtype slc_layer_run_gradient_dtype(const slc_layer_run *slot, slc_param_place place);
/* Returns this micro-batch's dropout at a place of the layer whose tensor has `per_sequence` elements for each
 * sequence. */
slc_dropout slc_layer_run_dropout(const slc_layer_run *slot, uint32_t place, uint64_t per_sequence);
bool slc_layer_run_drops(const slc_layer_run *slot);

/* ---- The layers: tables of tensors, lists of operations ---- */

void slc_embed_tensors(sluice_model *m, slc_model_layer *layer);
sluice_status slc_embed_forward(slc_layer_run *slot);
sluice_status slc_embed_backward(slc_layer_run *slot);

void slc_block_tensors(sluice_model *m, slc_model_layer *layer);
sluice_status slc_block_forward(slc_layer_run *slot);
sluice_status slc_block_recompute(slc_layer_run *slot); /* the beginning of forward: computes all that backward reads */
sluice_status slc_block_backward(slc_layer_run *slot);

/* A head's forward is for evaluation only: in training, its backward computes loss and gradient together. */
void slc_token_head_tensors(sluice_model *m, slc_model_layer *layer);
sluice_status slc_token_head_forward(slc_layer_run *slot);
sluice_status slc_token_head_backward(slc_layer_run *slot);

void slc_class_head_tensors(sluice_model *m, slc_model_layer *layer);
sluice_status slc_class_head_forward(slc_layer_run *slot);
sluice_status slc_class_head_backward(slc_layer_run *slot);

/* The head's tensor of targets; both kinds of head have it. */
enum { SLC_TARGETS = SLC_OWN_TENSORS, SLC_HEAD_TENSORS };

#endif
