/* Ties: equal neighbours share their choice in small groups, which removes the symmetry of long models.
 * ilp/slot_model_test.c covers this file. */
#include "ilp/solver/slot_program.h"

static bool equal_units(const slc_slot_model_parts *parts, uint32_t a, uint32_t b)
{
    const slc_unit *x = &parts->job->units[a], *y = &parts->job->units[b];
    if (x->elements != y->elements || x->dtype != y->dtype || x->trainable != y->trainable || x->use_count != 1 ||
        y->use_count != 1 || x->role != y->role)
        return false;
    if (parts->options[a] != parts->options[b] || x->uses[0].layer + 1 != y->uses[0].layer) return false;
    uint32_t first = x->uses[0].layer, second = y->uses[0].layer;
    return x->uses[0].backward_value == y->uses[0].backward_value &&
           parts->times->slot_s[first] == parts->times->slot_s[second];
}

void slc_tie_units(const slc_slot_model_parts *parts, uint32_t tie, uint32_t *group)
{
    for (uint32_t u = 0; u < parts->job->unit_count; u++) {
        group[u] = u;
        if (u && equal_units(parts, u - 1, u) && u - group[u - 1] < tie) group[u] = group[u - 1];
    }
}

static uint64_t dropped_bytes(const slc_slot_model_parts *parts, uint32_t layer)
{
    uint64_t bytes = 0;
    slc_lifetime span;
    for (uint32_t a = 0; a < parts->job->activation_count; a++)
        if (slc_activation_layer(parts->job, a) == layer && slc_recompute_span(parts, a, 0, &span))
            bytes += parts->job->activations[a].bytes;
    return bytes;
}

void slc_tie_layers(const slc_slot_model_parts *parts, uint32_t tie, uint32_t *group)
{
    uint64_t before = 0, bytes = 0;
    for (uint32_t l = 0; l < parts->job->layer_count; l++, before = bytes) {
        group[l] = l;
        if (slc_recompute_of(parts, l) != 2 || tie < 2) continue;
        bytes = dropped_bytes(parts, l);
        if (l && slc_recompute_of(parts, l - 1) == 2 && bytes == before && l - group[l - 1] < tie &&
            parts->times->recompute_s[l - 1] == parts->times->recompute_s[l])
            group[l] = group[l - 1];
    }
}

uint32_t slc_tie_by_size(const slc_slot_model_parts *parts)
{
    return parts->slots <= 512 ? 1 : parts->slots <= 1024 ? 2 : 4;
}
