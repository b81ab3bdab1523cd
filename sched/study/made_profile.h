/* Profiles without measuring: GPT-2 and GPT-3 on clusters that are not at hand, from published shapes and speeds.
 *
 * Layers are "embed", "h.0"..., "head". The token embedding is one tied unit of embed and head, or it is split by its
 * uses into a unit of head and one of the rows that embed looks up, at most min(V, b s) of them; embed's own unit holds
 * the positions, head's the last norm. With d channels, a heads, s tokens of context, b sequences, V words, numbers of
 * `precision` (logits and the numbers a head keeps: fp32):
 *   parameters   12 d^2 + 13 d a block; V d the embedding, s_max d the positions, 2 d the last norm (Radford et al.
 *                2019, "Language models are unsupervised multitask learners"; Brown et al. 2020, "Language models are
 *                few-shot learners", table 2.1; the 13B model with the 5120 channels that its heads give)
 *   forward      2 FLOPs a parameter and token, and 2 s d a token and block for causal attention; head 2 V d a token;
 *                embed 4 d. Backward twice that; recomputing a block is its forward
 *   activations  a block keeps 16 numbers a token and channel for its backward (Korthikanti et al. 2022, "Reducing
 *                activation recomputation in large transformer models", section 4: 34 bytes in 16 bits without the two
 *                of dropout's masks), one of which is its input; with FlashAttention (Dao et al. 2022) it keeps a
 *                numbers a token instead of the 5 a s^2 b of the scores. Recomputing a block drops all but its input.
 *                One gradient of the residual stream runs from head to embed. Workspaces: 4 d a token in a block, and
 *                in head the logits of 1,024 tokens at a time
 *   exchange     a block's tensors are those of GPT-2. Compressing, applying and averaging move 16, 16 and 8 bytes of
 *                memory an element; an update by Adam moves 28, and takes longer in that proportion
 *   link         base blocks are an eighth of the bytes that reach 95 % of the bandwidth, at least 1 MiB; 4 of them
 *                are in flight */
#pragma once

#include "lib/plan/profile.h"

#include <sluice/runtime.h>

typedef struct {
    const char *model;               /* "gpt2-small" ... "gpt3-175b" */
    const char *cluster;             /* for the profile's source; NULL: the source gives the figures instead */
    uint32_t world;                  /* number of ranks, N */
    uint32_t batch;                  /* sequences a rank and micro-batch */
    uint32_t context;                /* tokens a sequence; 0: as many as the model has */
    uint32_t micro_batches;          /* 0: 1 */
    double device_flops, efficiency; /* FLOP/s of a rank, and the share of them that is reached, in (0, 1] */
    double bytes_per_s, latency_s;   /* of a rank's link, in both directions: slc_link_line */
    double kappa, sigma;             /* slc_link; sigma 0: 1 */
    double update_s_per_element;     /* the optimizer's time for an element */
    bool thread_moves;               /* slc_link */
    bool can_recompute;              /* whether blocks can */
    sluice_tied tied;                /* of the token embedding */
    sluice_dtype precision, wire;    /* of values and everything kept for backward; of gradients: slc_job */
} slc_made_options;

/* Makes a profile, which the caller destroys. Errors: ARGUMENT (no such model, or an impossible figure), MEMORY. */
sluice_status slc_made_profile(const slc_made_options *options, slc_profile **out);

/* Sets everything that belongs to the machines: world, speeds, link. Errors: ARGUMENT (no such cluster; the error names
 * all). */
sluice_status slc_made_cluster(const char *name, slc_made_options *options);

/* Bytes of a base block on these machines: an eighth of the bytes that reach 95 % of the bandwidth, at least 1 MiB.
 * World, latency and bandwidth must be set. */
uint64_t slc_made_block_bytes(const slc_made_options *options);

/* Names in turn; NULL after the last. */
const char *slc_made_model_name(size_t index);
const char *slc_made_cluster_name(size_t index);
