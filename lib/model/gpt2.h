/* The inside of the bundled GPT-2: what its files share.
 *
 * Memory. Kept from forward to backward, per row (a token) and channel: the residual stream before (x) and inside (mid)
 * each block, q k v, the attention's output, the first half of the MLP before its GELU: 10 floats a channel and block,
 * where storing every input of every product takes 16. The norms' and GELU's outputs are made again in backward; they
 * cost a pass over memory that is small beside the products. The gradient of the residual stream is one buffer, updated
 * in place from the head down to the embedding. Logits exist only for SLC_GPT2_CHUNK rows at a time. */
#ifndef SLC_MODEL_GPT2_H
#define SLC_MODEL_GPT2_H

#include "lib/kernels/kernel.h"
#include "lib/model/gpt2_params.h"

#include <sluice/model.h>
#include <sluice/runtime.h>

enum { SLC_GPT2_CHUNK = 256 }; /* rows of logits at a time */
#define SLC_GPT2_EPSILON 1e-5f /* of the norms */

typedef struct {
    sluice_layer *layer;
    sluice_param *wte, *wpe;
    sluice_activation *tokens; /* int32, batch x tokens */
    sluice_activation *output; /* x of the first block */
    sluice_workspace *places;  /* what backward sorts */
} slc_gpt2_embed;

typedef struct {
    sluice_layer *layer;
    sluice_param *param[SLC_GPT2_BLOCK_PARAMS];
    sluice_activation *input; /* the layer before owns it */
    sluice_activation *qkv, *attention, *logsumexp, *mid, *hidden, *output;
    /* Of forward and backward: rows x 4 channels; rows x channels; 2 x rows, mean and 1/deviation; scratch. */
    sluice_workspace *wide[2], *narrow[2], *stats[2], *scratch[2];
} slc_gpt2_block;

typedef struct {
    sluice_layer *layer;
    sluice_param *gamma, *beta, *wte;
    sluice_activation *input;   /* the last block's output */
    sluice_activation *targets; /* int32, batch x tokens */
    sluice_activation *dstream; /* gradient of the residual stream, down to "embed" */
    /* Of forward (evaluation) and backward. */
    sluice_workspace *logits[2], *normed[2], *dnormed[2], *stats[2], *losses[2], *scratch[2];
} slc_gpt2_head;

struct sluice_gpt2 {
    sluice_runtime *rt;
    sluice_gpt2_config config;
    uint32_t batch, tokens;
    uint64_t rows;               /* batch * tokens */
    slc_stream *stream;          /* the runtime's */
    uint64_t scratch_bytes;      /* what any kernel of a block needs */
    uint64_t head_scratch_bytes; /* ... of the head */

    slc_gpt2_embed embed;
    slc_gpt2_block *blocks;
    slc_gpt2_head head;

    uint64_t target_count; /* targets of this micro-batch that are not -1 */
    double loss_sum;
    float *host_losses; /* SLC_GPT2_CHUNK of them, to be summed in double */

    sluice_status (*check)(void *context);
    void *check_context;
};

/* A workspace of the layer's forward and one of its backward, for the whole slot; none for 0 bytes. */
sluice_status slc_gpt2_workspaces(sluice_layer *layer, const char *name, uint64_t bytes, sluice_workspace *out[2]);

/* Registration, in forward order. */
sluice_status slc_gpt2_embed_register(sluice_gpt2 *model);
sluice_status slc_gpt2_block_register(sluice_gpt2 *model, uint32_t index);
sluice_status slc_gpt2_head_register(sluice_gpt2 *model);

/* Each brackets its layer's slot. */
sluice_status slc_gpt2_embed_forward(sluice_gpt2 *model, const int32_t *tokens);
sluice_status slc_gpt2_block_forward(sluice_gpt2 *model, slc_gpt2_block *block);
/* In training only the targets are taken over: loss and gradient are made together, in backward. */
sluice_status slc_gpt2_head_forward(sluice_gpt2 *model, const int32_t *targets);
sluice_status slc_gpt2_head_backward(sluice_gpt2 *model);
sluice_status slc_gpt2_block_backward(sluice_gpt2 *model, slc_gpt2_block *block);
sluice_status slc_gpt2_embed_backward(sluice_gpt2 *model);
/* The head's forward slot in evaluation: the loss, and the logits where `logits` is not NULL. */
sluice_status slc_gpt2_head_evaluate(sluice_gpt2 *model, const int32_t *targets, float *logits);

#endif
