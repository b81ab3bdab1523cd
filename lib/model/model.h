/* The inside of the bundled models: what their files share.
 *
 * A layer computes on tensors that it names in a table: kept ones live from its forward to its backward (or belong to
 * another layer), the others inside one slot. Its forward and backward are lists of operations (operations.h). Before
 * commit each list runs once without computing: every operation only says which tensors it touches and how much scratch
 * it needs, so that the lifetimes which the runtime packs are those of the code that runs.
 *
 * What is kept from forward to backward, a token and channel: the residual stream before and inside each block, q k v,
 * the attention's output, the first half of the MLP before its GELU: 10 values, where storing every input of every
 * product takes 16; one more where a norm follows its branch (BERT), two more with layer scale (BEiT). Norms' and
 * GELU's outputs are made again in backward. The gradient of the residual stream is one buffer, updated in place from
 * the head down to the embedding. Logits exist only for SLC_HEAD_CHUNK rows at a time. */
#ifndef SLC_MODEL_MODEL_H
#define SLC_MODEL_MODEL_H

#include "lib/kernels/dropout/dropout.h"
#include "lib/kernels/kernel.h"
#include "lib/model/params.h"

#include <sluice/model.h>

enum { SLC_HEAD_CHUNK = 256, SLC_TENSORS_MAX = 28, SLC_OPERATIONS_MAX = 40 };

typedef struct {
    const char *name;
    uint64_t bytes; /* 0: not in this layer */
    bool kept;
    sluice_activation *activation; /* kept ones: its own or another layer's */
    /* The others: operations that touch it first and last, by direction; first > last: none does. */
    uint32_t first[2], last[2];
    sluice_workspace *space[2];
} slc_layer_tensor;

/* Tensors that every layer has; its own follow. */
enum {
    SLC_NO_TENSOR,
    SLC_SOURCE,         /* the output of the layer before, in that one's type */
    SLC_INPUT,          /* ... in this layer's: the same tensor if the types are equal */
    SLC_OUTPUT,         /* not of the head */
    SLC_GRADIENT,       /* of the residual stream, in this layer's type */
    SLC_GRADIENT_BELOW, /* ... in the type of the layer before */
    SLC_OWN_TENSORS
};

typedef struct {
    sluice_layer *layer;
    char name[24];
    slc_layer_kind kind;
    sluice_dtype dtype, below; /* its own; of the layer before */
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
    uint32_t number; /* of the layer */
    sluice_direction direction;
    bool scan; /* nothing is computed: lifetimes are taken */
    bool training;
    uint32_t operation; /* that runs */
} slc_slot;

struct sluice_model {
    sluice_runtime *rt;
    sluice_model_config config;
    uint32_t batch, length;
    uint32_t tokens;        /* rows a sequence */
    uint64_t rows, targets; /* batch * tokens; of a micro-batch */
    uint64_t dropout_seed;
    slc_stream *stream; /* the runtime's */

    uint32_t layer_count; /* embed, blocks, head */
    slc_model_layer *layers;
    sluice_activation *gradient[2]; /* of the residual stream, by type; NULL: no layer has it */
    sluice_activation *mask;        /* of padding; NULL: images */
    const sluice_batch *given;      /* this micro-batch, while a call runs */
    bool masked;                    /* it has an attention mask */

    uint64_t step, micro_batch; /* that forward last began */
    uint64_t target_count;      /* targets of this micro-batch that are not -1 */
    sluice_param *look_up;      /* the token table, where it is tied; NULL */
    int32_t *host_places;       /* with it: where each token's row lies in what the runtime gives of the table */
    int32_t padding_place;      /* of the padding token's row; -1: the micro-batch has none */
    float *host_losses;         /* one a target row */
    int32_t *host_targets;      /* one a target row */
    float *host_logits;         /* where sluice_model_evaluate's caller wants them, or NULL */

    sluice_status (*check)(void *context);
    void *check_context;
};

/* ---- slot.c ---- */

/* Fills the table's entries that all layers have. */
void slc_layer_common_tensors(sluice_model *m, slc_model_layer *layer);
static inline uint64_t slc_layer_bytes(const slc_model_layer *layer, uint64_t elements)
{
    return elements * sluice_dtype_bytes(layer->dtype);
}
/* Adds kept tensors to the runtime, runs the lists without computing, adds workspaces. `recompute` may be NULL. */
typedef sluice_status slc_operations(slc_slot *slot);
sluice_status slc_layer_register_tensors(sluice_model *m, uint32_t number, slc_operations *forward,
                                         slc_operations *recompute, slc_operations *backward);

slc_slot slc_slot_of(sluice_model *m, uint32_t number, sluice_direction direction);
/* Begins the next operation. */
void slc_slot_next(slc_slot *slot);
/* The tensor's address, while the operation runs; NULL while lifetimes are taken, and for SLC_NO_TENSOR. */
void *slc_slot_tensor(slc_slot *slot, uint32_t tensor);
/* This operation's scratch. */
void *slc_slot_scratch(slc_slot *slot, uint64_t bytes);
/* NULL where the layer has no such parameter. Errors (a call in a wrong order) show as failures of the runtime. */
const void *slc_slot_value(slc_slot *slot, slc_param_place place);
void *slc_slot_gradient(slc_slot *slot, slc_param_place place, bool *fresh);
sluice_dtype slc_slot_gradient_dtype(const slc_slot *slot, slc_param_place place);
/* The dropout of this micro-batch at a place of the layer whose tensor has `per_sequence` elements a sequence. */
slc_dropout slc_slot_dropout(const slc_slot *slot, uint32_t place, uint64_t per_sequence);
bool slc_slot_drops(const slc_slot *slot);

/* ---- The layers: tables of tensors, lists of operations ---- */

void slc_embed_tensors(sluice_model *m, slc_model_layer *layer);
sluice_status slc_embed_forward(slc_slot *slot);
sluice_status slc_embed_backward(slc_slot *slot);

void slc_block_tensors(sluice_model *m, slc_model_layer *layer);
sluice_status slc_block_forward(slc_slot *slot);
sluice_status slc_block_recompute(slc_slot *slot); /* the beginning of forward: all that backward reads */
sluice_status slc_block_backward(slc_slot *slot);

/* forward is for evaluation; in training loss and gradient are made together, in backward. */
void slc_token_head_tensors(sluice_model *m, slc_model_layer *layer);
sluice_status slc_token_head_forward(slc_slot *slot);
sluice_status slc_token_head_backward(slc_slot *slot);

void slc_class_head_tensors(sluice_model *m, slc_model_layer *layer);
sluice_status slc_class_head_forward(slc_slot *slot);
sluice_status slc_class_head_backward(slc_slot *slot);

/* The head's tensor of targets, in both kinds. */
enum { SLC_TARGETS = SLC_OWN_TENSORS, SLC_HEAD_TENSORS };

#endif
