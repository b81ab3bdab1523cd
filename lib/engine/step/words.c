/* lib/model/golden_models_test.c covers this file. */
#include "lib/engine/step/words.h"

#include "lib/base/integer.h"
#include "lib/engine/runtime.h"
#include "lib/plan/plan.h"

#include <string.h>

/* Each part of a set begins at a multiple of 64 bytes. */
typedef struct {
    uint64_t norms, norm_bins, bytes; /* offsets in a set, and its length */
} set_layout;

static set_layout layout_of(uint32_t norm_count)
{
    set_layout layout = {.norms = slc_round_up(sizeof(slc_step_words), 64)};
    layout.norm_bins = layout.norms + slc_round_up(norm_count * sizeof(double), 64);
    layout.bytes = layout.norm_bins + slc_round_up(norm_count * SLC_NORM_BINS * sizeof(int64_t), 64);
    return layout;
}

/* Norms and maxima of each parameter. */
static uint32_t norms_each(const sluice_runtime *rt)
{
    return rt->optimizer.norm_count;
}

static uint32_t maxima_each(const sluice_runtime *rt)
{
    return rt->optimizer.norm_count ? rt->optimizer.maximum_count : 0;
}

uint64_t slc_pass_words_room(sluice_runtime *rt)
{
    slc_agreement *agreement = &rt->agreement;
    uint64_t sums = SLC_AGREEMENT_HEAD;
    if (rt->size > 1)
        sums += slc_step_words_sums(agreement->norm_count, norms_each(rt), maxima_each(rt), (uint32_t)rt->size);
    agreement->summed = slc_round_up(sums, 16 * (uint64_t)rt->size);
    return agreement->summed - SLC_AGREEMENT_HEAD + 2 * layout_of(agreement->norm_count).bytes / sizeof(int64_t);
}

sluice_status slc_pass_words_place(sluice_runtime *rt)
{
    slc_agreement *agreement = &rt->agreement;
    const set_layout layout = layout_of(agreement->norm_count);
    if (!slc_device_runs_ahead(rt->device)) return SLUICE_OK;
    sluice_status status = SLUICE_OK;
    if (!agreement->seen.base) status = slc_pinned_create(rt->device, 2 * sizeof(slc_step_words), &agreement->seen);
    for (int i = 0; !status && i < 2; i++) {
        char *set = (char *)(agreement->words + agreement->summed) + (uint64_t)i * layout.bytes;
        agreement->sets[i] = (slc_word_set){.words = (slc_step_words *)(void *)set,
                                            .norms = (double *)(void *)(set + layout.norms),
                                            .norm_bins = (int64_t(*)[SLC_NORM_BINS])(void *)(set + layout.norm_bins),
                                            .seen = (slc_step_words *)agreement->seen.base + i};
        rt->steps[i].ahead = &agreement->sets[i];
    }
    return status;
}

/* Updates on the compute lane may still read the set. */
sluice_status slc_pass_words_begin(sluice_runtime *rt, const slc_step_state *step)
{
    if (!step->ahead) return SLUICE_OK;
    sluice_status status = slc_lane_events_wait(&rt->lanes.events, &rt->updates, rt->lanes.computed_posted);
    return status ? status
                  : slc_step_words_begin(&rt->updates, step->ahead->words, rt->agreement.norm_count,
                                         step->ahead->norm_bins);
}

static slc_step_words_sums_args sums_of(const sluice_runtime *rt, const slc_step_state *step)
{
    return (slc_step_words_sums_args){.words = step->ahead->words,
                                      .norm_count = rt->agreement.norm_count,
                                      .norms_each = norms_each(rt),
                                      .maxima_each = maxima_each(rt),
                                      .norm_bins = step->ahead->norm_bins,
                                      .rank = (uint32_t)rt->rank,
                                      .ranks = (uint32_t)rt->size,
                                      .head = SLC_AGREEMENT_HEAD,
                                      .count = rt->agreement.summed,
                                      .sums = rt->agreement.words};
}

sluice_status slc_pass_words_pack(sluice_runtime *rt, const slc_step_state *step)
{
    const slc_step_words_sums_args args = sums_of(rt, step);
    return rt->size > 1 ? slc_step_words_pack(&rt->updates, &args) : SLUICE_OK;
}

sluice_status slc_pass_words_agree(sluice_runtime *rt, const slc_step_state *step)
{
    const slc_word_set *set = step->ahead;
    const slc_step_words_sums_args sums = sums_of(rt, step);
    const slc_step_words_agree_args args = {.words = set->words,
                                            .clip = rt->config.clip,
                                            .own_scale = step->own_scale,
                                            .skip_non_finite = rt->config.nan == SLUICE_NAN_SKIP,
                                            .norm_count = rt->agreement.norm_count,
                                            .norms_each = norms_each(rt),
                                            .maxima_each = maxima_each(rt),
                                            .norm_bins = (const int64_t(*)[SLC_NORM_BINS])set->norm_bins,
                                            .norms = set->norms,
                                            .scale = step->left_scale};
    sluice_status status = rt->size > 1 ? slc_step_words_unpack(&rt->updates, &sums) : SLUICE_OK;
    if (!status) status = slc_step_words_agree(&rt->updates, &args);
    return status ? status : slc_copy(&rt->updates, set->seen, set->words, sizeof *set->seen);
}

void slc_pass_words_learn(slc_step_state *step)
{
    if (!step->ahead) return;
    const slc_step_words *seen = step->ahead->seen;
    memcpy(step->bins, seen->bins, sizeof step->bins);
    memcpy(step->own_bins, seen->own_bins, sizeof step->own_bins);
    step->non_finite = (int64_t)seen->non_finite;
    step->bad_param = seen->first_bad;
    step->skip = seen->told.skip;
}
