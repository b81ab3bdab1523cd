/* The words of a step: the device's own record of the gradients that it has looked at, and its conclusions from it.
 * They lie in memory of the stream's device, so that a host that runs ahead of the device need not wait for them:
 * gradients are inspected as they are reduced, one call then concludes, and the kernels of updates read `told`. The
 * host copies the words when the step has ended. Work on one step's words is in the order of one stream. */
#pragma once

#include "lib/kernels/norm/norm.h"

#include <sluice/optimizer.h>

typedef struct {
    sluice_step_words told;
    int64_t bins[SLC_NORM_BINS]; /* norm.h, of the gradients that were inspected with `norm` */
    uint64_t non_finite;         /* 0: every element that was inspected is finite */
    uint32_t first_bad;          /* least number of a parameter with an element that is not; or UINT32_MAX */
    /* Words and bins of this rank's own gradients, before they are averaged; no other rank reads them. */
    sluice_step_words own;
    int64_t own_bins[SLC_NORM_BINS];
} slc_step_words;

/* The kinds of inspection: for finite elements alone, with the norm in `bins`, or with the norm in `own_bins`. */
typedef enum { SLC_INSPECT_FINITE, SLC_INSPECT_NORM, SLC_INSPECT_OWN_NORM } slc_inspection;

/* Makes the words say factor 1, no skip and nothing inspected, and zeroes the bins of `norm_count` norms (norm_bins may
 * be NULL with none). */
sluice_status slc_step_words_begin(sluice_stream *stream, slc_step_words *words, uint32_t norm_count,
                                   int64_t (*norm_bins)[SLC_NORM_BINS]);

/* A run of elements of one parameter. */
typedef struct {
    uint64_t count; /* with a norm a multiple of 16, or up to the end of the parameter */
    const void *x;
    uint32_t parameter; /* its number */
} slc_step_words_range;

/* Looks at ranges, which are read once: with a norm adds them to the words' bins, or to own_bins, as slc_norm_add does,
 * and makes them count in non_finite and first_bad if an element is NaN or infinite. On a GPU a launch takes up to
 * SLC_STEP_WORDS_RANGES of them, which need not live on. */
enum { SLC_STEP_WORDS_RANGES = 128 };
typedef struct {
    slc_step_words *words;
    sluice_dtype dtype; /* of all elements */
    slc_inspection norm;
    uint32_t range_count;
    const slc_step_words_range *ranges; /* in the host's memory */
} slc_step_words_inspect_args;

sluice_status slc_step_words_inspect(sluice_stream *stream, const slc_step_words_inspect_args *args);

/* Makes each of `count` numbers of parameters that is not UINT32_MAX count in non_finite and first_bad, and sets it to
 * UINT32_MAX. first_bad itself then counts in non_finite, if others than slc_step_words_inspect have lowered it. */
sluice_status slc_step_words_tell(sluice_stream *stream, slc_step_words *words, uint32_t count, uint32_t *numbers);

/* Concludes from what was inspected and measured:
 *   told.gradient_factor = scale * min(1, clip / (norm + 1e-6)), as in torch.nn.utils.clip_grad_norm_, where the norm
 *                          is |scale| * slc_norm_result of the bins; `scale` if clip is 0 or an element was not finite
 *   told.skip            = skip_non_finite, and an element was not finite
 *   own.gradient_factor  = own_scale * min(1, clip / (own_scale * norm + 1e-6)), where the norm is that of own_bins
 *   own.skip             = told.skip
 *   norms[i]             = slc_norm_result of norm_bins[i], or for a maximum the number whose bits norm_bins[i][0] is
 * All bits are those that the host computes from the same bins. */
typedef struct {
    slc_step_words *words;
    double clip, own_scale;
    bool skip_non_finite;
    uint32_t norm_count; /* bins and numbers: for each parameter norms_each norms, then maxima_each maxima */
    uint32_t norms_each, maxima_each;
    const int64_t (*norm_bins)[SLC_NORM_BINS]; /* [norm_count] */
    double *norms;                             /* [norm_count] */
    double scale; /* of the gradients that were inspected, which the factor brings with it; 0: they have it, it is 1 */
} slc_step_words_agree_args;

sluice_status slc_step_words_agree(sluice_stream *stream, const slc_step_words_agree_args *args);

/* The int64 words that ranks add up in order to know each other's findings, `count` of them in memory of the stream's
 * device: the bins of the gradients, then non_finite, zeros up to `head`, and for each parameter its norms, packed into
 * SLC_NORM_WORDS each (slc_norm_pack), and its maxima, each with a word for every rank; then zeros. first_bad stays a
 * rank's own. */
typedef struct {
    slc_step_words *words;
    uint32_t norm_count, norms_each, maxima_each; /* as in slc_step_words_agree_args */
    int64_t (*norm_bins)[SLC_NORM_BINS];          /* [norm_count] */
    uint32_t rank, ranks;
    uint64_t head, count; /* head: more than SLC_NORM_BINS; count: at least head + slc_step_words_sums */
    int64_t *sums;
} slc_step_words_sums_args;

/* The words that `norm_count` norms and maxima take. */
uint64_t slc_step_words_sums(uint32_t norm_count, uint32_t norms_each, uint32_t maxima_each, uint32_t ranks);
/* pack writes what this rank has found to all of `sums`. unpack puts what all have found in its place, for
 * slc_step_words_agree: the bits are then the same however the gradients were divided among the ranks. */
sluice_status slc_step_words_pack(sluice_stream *stream, const slc_step_words_sums_args *args);
sluice_status slc_step_words_unpack(sluice_stream *stream, const slc_step_words_sums_args *args);

SLC_DEVICE_DECLARE(slc_step_words_begin);
SLC_DEVICE_DECLARE(slc_step_words_inspect);
SLC_DEVICE_DECLARE(slc_step_words_tell);
SLC_DEVICE_DECLARE(slc_step_words_agree);
SLC_DEVICE_DECLARE(slc_step_words_pack);
SLC_DEVICE_DECLARE(slc_step_words_unpack);

/* The plain version, which looks at one element after the other. Inspects elements that were widened to fp32. */
void slc_step_words_inspect_ref(uint64_t count, const float *x, bool norm, uint32_t parameter, slc_step_words *words);
/* Returns the square root of the sum in the bins, off by a few roundings of long double. */
long double slc_step_words_norm_ref(const int64_t *bins);
