/* The state of the bundled models, which all of their files share: layers, tensors, the current micro-batch.
 *
 * A layer computes on tensors that it names in a table. Kept tensors live from the layer's forward to its backward (or
 * belong to another layer), the others within one slot. The layer's forward and backward are lists of operations
 * (layers/operations.h). Before commit each list runs once without computing: every operation only says which tensors
 * it touches and how much scratch it needs. So the lifetimes that the runtime packs are those of the code that runs.
 *
 * Values kept from forward to backward for each token and channel: the residual stream before and inside each block, q
 * k v, the attention's output, the first half of the MLP before its GELU. These are 10 values, where storing every
 * input of every product takes 16; one more if a norm follows its branch (BERT), two more with layer scale (BEiT). The
 * outputs of norms and GELU are computed again in backward. The gradient of the residual stream is one buffer, updated
 * in place from the head down to the embedding. Logits exist only for a chunk of rows at a time. */
#pragma once

#include "lib/base/integer.h"
#include "lib/kernels/dropout/dropout.h"
#include "lib/kernels/kernel.h"
#include "lib/model/params.h"

#include <sluice/model.h>

enum { SLC_TENSORS_MAX = 28, SLC_OPERATIONS_MAX = 40 };

/* Rows of logits at a time. A GPU reads and writes the whole gradient of the token table for each chunk, so it takes
 * large ones; a host keeps a chunk in its cache. */
enum { SLC_HEAD_CHUNK_HOST = 256, SLC_HEAD_CHUNK_GPU = 4096 };
/* Elements to which a GPU's rows of logits are padded: products of a row distance that is odd, such as GPT-2's 50257,
 * are slow there. */
enum { SLC_LOGITS_PADDED_TO = 64 };

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
/* The head's tensor of targets; both kinds of head have it. */
enum { SLC_TARGETS = SLC_OWN_TENSORS, SLC_HEAD_TENSORS };

typedef struct {
    sluice_layer *layer;
    char name[24];
    slc_layer_kind kind;
    sluice_dtype dtype, below; /* this layer's type; the previous layer's */
    float factor;              /* a block's: what training multiplies its branches by */
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

/* The arrays from which the current micro-batch is read: in the model's memory or, on the host, also in the caller's.
 */
typedef struct {
    const int32_t *places;                    /* where each token's row lies in the table that the runtime gives */
    const int32_t *types;                     /* NULL: all 0 */
    const uint32_t *place_order, *type_order; /* slc_embedding_order of these; NULL on the host */
    const uint8_t *attention_mask, *masked_patches;
    const float *pixels;
} slc_batch_arrays;

/* Host memory that copies of one micro-batch to and from the device use (micro_batch.h). An array is NULL if the
 * model needs none. On the host there are losses, targets and places only. */
typedef struct {
    slc_pinned block;
    slc_event done;        /* recorded behind the last copy */
    float *losses;         /* one for each row of the head */
    int32_t *targets;      /* one for each row of the head */
    uint64_t target_count; /* targets that are not -1 */
    uint64_t loss_rows;    /* of the micro-batch, that have a loss */
    /* The head's rows that have targets, ascending. `picked`, their number, is rounded up to a multiple of
     * slc_model_pick_step by repeating the last row; their targets come first in `targets`. picked 0: the head takes
     * all rows. pick_order is 0, 1, 2 and so on. NULL: the model never picks. */
    int32_t *rows;
    uint32_t *pick_order;
    uint64_t picked;
    double divisor;          /* the sum of their losses is divided by it; never 0 */
    bool owes;               /* the losses are not in the model's sum yet */
    int32_t *places, *types; /* as in slc_batch_arrays, like those that follow */
    uint32_t *place_order, *type_order, *order_scratch;
    uint8_t *attention_mask, *masked_patches;
    float *pixels;
    uint32_t sequences, length; /* of the micro-batch; what follows is as in sluice_model */
    bool masked;
    int32_t padding_place;
    slc_batch_arrays in;
} slc_batch_memory;

/* Losses of micro-batches, each divided as its batch says, since the mean of sluice_model_loss began. */
typedef struct {
    double sum, last;
    uint64_t count;
    bool told; /* the next forward begins a new mean */
} slc_losses;

enum { SLC_BATCH_MEMORIES = 2 }; /* of a device that works later */

/* Keys and values of one sequence, for all blocks (cache.h). */
typedef struct {
    slc_pinned memory;
    uint32_t room, tokens; /* room 0: there is no cache; tokens: that it holds */
    uint64_t block_bytes;  /* of one block */
} slc_model_cache;

/* Notes that training's forwards make of the blocks (observation.h). */
typedef struct {
    bool wanted, on;   /* the model was made to be observed; it is now */
    slc_pinned memory; /* [blocks][each], of each row two figures (slc_likeness) */
    uint64_t each;     /* floats of a block */
    uint64_t *rows;    /* of the last micro-batch that each block noted; 0: none yet */
} slc_observation;

struct sluice_model {
    sluice_runtime *rt;
    sluice_model_config config;
    uint32_t batch, length, length_step, length_least;
    bool folds; /* sluice_model_options.folds */
    uint32_t shape_lengths[SLUICE_SHAPES_MOST], shape_count;
    /* Sizes of the current micro-batch: sequences; rows in a sequence; both multiplied; targets. Until the first
     * micro-batch they are those of a whole one. */
    uint32_t sequences, tokens;
    uint64_t rows, targets;
    uint32_t in_step; /* micro-batches that sluice_model_step runs; 0: it does not */
    uint64_t dropout_seed;
    bool evaluates_only;
    bool scales_branches;  /* products at the end of branches take a factor */
    slc_model_cache cache; /* if it has room, `tokens` and `rows` are those of the current pass */
    slc_observation observation;
    float label_smoothing;
    sluice_stream *stream; /* belongs to the runtime */
    bool apart; /* the device has memory of its own and works after calls have returned: a GPU, and not the host */

    uint32_t layer_count; /* embed, blocks, head */
    slc_model_layer *layers;
    sluice_activation *gradient[2]; /* gradient of the residual stream, by type; NULL: no layer has this type */
    sluice_activation *mask;        /* padding mask; NULL: images */
    bool masked;                    /* the micro-batch has an attention mask */

    uint64_t step, micro_batch; /* step and micro-batch of the last forward that began */
    sluice_param *look_up;      /* the token table if it is tied, else NULL */
    int32_t padding_place;      /* place of the padding token's row; -1: the micro-batch has none */
    float *host_logits;         /* array of sluice_model_evaluate's caller that wants the logits, or NULL */
    slc_pinned logits_piece;    /* logits on their way there from a GPU */

    slc_device *device;                  /* opened for the memory below, which may be freed after the runtime */
    slc_batch_memory *memories, *memory; /* memory: that of the last micro-batch */
    uint32_t memory_count;
    uint8_t *launched_lengths, *launched_picks; /* SLC_LAUNCHED_ bits (batch/micro_batch.c); NULL on the host */
    slc_batch_arrays in;                        /* valid while a call runs */
    slc_losses losses;
    bool has_loss; /* the last micro-batch has been through backward */

    char (*new_params)[SLC_PARAM_NAME_BYTES]; /* that the last load left as they were */
    uint32_t new_count;

    sluice_status (*check)(void *context);
    void *check_context;
};

/* Rows of logits, targets and losses. */
static inline uint64_t slc_model_head_rows(const sluice_model *m)
{
    return m->config.head == SLUICE_HEAD_CLASSES ? m->sequences : m->rows;
}
/* Returns true if the head takes only rows that have targets. They are few in masked text and images. */
static inline bool slc_model_picks(const sluice_model *m)
{
    return m->config.head == SLUICE_HEAD_TOKENS && !slc_family_of(m->config.family)->causal && !m->evaluates_only;
}
/* Rows of logits that the head makes at a time. */
static inline uint64_t slc_model_head_chunk(const sluice_model *m)
{
    const uint64_t most = m->apart ? SLC_HEAD_CHUNK_GPU : SLC_HEAD_CHUNK_HOST;
    return m->cache.room ? 1 : slc_least(m->rows, most);
}
/* Numbers of picked rows are multiples of this, so that products have few shapes. */
static inline uint64_t slc_model_pick_step(const sluice_model *m)
{
    const uint64_t eighth = slc_model_head_chunk(m) / 8;
    return eighth ? slc_round_up(eighth, 16) : 16;
}
/* Sequences that have the tokens of a whole micro-batch, with `length` tokens each. */
static inline uint32_t slc_model_folded(const sluice_model *m, uint32_t length)
{
    return m->folds ? m->batch * (m->length / length) : m->batch;
}
/* The most sequences that a micro-batch has. */
static inline uint32_t slc_model_most_sequences(const sluice_model *m)
{
    return m->length_least && m->length_least <= m->length ? slc_model_folded(m, m->length_least) : m->batch;
}
/* Makes the micro-batch that follows one of `sequences` with `length` tokens each; images have no other length than the
 * model's. */
static inline void slc_model_set_shape(sluice_model *m, uint32_t sequences, uint32_t length)
{
    m->sequences = sequences;
    m->tokens = sluice_model_tokens(&m->config, length);
    m->rows = (uint64_t)m->sequences * m->tokens;
    m->targets = (uint64_t)m->sequences * sluice_model_targets(&m->config, length);
}
/* Size of the pass that comes next when `left` tokens are left; from 1 on all of them are those that are registered. */
static inline uint32_t slc_model_pass(const sluice_model *m, uint32_t left)
{
    uint32_t pass = 1;
    if (left >= m->length) return m->length;
    while (pass <= left / 2) pass *= 2;
    return pass;
}
/* Pixels of a micro-batch. */
static inline uint64_t slc_model_pixels(const sluice_model *m)
{
    const sluice_model_config *c = &m->config;
    return (uint64_t)m->sequences * c->image_channels * c->image_size * c->image_size;
}
