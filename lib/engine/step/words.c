/* lib/model/golden_models_test.c covers this file. */
#include "lib/engine/step/words.h"

#include "lib/base/integer.h"
#include "lib/engine/runtime.h"

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

uint64_t slc_pass_words_room(uint32_t norm_count)
{
    return 2 * layout_of(norm_count).bytes / sizeof(int64_t);
}

sluice_status slc_pass_words_place(sluice_runtime *rt)
{
    slc_agreement *agreement = &rt->agreement;
    const set_layout layout = layout_of(agreement->norm_count);
    if (!slc_device_runs_ahead(rt->device)) return SLUICE_OK;
    sluice_status status = SLUICE_OK;
    if (!agreement->seen.base) status = slc_pinned_create(rt->device, 2 * sizeof(slc_step_words), &agreement->seen);
    for (int i = 0; !status && i < 2; i++) {
        char *set = (char *)agreement->words + (uint64_t)i * layout.bytes;
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

sluice_status slc_pass_words_agree(sluice_runtime *rt, const slc_step_state *step)
{
    const slc_word_set *set = step->ahead;
    const uint32_t norms = rt->optimizer.norm_count, maxima = norms ? rt->optimizer.maximum_count : 0;
    const slc_step_words_agree_args args = {.words = set->words,
                                            .clip = rt->config.clip,
                                            .skip_non_finite = rt->config.nan == SLUICE_NAN_SKIP,
                                            .norm_count = rt->agreement.norm_count,
                                            .norms_each = norms,
                                            .maxima_each = maxima,
                                            .norm_bins = (const int64_t(*)[SLC_NORM_BINS])set->norm_bins,
                                            .norms = set->norms};
    sluice_status status = slc_step_words_agree(&rt->updates, &args);
    return status ? status : slc_copy(&rt->updates, set->seen, set->words, sizeof *set->seen);
}

void slc_pass_words_learn(slc_step_state *step)
{
    if (!step->ahead) return;
    const slc_step_words *seen = step->ahead->seen;
    memcpy(step->bins, seen->bins, sizeof step->bins);
    step->non_finite = (int64_t)seen->non_finite;
    step->bad_param = seen->first_bad;
    step->skip = seen->told.skip;
}
